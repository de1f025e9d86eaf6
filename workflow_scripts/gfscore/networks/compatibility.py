"""Importing torchvision and RobustBench where their published packages do not import by themselves.

Each mend applies only where it is needed, leaves nothing behind in sys.modules, and says when it can go. A release
that was not checked is refused by name instead of failing somewhere inside.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from gfscore.core.errors import InputError

CHECKED = {"robustbench": "1.1.1", "timm": "1.0.9"}
"""Releases that the mends, the table of supported models and the loading procedure were checked with."""

INSTALL = "run make setup"

NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
"""Signature of torchvision's two non-maximum suppressions, the operators that its Python part describes on import."""


def import_torchvision() -> ModuleType:
    """The torchvision module, also beside a torch for which its compiled part was not built.

    Raises InputError when torchvision is missing or still cannot be imported.
    """
    installed = version_of("torchvision")
    mend_torchvision()
    try:
        return import_module("torchvision")
    except (ImportError, RuntimeError) as error:
        import torch

        wanted = next(
            (r for r in metadata.requires("torchvision") or [] if r.split()[0].startswith("torch")), "another"
        )
        raise InputError(
            f"torchvision {installed} cannot be imported beside torch {torch.__version__} ({error}); it was built for "
            f"{wanted}: install the pair that requirements.lock names"
        ) from error


def mend_torchvision() -> None:
    """Make torchvision importable, by whichever package imports it, where its compiled part cannot load.

    Broken: on import torchvision registers shape functions for two of its compiled operators; where that part cannot
    load (a CUDA build of torchvision beside a CPU build of torch), torch refuses to describe operators that do not
    exist. Mended by declaring their signatures first. Models, transforms and data sets then work; non-maximum
    suppression and torchvision's own image readers do not, and nothing here uses them. The mend can go when
    torchvision registers them only if its compiled part is there, as it already does with its other operators.
    """
    if "torchvision" in sys.modules or find_spec("torchvision") is None or _compiled_part_loads():
        return
    import torch

    for operator in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, operator):
            torch.library.define(f"torchvision::{operator}", NMS)


def import_robustbench() -> ModuleType:
    """The robustbench module 1.1.1, on a machine with GPU or without; reaches no network.

    Broken: it imports `pkg_resources`, which setuptools dropped in release 81, for one file name; and `autoattack`,
    while the distribution that it depends on installs this module as `pyautoattack`. Mended by stand-ins of these
    names during the import. They can go when RobustBench reads its file through importlib.resources, and imports the
    name that it installs. Raises InputError when a package is missing or of a release that was not checked.
    """
    for name, checked in CHECKED.items():
        _require_release(name, checked)
    if "robustbench" in sys.modules:
        return sys.modules["robustbench"]
    import_torchvision()
    with _stand_ins(), warnings.catch_warnings():
        # It uses old names of timm and of the standard library; nothing that a user could change.
        warnings.simplefilter("ignore")
        try:
            robustbench: Any = import_module("robustbench")
        except ImportError as error:
            raise InputError(f"robustbench {CHECKED['robustbench']} cannot be imported ({error}); {INSTALL}") from error
    if not hasattr(robustbench.utils, "download_gdrive_new"):
        raise InputError(
            f"{Path(robustbench.__file__).parent}: not the files of robustbench {CHECKED['robustbench']}; torchattacks "
            "carries an older copy that overwrites them: keep it in another environment and reinstall robustbench"
        )
    return robustbench


def version_of(distribution: str) -> str:
    """Release of an installed distribution; raises InputError with the command that installs it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise InputError(f"{distribution} is not installed; {INSTALL}") from error


def _require_release(name, checked):
    found = version_of(name)
    if found != checked:
        raise InputError(
            f"{name} {found} is installed, but only {checked} was checked; pip install {name}=={checked}, or run "
            "studies/survey_robustbench.py with the new release, compare its table and correct CHECKED in "
            "gfscore/networks/compatibility.py"
        )


def _compiled_part_loads():
    import torch

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
def _stand_ins():
    modules = {}
    if not _exists("pkg_resources"):
        modules["pkg_resources"] = _resources_by_file_name()
    if not _exists("autoattack"):
        version_of("pyautoattack")
        for name in ("autoattack", "autoattack.state"):
            modules[name] = import_module(f"py{name}")
    sys.modules.update(modules)
    try:
        yield
    finally:
        # Other packages ask for these names to find out what is installed.
        for name in modules:
            del sys.modules[name]


def _exists(module):
    return module in sys.modules or find_spec(module) is not None


def _resources_by_file_name():
    module: Any = ModuleType("pkg_resources", "The one function of pkg_resources that RobustBench calls.")
    module.resource_filename = lambda owner, name: str(Path(str(sys.modules[owner].__file__)).parent / name)
    return module
