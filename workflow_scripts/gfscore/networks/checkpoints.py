"""Reading of weights from untrusted checkpoint files without executing code that they contain."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.callables import ARGUMENTS_OF_AN_AUDIT
from gfscore.networks.checkpoint_files import NEEDS_PINNED_DIGEST

if TYPE_CHECKING:
    import torch


ALLOWED = {
    "argparse.Namespace": "the options of the training script, kept beside the weights",
    "types.SimpleNamespace": "the same",
    "pathlib.PosixPath": "a folder among those options",
    "pathlib.WindowsPath": "the same",
    "pathlib.PurePosixPath": "the same",
    "numpy.core.multiarray.scalar": "an accuracy or a loss as a numpy number",
    "numpy._core.multiarray.scalar": "the same, written with numpy 2",
    "numpy.core.multiarray._reconstruct": "a history of losses as a numpy array",
    "numpy._core.multiarray._reconstruct": "the same, written with numpy 2",
    "numpy.ndarray": "the type of such an array",
    "numpy.dtype": "the type of such numbers",
    "datetime.datetime": "when it was trained",
    "datetime.timedelta": "how long that took",
    "builtins.int": "the default of a defaultdict in an optimiser's state",
    "builtins.float": "the same",
    "builtins.dict": "the same",
    "builtins.list": "the same",
}
"""Names that real checkpoints contain besides tensors, and why. They are replaced by inert stand-ins."""

MAPPINGS = {"collections.defaultdict": "the state of an optimiser"}
"""Names of mappings, which are replaced by empty dicts."""


class _Unused:
    """Inert stand-in for a value that is no tensor: ignores its arguments and state."""

    def __new__(cls, *_: object, **__: object) -> Self:
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def load_checkpoint(settings: Mapping[str, Any], path: Path | str) -> Any:
    """Content of a checkpoint as nested dicts and lists of tensors on the CPU; other values are inert stand-ins.

    Reads safetensors and the formats of torch.save. `settings`: `trust_pickle` and `sha256`. A file that holds more
    than tensors and the names in ALLOWED is refused without executing anything, unless `trust_pickle` is true and
    `sha256` is pinned: then it is unpickled in full, which executes its code. Raises InputError, naming what the file
    would import, and for a truncated or damaged file.
    """
    trusted = settings.get("trust_pickle", False)
    if trusted and not settings.get("sha256"):
        raise InputError(f"{path}: {NEEDS_PINNED_DIGEST}")
    with Path(path).open("rb") as file:
        head = file.read(9)
    if head[8:] == b"{":
        return _safetensors(path)
    import torch

    stand_ins: list[Any] = [(_Unused, name) for name in ALLOWED] + [(_empty_mapping, name) for name in MAPPINGS]
    try:
        with torch.serialization.safe_globals(stand_ins), warnings.catch_warnings():
            # Warnings about archives and protocols, which are followed by an error.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    # An untrusted file may cause an error of any type, MemoryError included.
    except Exception as error:
        if trusted:
            return _unpickled(path, settings["sha256"])
        raise InputError(_refusal(path, error)) from error


def _empty_mapping(*_):
    return OrderedDict()


def _safetensors(path):
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged safetensors file ({error}); download or copy it again") from error


def _unpickled(path, pinned):
    import torch

    # Compared again here, since only the pinned digest protects against the file's code.
    digest = sha256_of_file(path)
    if digest not in [known.lower() for known in ([pinned] if isinstance(pinned, str) else pinned)]:
        raise InputError(f"{path}: sha256 is {digest[:12]}, not a pinned one, so it is not unpickled; correct the pin")
    print(f"{path}: trust_pickle is true and the digest is pinned: unpickling in full")
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise InputError(
            f"{path}: cannot be unpickled even when trusted ({type(error).__name__}: {error}); install the package "
            "that it needs, or convert it to a state dict on the machine where it was saved"
        ) from error


def _refusal(path, error):
    text = str(error)
    if "TorchScript" in text or "tar" in text.split():
        return (
            f"{path}: refused: a TorchScript or tar archive holds code. If you trust it, save its weights with "
            "torch.save(torch.jit.load(path).state_dict(), other_path), and name the network's code as architecture"
        )
    named = re.search(r"GLOBAL (\S+)", text)
    if named:
        return (
            f"{path}: refused, nothing in it was run: besides weights it imports {named.group(1)}, which could run "
            "code. Request a state dict (torch.save(model.state_dict(), ...)) or a safetensors file; if you "
            "trust it with your account, set trust_pickle: true and pin its sha256 in a configuration "
            "(docs/add-a-model.md)"
        )
    # torch's message about pickles advises to unpickle them.
    first = type(error).__name__ if not text or "weights_only" in text else text.strip().splitlines()[0][:200]
    return (
        f"{path}: nothing in it was run: damaged or truncated, no PyTorch checkpoint, or of a pickle protocol above 2 "
        f"({first}); download or copy it again, or save it again with the defaults of torch.save"
    )


# Extraction of weights from the content of a checkpoint (wrappers, averaged weights), and loading them
# (prefixes).


WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "params", "last")
"""Keys under which training scripts store the weights of a network, the most specific first."""

AVERAGED = ("state_dict_ema", "ema_state_dict", "model_ema", "ema_model", "ema_model_state_dict", "params_ema", "ema")
"""Keys under which they store the exponential moving average of the weights."""

COUNTER = "n_averaged"
"""Counter that torch's AveragedModel stores with the weights."""

SHOWN = 3


def weights_of(content: Any, path: Path | str, *, which: str) -> dict[str, torch.Tensor]:
    """State dict (tensors by name) in the content of a checkpoint.

    `which` is "model" for the weights or "ema" for their moving average. A list of one state dict counts as that one.
    Raises InputError, listing the keys of the content, if there is none.
    """
    found = content
    if which == "ema":
        if not isinstance(content, Mapping) or not (keys := [key for key in AVERAGED if key in content]):
            raise InputError(
                f"{path}: no averaged weights under {', '.join(AVERAGED)}; it has {_keys(content)}; set weights: model"
            )
        found = content[keys[0]]
    # Nested wrappers, up to a depth of 4.
    for _ in range(4):
        found = _module_weights(found)
        if isinstance(found, list | tuple) and len(found) == 1:
            found = found[0]
        elif isinstance(found, Mapping) and not _is_state_dict(found):
            inner = [
                key for key in WRAPPERS if isinstance(found.get(key), Mapping | list | tuple) or _module(found.get(key))
            ]
            if not inner:
                break
            if len(inner) > 1 and all(_is_state_dict(_module_weights(found[key])) for key in inner[:2]):
                raise InputError(
                    f"{path}: holds weights under {inner[0]} and under {inner[1]}; save only those of one network"
                )
            found = found[inner[0]]
    if not isinstance(found, Mapping) or not _is_state_dict(found):
        raise InputError(
            f"{path}: no state dict found; it has {_keys(found)}; save the weights with "
            "torch.save(model.state_dict(), ...), or under the key state_dict"
        )
    return dict(found)


def load_weights(network: torch.nn.Module, weights: Mapping[str, torch.Tensor], path: Path | str) -> torch.nn.Module:
    """Load a state dict into a network; prefixes common to all names are removed if that makes it fit.

    Raises InputError, listing the first missing, unexpected and misshapen names, if it does not fit.
    """
    wanted = network.state_dict()
    for name, value in weights.items():
        _require_plain(name, value, path)
    weights = {name: value for name, value in weights.items() if name != COUNTER or name in wanted}
    fitting = min(_without_prefixes(weights), key=lambda named: len(wanted.keys() ^ named.keys()))
    # torch before 0.4.1 did not store this counter, which evaluation does not use.
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    missing = [name for name in needed if name not in fitting]
    unexpected = [name for name in fitting if name not in wanted]
    if missing and (beside := _beside_a_prefix(weights, needed)):
        prefix, others = beside
        raise InputError(
            f"{path}: the weights fit under {prefix}*, but the file also holds {_listed(others)}; save only the state "
            "dict of the network"
        )
    if missing or unexpected:
        raise InputError(
            f"{path}: the weights do not fit the architecture: missing {_listed(missing)}; unexpected "
            f"{_listed(unexpected)}; name the architecture that they were trained with, with its arguments "
            f"{ARGUMENTS_OF_AN_AUDIT}"
        )
    misshapen = [
        f"{name} {tuple(value.shape)} instead of {tuple(wanted[name].shape)}"
        for name, value in fitting.items()
        if value.shape != wanted[name].shape
    ]
    if misshapen:
        raise InputError(
            f"{path}: the weights have other shapes than the architecture: {_listed(misshapen)}; correct its "
            f"arguments, such as the number of classes, width and input size {ARGUMENTS_OF_AN_AUDIT}"
        )
    if changed := changed_by_loading(fitting, wanted):
        stored = str(fitting[changed[0]].dtype).removeprefix("torch.")
        raise InputError(
            f"{path}: weights have another type than in the architecture: {_listed(changed)} ({stored}); save them as "
            "floating-point numbers"
        )
    try:
        network.load_state_dict(fitting, strict=False)
    # Architectures may override loading and raise anything.
    except Exception as error:
        raise InputError(
            f"{path}: the weights cannot be loaded into the architecture ({type(error).__name__}: {str(error)[:200]}); "
            "save them again with torch.save(model.state_dict(), ...)"
        ) from error
    return network


def changed_by_loading(weights: Mapping[str, Any], wanted: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of the tensors whose values would change in loading: complex and boolean ones for real parameters.

    Takes two state dicts, that of a file and that of the network; names that only one of them has are ignored.
    """
    import torch

    def is_changed(value: torch.Tensor, place: torch.Tensor) -> bool:
        # torch drops imaginary parts, and converts booleans to 0 and 1.
        if value.is_complex():
            return not place.is_complex()
        return value.dtype == torch.bool and place.dtype != torch.bool

    both = [name for name in weights if name in wanted and torch.is_tensor(weights[name])]
    return [name for name in both if is_changed(weights[name], wanted[name])]


def _require_plain(name, value, path):
    import torch

    kinds = {
        "nested": value.is_nested, "quantized": value.is_quantized, "without values (meta)": value.is_meta,
        "sparse": value.layout != torch.strided,
    }  # fmt: skip
    if kind := next((kind for kind, is_so in kinds.items() if is_so), None):
        raise InputError(
            f"{path}: {str(name)[:80]} is a tensor that is {kind}; save the weights as dense tensors of numbers"
        )


def _is_state_dict(content):
    import torch

    return bool(content) and all(isinstance(value, torch.Tensor) for value in content.values())


def _module(value):
    import torch

    return isinstance(value, torch.nn.Module)


def _module_weights(value):
    # Modules occur in trusted pickles only.
    return value.state_dict() if _module(value) else value


def _without_prefixes(weights):
    # DataParallel (module.), torch.compile (_orig_mod.) and other wrappers prefix all names.
    named = weights
    yield named
    while named and all("." in str(name) for name in named) and len({str(n).partition(".")[0] for n in named}) == 1:
        named = {str(name).partition(".")[2]: value for name, value in named.items()}
        yield named


def _beside_a_prefix(weights, needed):
    # First prefix (in the order of the file) under which all needed names are, and the names outside it,
    # `(prefix, names)`; None without one.
    first = needed[0]
    for prefix in (str(name).removesuffix(first) for name in weights if str(name).endswith(first)):
        if prefix and all(prefix + name in weights for name in needed):
            return prefix, [name for name in weights if not str(name).startswith(prefix)]
    return None


def _keys(content):
    if not isinstance(content, Mapping):
        return f"a {type(content).__name__}"
    return f"the keys {_listed([str(key)[:80] for key in content])}"


def _listed(names):
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(map(str, names[:SHOWN])) or "nothing") + more
