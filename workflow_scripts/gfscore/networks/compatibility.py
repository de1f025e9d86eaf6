"""Workarounds for importing torchvision and RobustBench where their published packages fail to import.

Each workaround is applied only where it is needed, leaves nothing in sys.modules, and states when it can be removed.
Releases that were not tested are refused.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gfscore.core.errors import InputError

CHECKED = {"robustbench": "1.1.1", "timm": "1.0.9"}
"""Releases with which the workarounds, the table of supported models and the loading procedure were tested."""

INSTALL = "run make setup"

NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
"""Signature of torchvision's two operators for non-maximum suppression."""


def import_torchvision() -> ModuleType:
    """The torchvision module, even if its compiled library does not match the installed torch.

    Raises
    ------
    InputError
        When torchvision is missing or still cannot be imported.
    """
    installed = version_of("torchvision")
    mend_torchvision()
    try:
        return import_module("torchvision")
    except (ImportError, RuntimeError) as error:
        required = "another release"
        for requirement in metadata.requires("torchvision") or []:
            if requirement.startswith("torch"):
                required = requirement
                break
        raise InputError(
            f"torchvision {installed} cannot be imported with torch {torch.__version__} ({error}); it requires "
            f"{required}: install the releases in requirements.lock"
        ) from error


def import_timm() -> ModuleType:
    """The timm module, which imports torchvision.

    Raises
    ------
    InputError
        When timm or torchvision is missing, or torchvision cannot be imported.
    """
    version_of("timm")
    import_torchvision()
    return import_module("timm")


def mend_torchvision() -> None:
    """Make torchvision importable, by any package, where its compiled library cannot be loaded.

    Problem: on import torchvision registers shape functions for two of its compiled operators; if their library cannot
    be loaded (a CUDA build of torchvision with a CPU build of torch), torch raises an error, since the operators do not
    exist. Workaround: declare their signatures first. Models and transforms then work; non-maximum suppression and
    torchvision's image readers do not, and are not used here. It can be removed when torchvision registers these
    functions only if its compiled library was loaded, as it does for its other operators.
    """
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return
    if _compiled_library_loads():
        return
    for operator in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, operator):
            torch.library.define(f"torchvision::{operator}", NMS)


def import_robustbench() -> ModuleType:
    """The robustbench module 1.1.1, on machines with or without a GPU; without network access.

    Problem: it imports `autoattack`, whereas its dependency installs this module as `pyautoattack`. Workaround: a
    stand-in for this module during the import. It can be removed when RobustBench imports `pyautoattack`.

    Raises
    ------
    InputError
        When a package is missing or of a release that was not tested.
    """
    for name, release in CHECKED.items():
        installed = version_of(name)
        if installed != release:
            raise InputError(
                f"{name} {installed} is installed, but only {release} was tested; pip install {name}=={release}, or "
                "run studies/survey_robustbench.py with the new release, compare its table and correct CHECKED in "
                "gfscore/networks/compatibility.py"
            )
    if "robustbench" in sys.modules:
        return sys.modules["robustbench"]
    import_torchvision()
    with _stand_ins(), warnings.catch_warnings():
        # Deprecation warnings, which a user cannot act on.
        warnings.simplefilter("ignore")
        try:
            robustbench: Any = import_module("robustbench")
        except ImportError as error:
            raise InputError(f"robustbench {CHECKED['robustbench']} cannot be imported ({error}); {INSTALL}") from error
    if not hasattr(robustbench.utils, "download_gdrive_new"):
        raise InputError(
            f"{Path(robustbench.__file__).parent}: not the files of robustbench {CHECKED['robustbench']}; torchattacks "
            "overwrites them with an older copy: install it in another environment and reinstall robustbench"
        )
    return robustbench


def version_of(distribution: str) -> str:
    """Release of an installed distribution; raises InputError with the command that installs it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise InputError(f"{distribution} is not installed; {INSTALL}") from error


def _compiled_library_loads() -> bool:
    torchvision: Any = find_spec("torchvision")
    library = PathFinder.find_spec("_C", torchvision.submodule_search_locations)
    if not library:
        return False
    try:
        torch.ops.load_library(library.origin)
    except OSError:
        return False
    return True


@contextmanager
def _stand_ins() -> Iterator[None]:
    modules = {}
    if "autoattack" not in sys.modules and find_spec("autoattack") is None:
        version_of("pyautoattack")
        for name in ("autoattack", "autoattack.state"):
            modules[name] = import_module(f"py{name}")
    sys.modules.update(modules)
    try:
        yield
    finally:
        # Other packages import these names to detect what is installed.
        for name in modules:
            del sys.modules[name]
