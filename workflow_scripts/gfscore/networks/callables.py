"""Which code a config may name as an architecture: listed networks of four packages, and files of the project."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    from torch import nn

PACKAGE = "architectures"
"""First part of the names that mean the project folder of that name."""

FOLDER_VARIABLE = "GFSCORE_ARCHITECTURES"
"""Environment variable that names another folder; config.yaml cannot."""

FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

ROBUSTBENCH = "robustbench.model_zoo.architectures."
"""First part of the names of modules in which RobustBench defines its networks."""

ALLOWED = (
    "allowed are the classifiers that torchvision.models and timm list (torchvision.models:resnet18, timm:resnet18), "
    f"the classes of torch.nn and of the modules {ROBUSTBENCH}*, and what a file in {PACKAGE}/ defines "
    f"({PACKAGE}.<file>:<callable>): put a function there that builds what you need"
)

PRETRAINED = ("pretrained", "weights", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments that make an architecture fetch weights itself."""


def build_architecture(name: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Network that an architecture `package.module:callable` makes of `arguments`, a torch module in eval mode.

    Raises InputError, naming the callable and the remedy, for one that is not allowed (see `resolve`), for arguments
    that it does not take or that would fetch weights, and when the result is no torch module.
    """
    import torch

    asked = [key for key in PRETRAINED if arguments.get(key)]
    if asked:
        raise InputError(f"architecture {name}: argument {asked[0]!r} would fetch weights; they come from `path`")
    build = resolve(name)
    try:
        network = build(**arguments)
    # Whatever the architecture's code raises, its arguments or itself are at fault, not this project.
    except Exception as error:
        raise InputError(
            f"architecture {name} cannot be built with {arguments} ({type(error).__name__}: {error}); correct its "
            "arguments"
        ) from error
    if not isinstance(network, torch.nn.Module):
        raise InputError(f"architecture {name} gives a {type(network).__name__}, but a torch.nn.Module is needed")
    return network.float().eval()


def resolve(name: str) -> Callable[..., Any]:
    """Class or function that an architecture `package.module:callable` names.

    Raises InputError for all but those that ALLOWED says; modules of other packages are not even imported.
    """
    if not FORM.fullmatch(str(name)):
        raise InputError(
            f"architecture {name!r} has another form than package.module:callable (torchvision.models:resnet18)"
        )
    module_name, attribute = name.split(":")
    found: Any
    if module_name.split(".")[0] == PACKAGE:
        found = getattr(_own_module(module_name, name), attribute, None)
        # Not what the file imports: that a network needs subprocess lets no config call it.
        known = (inspect.isclass(found) or inspect.isfunction(found)) and found.__module__.split(".")[0] == PACKAGE
    else:
        found = _listed(module_name, attribute)
        known = found is not None
    if not known:
        raise InputError(f"architecture {name}: a config may not name this, or it is not there; {ALLOWED}")
    return found


def source_file_of(name: str) -> Path | None:
    """File in architectures/ that an architecture is defined in, relative or absolute as the folder is; else None."""
    module_name = str(name).split(":", maxsplit=1)[0]
    if module_name.split(".")[0] != PACKAGE:
        return None
    stem = folder().joinpath(*module_name.split(".")[1:])
    # In the order in which Python looks.
    return next((file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()), None)


def folder() -> Path:
    """Project folder of architectures, beside config.yaml unless the environment names another."""
    return Path(os.environ.get(FOLDER_VARIABLE, PACKAGE))


def _own_module(module_name, name):
    file = source_file_of(name) if "." in module_name else None
    if file is None or not file.resolve().is_relative_to(folder().resolve()):
        raise InputError(f"architecture {name}: no such file in {folder()}/; put {module_name.split('.')[-1]}.py there")
    home = [str(folder().resolve())]
    if getattr(sys.modules.get(PACKAGE), "__path__", None) != home:
        for loaded in [key for key in sys.modules if key.split(".")[0] == PACKAGE]:
            del sys.modules[loaded]
        # Entered by hand, so that no package of this name elsewhere on the search path comes in its place.
        package = types.ModuleType(PACKAGE)
        package.__path__ = home
        sys.modules[PACKAGE] = package
        importlib.invalidate_caches()
    # Many packages of networks import torchvision, which beside a CPU build of torch may need help.
    from gfscore.networks.compatibility import mend_torchvision

    mend_torchvision()
    try:
        return importlib.import_module(module_name)
    # Foreign code runs at import and may raise anything.
    except Exception as error:
        raise InputError(
            f"architecture {name}: {module_name} cannot be imported ({type(error).__name__}: {error}); install what it "
            "needs, or correct the file or the name"
        ) from error


def _listed(module_name, attribute):
    # What one of the packages lists under this name, None for all else. Nothing is imported by the name given.
    import torch

    from gfscore.networks.compatibility import import_robustbench, import_torchvision, version_of

    found, top = None, module_name.split(".")[0]
    if top == "torch" and attribute in torch.nn.modules.__all__:
        found = getattr(torch.nn, attribute)
    elif top == "torchvision":
        models = import_torchvision().models
        # Of its submodules detection, segmentation and others are left out: they are no classifiers, and fetch weights.
        found = models.get_model_builder(attribute) if attribute in models.list_models(models) else None
    elif top == "timm":
        version_of("timm")
        import_torchvision()
        import timm

        found = timm.model_entrypoint(attribute) if timm.is_model(attribute) else None
    elif module_name.startswith(ROBUSTBENCH):
        import_robustbench()
        there = getattr(sys.modules.get(module_name), attribute, None)
        found = there if inspect.isclass(there) and issubclass(there, torch.nn.Module) else None
    # The module may be named in full, or by the first parts of its name.
    return found if found and f"{found.__module__}.".startswith(f"{module_name}.") else None
