"""Which files of architectures/ make a network, found without running any of them, and their digest.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError, few
from gfscore.networks.callables import PACKAGE, folder

OWN = re.compile(rf"{PACKAGE}(\.\w+)+")


def network_files(name: str) -> list[Path]:
    """Files that define an architecture `package.module:callable`: its own, and all that they import in architectures/.

    A sorted list of paths, as the folder is relative or absolute; empty for a network of an installed package. Followed
    are imports anywhere in a file, relative ones too, the `__init__.py` of packages on the way, and names of modules
    that stand in quotes (for importlib). A file that is no valid Python belongs to them, and names none. Raises
    InputError for one that cannot be read.
    """
    module = str(name).split(":", maxsplit=1)[0].split(".")
    if module[0] != PACKAGE:
        return []
    root = folder()
    found: set[Path] = set()
    waiting = _files_of(root, tuple(module[1:]))
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= {file for parts in _modules_named_in(path, root) for file in _files_of(root, parts)} - found
    return sorted(found)


def describe_network(name: str) -> dict[str, Any]:
    """Digest of the code of an architecture, for a manifest; an empty mapping for one of an installed package.

    `architecture_files` are the mappings of path (architectures/..., wherever the folder is) and sha256 (hex) of
    `network_files`, sorted by path; `architecture_sha256` is the SHA-256 of their lines as sha256sum prints them, so
    that `sha256sum <paths> | sha256sum` gives it.
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
    """Refuse, by InputError, code of a network that is not what the manifest of its checkpoint records.

    A manifest without digest (a network of an installed package, or written before digests were) is not compared.
    """
    recorded = manifest.get("architecture_files")
    if recorded is None:
        return
    found = describe_network(manifest["architecture"]).get("architecture_files", [])
    differing = {file["path"] for file in recorded + found if file not in recorded or file not in found}
    if differing:
        raise InputError(
            f"{few(sorted(differing))}: not the code of {manifest['architecture']} that the checkpoint's manifest "
            "records: it changed during the run; run the same command again"
        )


def _files_of(root, parts):
    # Importing a module runs the packages above it too. The folder itself is none: its __init__.py is never run.
    stems = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return {file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()}


def _modules_named_in(path, root):
    # Modules that a file names, as parts of their names below the folder.
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
                # More dots than packages lead out of the folder, which Python refuses when it gets there.
                if level <= len(package) + 1:
                    yield package[: len(package) + 1 - level] + parts
            elif parts[0] == PACKAGE:
                yield parts[1:]
            else:
                # Without the folder's name they resolve where a file puts its folder, or this one, on sys.path.
                yield parts
                yield package + parts


def _nodes(path):
    text = _content(path)
    try:
        with warnings.catch_warnings():
            # An odd escape in a docstring is no matter of a plan.
            warnings.simplefilter("ignore")
            return ast.walk(ast.parse(text, filename=str(path)))
    # No valid Python: the step that builds the network says so with file and line, other networks do not wait for it.
    # Brackets nested too deep run the parser out of memory of its own.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _content(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
