"""Which code a config may name as an architecture: networks of installed packages, and the project's own.

Everything else (the standard library, loose files, functions that load or run other things) is refused before it is
called, and the standard library before it is imported.
"""

import dis
import importlib
import inspect
import os
import re
import sys
import types
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from gfscore.core.errors import InputError

PACKAGE = "architectures"
"""First part of the names that mean the project folder of that name."""

FOLDER_VARIABLE = "GFSCORE_ARCHITECTURES"
"""Environment variable that names another folder; config.yaml cannot."""

FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

RUNS_OTHERS = {
    *("exec", "eval", "__import__", "import_module", "load", "loads", "Unpickler", "open", "urlopen", "urlretrieve"),
    *("from_pretrained", "load_state_dict_from_url", "system", "popen", "Popen", "check_output", "check_call", "run"),
}
"""Names that no code which builds a network needs, and code does that runs a text, a file or another program."""

FETCHES_WEIGHTS = {"load_state_dict_from_url"}
"""Names that a function may use which has an argument of PRETRAINED that is off unless asked for."""

GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME", "IMPORT_FROM"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"}
"""Instructions of Python that take something by its name: from a module, or from an object."""

PRETRAINED = ("pretrained", "weights", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments that make an architecture fetch weights itself."""


def build_architecture(name, arguments):
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


def resolve(name):
    """Class or function that an architecture `package.module:callable` names.

    Allowed are networks (subclasses of torch.nn.Module) and functions defined in a module that defines networks, of a
    package that pip installed, of torch itself only the classes of torch.nn, and no private names; and classes and
    functions of the folder architectures/. Raises InputError for others.
    """
    if not FORM.fullmatch(str(name)):
        raise InputError(
            f"architecture {name!r} has another form than package.module:callable (torchvision.models:resnet18)"
        )
    module_name, attribute = name.split(":")
    own = module_name.split(".")[0] == PACKAGE
    if not own and any(part.startswith("_") for part in (*module_name.split("."), attribute)):
        raise InputError(f"architecture {name}: a name that begins with _ is private to its package; name a public one")
    module = _own_module(module_name, name) if own else _installed_module(module_name, name)
    found = getattr(module, attribute, None)
    if found is None:
        raise InputError(f"architecture {name}: {module_name} has no {attribute!r}; correct the name")
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        raise InputError(f"architecture {name} is a {type(found).__name__}, but a class or a function is needed")
    _require_network(found, name, own=own)
    return found


def source_file_of(name):
    """File in architectures/ that an architecture is defined in, relative or absolute as the folder is; else None."""
    module_name = str(name).split(":", maxsplit=1)[0]
    if module_name.split(".")[0] != PACKAGE:
        return None
    stem = folder().joinpath(*module_name.split(".")[1:])
    # In the order in which Python looks.
    return next((file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()), None)


def folder():
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
    return _import(module_name, name)


def _installed_module(module_name, name):
    top = module_name.split(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        raise InputError(
            f"architecture {name}: {top} is the standard library, which holds no networks; name an installed package, "
            f"or {PACKAGE}.<file>:<callable>"
        )
    distributions = metadata.packages_distributions().get(top, [])
    if not distributions:
        raise InputError(
            f"architecture {name}: no installed package provides {top!r}; install it, or put the definition into "
            f"{PACKAGE}/ and name it {PACKAGE}.<file>:<callable>"
        )
    homes = [Path(metadata.distribution(one).locate_file("")).resolve() for one in distributions]
    spec = find_spec(top)
    files = [spec.origin] if spec and spec.origin else [*(spec.submodule_search_locations or [])] if spec else []
    # Neither a file of the same name beside the workflow nor an editable install: their code may change unseen.
    if not files or not all(any(Path(file).resolve().is_relative_to(home) for home in homes) for file in files):
        raise InputError(
            f"architecture {name}: {top} is found outside the installed packages; install it properly, or put the "
            f"definition into {PACKAGE}/"
        )
    return _import(module_name, name)


def _import(module_name, name):
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


def _require_network(found, name, *, own):
    import torch

    if inspect.isclass(found):
        if not issubclass(found, torch.nn.Module):
            raise InputError(
                f"architecture {name} is no torch.nn.Module; name a network or a function that returns one"
            )
        # torch.fx, torch.jit and others hold modules that are made of code given as text, other packages heirs of them.
        # What the project's own code makes of them is its own affair.
        lines = [f"{one.__module__}." for one in ([found] if own else found.__mro__)]
        if any(line.startswith("torch.") and not line.startswith("torch.nn.") for line in lines):
            raise InputError(f"architecture {name}: of torch only the classes of torch.nn are allowed, and their heirs")
        if not own:
            oldest_first = found.__mro__[::-1]
            made = [vars(one).get(way) for one in oldest_first for way in ("__new__", "__init__")]
            methods = {key: value for one in oldest_first for key, value in vars(one).items()}
            _require_own_work(found, made, name, methods=methods)
        return
    home = sys.modules.get(found.__module__)
    if own:
        allowed = found.__module__.split(".")[0] == PACKAGE
    else:
        # torch.hub:load, torch:load, timm's hub and joblib:load would pass as installed functions: what loads or runs
        # other things stands in modules of its own, an architecture stands beside its network.
        top = name.split(":")[0].split(".")[0]
        allowed = found.__module__.split(".")[0] == top != "torch" and _defines_networks(home, torch.nn.Module)
    if not allowed:
        raise InputError(
            f"architecture {name}: its module {found.__module__} defines no networks, so it is not called; name the "
            f"network's own module, or wrap it in a function in {PACKAGE}/"
        )
    if not own:
        _require_own_work(found, [found], name)


def _require_own_work(found, functions, name, *, methods=None):
    # torch's own constructors are not asked: what they do is known.
    functions = [one for one in map(_function_of, functions) if one]
    methods = {key: one for key, value in (methods or {}).items() if (one := _function_of(value))}
    switches = [inspect.signature(found).parameters.get(key) for key in PRETRAINED]
    harmless = FETCHES_WEIGHTS if any(one and not one.default for one in switches) else set()
    if runs := sorted(RUNS_OTHERS.intersection(_names_used_by(functions, methods)) - harmless):
        raise InputError(
            f"architecture {name}: its code uses {runs[0]}, which runs or reads other things than a network; wrap it "
            f"in a function in {PACKAGE}/ if you trust it"
        )


def _function_of(value):
    # What a static or class method holds; None for what is no function, or torch's own.
    function = getattr(value, "__func__", value)
    return function if inspect.isfunction(function) and function.__module__.split(".")[0] != "torch" else None


def _names_used_by(functions, methods):
    # Names that their code takes, that of the functions inside them, and of the functions of their module and the
    # `methods` (by name) that they name.
    seen, found = set(), set()
    while functions:
        function = inspect.unwrap(functions.pop())
        if function in seen:
            continue
        seen.add(function)
        taken, attributes = _names_in(function.__code__)
        named = [function.__globals__.get(one) for one in taken]
        functions += [one for one in named if inspect.isfunction(one) and one.__module__ == function.__module__]
        functions += [methods[one] for one in attributes if one in methods]
        # Every network has a method eval.
        found |= taken | attributes - {"eval"}
    return found


def _names_in(code):
    taken, attributes = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in GLOBALS:
            taken.add(step.argval)
        elif step.opname in ATTRIBUTES:
            attributes.add(step.argval)
        elif isinstance(step.argval, types.CodeType):
            inner = _names_in(step.argval)
            taken, attributes = taken | inner[0], attributes | inner[1]
    return taken, attributes


def _defines_networks(module, base):
    return any(
        inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
        for value in vars(module).values()
    )
