"""The project folder of architectures: source files that define a network, without executing them, and their digest."""

import ast
import hashlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from gfscore.core.errors import InputError, few
from gfscore.networks.model_source import Manifest

PACKAGE = "architectures"
"""First part of module names that refer to the project folder of this name."""

FOLDER_VARIABLE = "GFSCORE_ARCHITECTURES"
"""Environment variable that names another folder."""

PROJECT_MODULE = re.compile(rf"{PACKAGE}(\.\w+)+")

ModuleParts = tuple[str, ...]
"""Name of a module below the folder, at its dots."""


class SourceFile(TypedDict):
    """A source file of a network, as manifests hold it: path (architectures/...) and SHA-256 (hex)."""

    path: str
    sha256: str


class NetworkDescription(TypedDict, total=False):
    """Digest of the code of a network, as manifests hold it; empty for a network of an installed package.

    Attributes
    ----------
    architecture_sha256 : str
        The output of `sha256sum <paths> | sha256sum`.
    architecture_files : list of SourceFile
        Sorted by path.
    """

    architecture_sha256: str
    architecture_files: list[SourceFile]


def folder() -> Path:
    """Project folder of architectures, in the working directory unless the environment names another."""
    return Path(os.environ.get(FOLDER_VARIABLE, PACKAGE))


def source_file_of(name: str) -> Path | None:
    """File of the folder that defines an architecture; None for an architecture of an installed package."""
    package, *module_path = str(name).split(":", maxsplit=1)[0].split(".")
    if package != PACKAGE:
        return None
    stem = folder().joinpath(*module_path)
    # In the order of Python's import system.
    for file in (stem / "__init__.py", stem.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def network_files(name: str) -> list[Path]:
    """Files that define an architecture: its module and the modules of the folder that it imports, directly or not.

    Follows imports anywhere in a file, relative ones too, the `__init__.py` of parent packages, and quoted module names
    (for importlib). A file that is not valid Python is included, but not followed.

    Parameters
    ----------
    name : str
        `package.module:callable`.

    Returns
    -------
    list of Path
        Sorted, relative or absolute as the folder is; empty for a network of an installed package.

    Raises
    ------
    InputError
        For a file that cannot be read.
    """
    package, *module_path = str(name).split(":", maxsplit=1)[0].split(".")
    if package != PACKAGE:
        return []
    root = folder()
    visited: set[Path] = set()
    waiting = _files_of(root, tuple(module_path))
    while waiting:
        path = waiting.pop()
        visited.add(path)
        for imported in _imported_modules(path, root):
            waiting |= _files_of(root, imported) - visited
    return sorted(visited)


def describe_network(name: str) -> NetworkDescription:
    """Digest of the code of an architecture `package.module:callable`, for a manifest; wherever the folder is."""
    files: list[SourceFile] = []
    for path in network_files(name):
        relative = path.relative_to(folder()).as_posix()
        digest = hashlib.sha256(_content(path)).hexdigest()
        files.append({"path": f"{PACKAGE}/{relative}", "sha256": digest})
    if not files:
        return {}
    files.sort(key=lambda file: file["path"])
    lines = "".join(f"{file['sha256']}  {file['path']}\n" for file in files)
    return {
        "architecture_sha256": hashlib.sha256(lines.encode()).hexdigest(),
        "architecture_files": files,
    }


def require_network(manifest: Manifest) -> None:
    """Refuse a network whose code differs from the digests in the manifest of its checkpoint.

    A manifest without digests (a network of an installed package) is not compared.

    Raises
    ------
    InputError
        Naming the files that differ.
    """
    recorded = manifest.get("architecture_files")
    if recorded is None:
        return
    present = describe_network(manifest["architecture"]).get("architecture_files", [])
    differing = set()
    for file in recorded + present:
        if file not in recorded or file not in present:
            differing.add(file["path"])
    if differing:
        raise InputError(
            f"{few(sorted(differing))}: differs from the code of {manifest['architecture']} in the checkpoint's "
            "manifest, so it changed during the run; run the same command again"
        )


def _files_of(root: Path, module_path: ModuleParts) -> set[Path]:
    # Importing a module also runs its parent packages, except the folder itself, whose __init__.py is never run.
    files = set()
    for depth in range(1, len(module_path) + 1):
        stem = root.joinpath(*module_path[:depth])
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if file.is_file():
                files.add(file)
    return files


def _imported_modules(path: Path, root: Path) -> Iterator[ModuleParts]:
    # Modules of the folder that imports in a file may mean.
    text = _content(path)
    try:
        with warnings.catch_warnings():
            # Ignore invalid escapes in docstrings.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=str(path))
    # Not valid Python: the step that builds the network reports it. Brackets nested too deep raise MemoryError.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return

    package = path.relative_to(root).parent.parts
    for node in ast.walk(tree):
        level = 0
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            level = node.level
            base = f"{node.module}." if node.module else ""
            names = [base + alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PROJECT_MODULE.fullmatch(node.value):
            names = [node.value]
        else:
            continue

        # More dots than parent packages leave the folder, which Python refuses at import.
        if level > len(package) + 1:
            continue
        for name in names:
            module_path = tuple(name.split("."))
            if level:
                yield package[: len(package) + 1 - level] + module_path
            elif module_path[0] == PACKAGE:
                yield module_path[1:]
            else:
                # Without the folder's name, it may resolve if a file adds a folder to sys.path.
                yield module_path
                yield package + module_path


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
