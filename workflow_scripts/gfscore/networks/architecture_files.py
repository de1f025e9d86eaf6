"""Source files in architectures/ that define a network, found without executing them, and their digest."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError, few

PACKAGE = "architectures"
"""First part of module names that refer to the project folder of this name."""


FOLDER_VARIABLE = "GFSCORE_ARCHITECTURES"
"""Environment variable that names another folder."""

OWN = re.compile(rf"{PACKAGE}(\.\w+)+")


def network_files(name: str) -> list[Path]:
    """Files that define an architecture `package.module:callable`: its module and those it imports in architectures/.

    A sorted list of paths, relative or absolute as the folder is; empty for a network of an installed package. Follows
    imports anywhere in a file, relative ones too, the `__init__.py` of parent packages, and quoted module names (for
    importlib). A file that is not valid Python is included, but not followed. Raises InputError for a file that cannot
    be read.
    """
    module = str(name).split(":", maxsplit=1)[0].split(".")
    if module[0] != PACKAGE:
        return []
    root = folder()
    visited: set[Path] = set()
    waiting = _files_of(root, tuple(module[1:]))
    while waiting:
        path = waiting.pop()
        visited.add(path)
        waiting |= {file for parts in _modules_named_in(path, root) for file in _files_of(root, parts)} - visited
    return sorted(visited)


def describe_network(name: str) -> dict[str, Any]:
    """Digest of the code of an architecture for a manifest; an empty mapping for a network of an installed package.

    `architecture_files` lists path (architectures/..., wherever the folder is) and sha256 (hex) of all network_files,
    sorted by path; `architecture_sha256` is the output of `sha256sum <paths> | sha256sum`.
    """
    files = sorted(
        (f"{PACKAGE}/{path.relative_to(folder()).as_posix()}", hashlib.sha256(_content(path)).hexdigest())
        for path in network_files(name)
    )
    if not files:
        return {}
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in files)
    return {
        "architecture_sha256": hashlib.sha256(lines.encode()).hexdigest(),
        "architecture_files": [{"path": path, "sha256": sha256} for path, sha256 in files],
    }


def require_network(manifest: Mapping[str, Any]) -> None:
    """Raise InputError if the code of a network differs from the digests in the manifest of its checkpoint.

    A manifest without digests (a network of an installed package) is not compared.
    """
    recorded = manifest.get("architecture_files")
    if recorded is None:
        return
    present = describe_network(manifest["architecture"]).get("architecture_files", [])
    differing = {file["path"] for file in recorded + present if file not in recorded or file not in present}
    if differing:
        raise InputError(
            f"{few(sorted(differing))}: differs from the code of {manifest['architecture']} in the checkpoint's "
            "manifest, so it changed during the run; run the same command again"
        )


def _files_of(root, parts):
    # Importing a module also runs its parent packages, except the folder itself, whose __init__.py is never run.
    stems = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return {file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()}


def _modules_named_in(path, root):
    # Yields the modules that a file names, as tuples of the parts of their names below the folder.
    package = path.relative_to(root).parent.parts
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, [node.module, alias.name])) for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OWN.fullmatch(node.value):
            names = [node.value]
        else:
            continue
        level = getattr(node, "level", 0)
        for parts in (tuple(name.split(".")) for name in names):
            if level:
                # More dots than parent packages leave the folder, which Python refuses at import.
                if level <= len(package) + 1:
                    yield package[: len(package) + 1 - level] + parts
            elif parts[0] == PACKAGE:
                yield parts[1:]
            else:
                # Without the folder's name, they may resolve if a file adds a folder to sys.path.
                yield parts
                yield package + parts


def _nodes(path):
    text = _content(path)
    try:
        with warnings.catch_warnings():
            # Ignore invalid escapes in docstrings.
            warnings.simplefilter("ignore")
            return ast.walk(ast.parse(text, filename=str(path)))
    # Not valid Python: the step that builds the network reports it. Brackets nested too deep raise MemoryError.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _content(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error


def source_file_of(name: str) -> Path | None:
    """File in architectures/ that defines an architecture; None for an architecture of an installed package."""
    module_name = str(name).split(":", maxsplit=1)[0]
    if module_name.split(".")[0] != PACKAGE:
        return None
    stem = folder().joinpath(*module_name.split(".")[1:])
    # In the order of Python's import system.
    return next((file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()), None)


def folder() -> Path:
    """Project folder of architectures, in the working directory unless the environment names another."""
    return Path(os.environ.get(FOLDER_VARIABLE, PACKAGE))
