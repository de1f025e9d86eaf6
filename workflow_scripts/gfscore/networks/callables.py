"""Callables that a configuration may name as an architecture.

Classifiers and layers of torchvision, timm, torch.nn and RobustBench, and what the project's own files define.
"""

import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import PACKAGE, folder, source_file_of
from gfscore.networks.compatibility import import_robustbench, import_timm, import_torchvision, mend_torchvision
from gfscore.networks.model_source import Arguments
from gfscore.networks.number_types import all_in_float32_where_most

FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""Name of an architecture, package.module:callable."""

ROBUSTBENCH = "robustbench.model_zoo.architectures."
"""Package in which RobustBench defines its networks."""

ALLOWED = (
    "allowed are the classifiers that torchvision.models and timm list (torchvision.models:resnet18, timm:resnet18), "
    f"the classes of torch.nn and of the modules {ROBUSTBENCH}*, and what a file in {PACKAGE}/ defines "
    f"({PACKAGE}.<file>:<callable>): put a function there that builds what you need"
)
"""Architectures that a configuration may name, for messages."""

PRETRAINED = ("pretrained", "weights", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments that make an architecture download weights."""

ARGUMENTS_OF_AN_AUDIT = "(gfscore audit: by a function FILE.py:NAME that gives them)"
"""How users of `gfscore audit` set arguments: the command has no option for them."""

Builder = Callable[..., Any]
"""A class or a function that builds a network."""


def build_architecture(name: str, arguments: Arguments, *, any_number_type: bool = False) -> nn.Module:
    """Network in eval mode built by an architecture.

    Parameters
    ----------
    name : str
        `package.module:callable`.
    arguments : mapping
        Keyword arguments of the callable.
    any_number_type : bool
        Whether a network with most weights in another number type than float32 keeps it. All others become float32.

    Raises
    ------
    InputError
        For a callable that is not allowed (see `resolve`), for arguments that it does not accept or that would
        download weights, and for a result that is no torch module; names the callable and the remedy.
    """
    for argument in PRETRAINED:
        if arguments.get(argument):
            raise InputError(
                f"architecture {name}: argument {argument!r} would download weights; remove it, they come from `path`"
            )
    build = resolve(name)
    try:
        network = build(**arguments)
    # The code of an architecture may raise anything.
    except Exception as error:
        raise InputError(
            f"architecture {name} cannot be built with {arguments} ({type(error).__name__}: {error}); correct its "
            f"arguments {ARGUMENTS_OF_AN_AUDIT}"
        ) from error
    if not isinstance(network, nn.Module):
        raise InputError(
            f"architecture {name} returns a {type(network).__name__}; name one that returns a torch.nn.Module"
        )
    if any_number_type:
        return all_in_float32_where_most(network).eval()
    return network.float().eval()


def resolve(name: str) -> Builder:
    """Class or function named by an architecture `package.module:callable`.

    Raises InputError for architectures other than those in ALLOWED, and imports no module of another package.
    """
    if not FORM.fullmatch(str(name)):
        raise InputError(
            f"architecture {name!r} is not of the form package.module:callable (torchvision.models:resnet18)"
        )
    module_name, attribute = name.split(":")
    if module_name.split(".")[0] == PACKAGE:
        return _project_callable(name)
    target = _listed_callable(module_name, attribute)
    # `module_name` may be the module that defines the target, or any package above it.
    if target is None or not f"{target.__module__}.".startswith(f"{module_name}."):
        raise _not_allowed(name)
    return target


def _not_allowed(name: str) -> InputError:
    return InputError(f"architecture {name}: does not exist, or a configuration may not name it; {ALLOWED}")


# Project files


def _project_callable(name: str) -> Builder:
    module_name, attribute = name.split(":")
    file = source_file_of(name) if "." in module_name else None
    if file is None or not file.resolve().is_relative_to(folder().resolve()):
        raise InputError(
            f"architecture {name}: no such file in {folder()}/; put {module_name.rpartition('.')[2]}.py there"
        )
    _register_package()
    # Network code often imports torchvision, which may need mending for a CPU build of torch.
    mend_torchvision()
    try:
        module = importlib.import_module(module_name)
    # Imported code may raise anything.
    except Exception as error:
        raise InputError(
            f"architecture {name}: {module_name} cannot be imported ({type(error).__name__}: {error}); install its "
            "dependencies, or correct the file or the name"
        ) from error

    target = getattr(module, attribute, None)
    if target is None:
        raise InputError(f"architecture {name}: {file.name} defines no {attribute}; {ALLOWED}")
    # Only what the file defines itself, not what it imports, such as subprocess.
    if not inspect.isclass(target) and not inspect.isfunction(target):
        raise _not_allowed(name)
    if target.__module__.split(".")[0] != PACKAGE:
        raise _not_allowed(name)
    return target


def _register_package() -> None:
    # Registered before any import, so that no other package of this name on Python's search path is taken instead.
    search_path = [str(folder().resolve())]
    if getattr(sys.modules.get(PACKAGE), "__path__", None) == search_path:
        return
    for module_name in list(sys.modules):
        if module_name.split(".")[0] == PACKAGE:
            del sys.modules[module_name]
    package = types.ModuleType(PACKAGE)
    package.__path__ = search_path
    sys.modules[PACKAGE] = package
    importlib.invalidate_caches()


# Installed packages


def _listed_callable(module_name: str, attribute: str) -> Builder | None:
    # The callable where one of the packages lists it; None for any other. `module_name` is compared, never imported.
    package = module_name.partition(".")[0]
    if package == "torch" and attribute in nn.modules.__all__:
        return getattr(torch.nn, attribute)
    if package == "torchvision":
        models = import_torchvision().models
        # Only classifiers: models of the submodules (detection, segmentation, ...) also download weights.
        if attribute in models.list_models(models):
            return models.get_model_builder(attribute)
    if package == "timm":
        timm = import_timm()
        if timm.is_model(attribute):
            return timm.model_entrypoint(attribute)
    if module_name.startswith(ROBUSTBENCH):
        import_robustbench()
        network_class = getattr(sys.modules.get(module_name), attribute, None)
        if inspect.isclass(network_class) and issubclass(network_class, nn.Module):
            return network_class
    return None
