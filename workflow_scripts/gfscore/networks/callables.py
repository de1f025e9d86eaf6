"""Callables that a configuration may name as an architecture: networks listed by four packages, and project files."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import PACKAGE, folder, source_file_of

if TYPE_CHECKING:
    from torch import nn


FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

ROBUSTBENCH = "robustbench.model_zoo.architectures."
"""Package in which RobustBench defines its networks."""

ALLOWED = (
    "allowed are the classifiers that torchvision.models and timm list (torchvision.models:resnet18, timm:resnet18), "
    f"the classes of torch.nn and of the modules {ROBUSTBENCH}*, and what a file in {PACKAGE}/ defines "
    f"({PACKAGE}.<file>:<callable>): put a function there that builds what you need"
)

PRETRAINED = ("pretrained", "weights", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments that make an architecture download weights."""


ARGUMENTS_OF_AN_AUDIT = "(gfscore audit: by a function FILE.py:NAME that gives them)"
"""Remedy for users of the command, which has no option for arguments."""


def build_architecture(name: str, arguments: Mapping[str, Any], *, any_number_type: bool = False) -> nn.Module:
    """Torch module in eval mode built by an architecture `package.module:callable` from `arguments`.

    Its weights are float32; with `any_number_type` only unless most of them are made in another type of real numbers.
    Raises InputError, naming the callable and the remedy, for one that is not allowed (see `resolve`), for arguments
    that it does not accept or that would download weights, and if the result is no torch module.
    """
    import torch

    from gfscore.networks.number_types import in_float32_unless_other

    downloading = [key for key in PRETRAINED if arguments.get(key)]
    if downloading:
        raise InputError(
            f"architecture {name}: argument {downloading[0]!r} would download weights; remove it, they come from `path`"
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
    if not isinstance(network, torch.nn.Module):
        raise InputError(
            f"architecture {name} returns a {type(network).__name__}; name one that returns a torch.nn.Module"
        )
    return (in_float32_unless_other(network) if any_number_type else network.float()).eval()


def resolve(name: str) -> Callable[..., Any]:
    """Class or function named by an architecture `package.module:callable`.

    Raises InputError for all but those described in ALLOWED; modules of other packages are not imported.
    """
    if not FORM.fullmatch(str(name)):
        raise InputError(
            f"architecture {name!r} is not of the form package.module:callable (torchvision.models:resnet18)"
        )
    module_name, attribute = name.split(":")
    target: Any
    if module_name.split(".")[0] == PACKAGE:
        target = getattr(_project_module(module_name, name), attribute, None)
        # Only what the file defines itself, not what it imports, such as subprocess.
        allowed = (inspect.isclass(target) or inspect.isfunction(target)) and target.__module__.split(".")[0] == PACKAGE
    else:
        target = _listed(module_name, attribute)
        allowed = target is not None
    if target is None and module_name.split(".")[0] == PACKAGE:
        file = source_file_of(name)
        where = file.name if file else module_name
        raise InputError(f"architecture {name}: {where} defines no {attribute}; {ALLOWED}")
    if not allowed:
        raise InputError(f"architecture {name}: does not exist, or a configuration may not name it; {ALLOWED}")
    return target


def _project_module(module_name, name):
    file = source_file_of(name) if "." in module_name else None
    if file is None or not file.resolve().is_relative_to(folder().resolve()):
        raise InputError(f"architecture {name}: no such file in {folder()}/; put {module_name.split('.')[-1]}.py there")
    home = [str(folder().resolve())]
    if getattr(sys.modules.get(PACKAGE), "__path__", None) != home:
        for loaded in [key for key in sys.modules if key.split(".")[0] == PACKAGE]:
            del sys.modules[loaded]
        # Registered explicitly, so that no other package of this name on the search path is imported instead.
        package = types.ModuleType(PACKAGE)
        package.__path__ = home
        sys.modules[PACKAGE] = package
        importlib.invalidate_caches()
    # Network code often imports torchvision, which may need mending for a CPU build of torch.
    from gfscore.networks.compatibility import mend_torchvision

    mend_torchvision()
    try:
        return importlib.import_module(module_name)
    # Imported code may raise anything.
    except Exception as error:
        raise InputError(
            f"architecture {name}: {module_name} cannot be imported ({type(error).__name__}: {error}); install its "
            "dependencies, or correct the file or the name"
        ) from error


def _listed(module_name, attribute):
    # Callable that one of the packages lists under this name, None for any other. The name itself is not imported.
    import torch

    from gfscore.networks.compatibility import import_robustbench, import_torchvision, version_of

    target, top = None, module_name.split(".")[0]
    if top == "torch" and attribute in torch.nn.modules.__all__:
        target = getattr(torch.nn, attribute)
    elif top == "torchvision":
        models = import_torchvision().models
        # Only classifiers: models of the submodules (detection, segmentation, ...) also download weights.
        target = models.get_model_builder(attribute) if attribute in models.list_models(models) else None
    elif top == "timm":
        version_of("timm")
        import_torchvision()
        import timm

        target = timm.model_entrypoint(attribute) if timm.is_model(attribute) else None
    elif module_name.startswith(ROBUSTBENCH):
        import_robustbench()
        value = getattr(sys.modules.get(module_name), attribute, None)
        target = value if inspect.isclass(value) and issubclass(value, torch.nn.Module) else None
    # `module_name` may be the full name of the defining module or a parent package.
    return target if target and f"{target.__module__}.".startswith(f"{module_name}.") else None
