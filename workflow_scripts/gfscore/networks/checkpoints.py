"""Weights from untrusted checkpoint files: reading without executing code, the state dict in them, and loading."""

import re
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.mappings import without
from gfscore.core.names import shortened
from gfscore.networks.callables import ARGUMENTS_OF_AN_AUDIT
from gfscore.networks.checkpoint_files import NEEDS_PINNED_DIGEST
from gfscore.networks.model_source import Settings
from gfscore.networks.sources.transformers import parts_of

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

WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "params", "last")
"""Keys under which training scripts store the weights of a network, the most specific first."""

AVERAGED = ("state_dict_ema", "ema_state_dict", "model_ema", "ema_model", "ema_model_state_dict", "params_ema", "ema")
"""Keys under which they store the exponential moving average of the weights."""

DEPTH = 4
"""Nested wrappers that are opened."""

COUNTER = "n_averaged"
"""Counter that torch's AveragedModel stores with the weights."""

SHOWN = 3
"""Names that a message lists."""

Content = Any
"""What a checkpoint holds: tensors in nested dicts and lists, of any structure."""

Weights = Mapping[str, Tensor]
"""A state dict: tensors by name."""


# Reading


class _Unused:
    """Inert stand-in for a value that is no tensor: ignores its arguments and state."""

    def __new__(cls, *_: object, **__: object) -> Self:
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def _empty_mapping(*_: object) -> OrderedDict[str, object]:
    return OrderedDict()


def load_checkpoint(settings: Settings, path: Path | str) -> Content:
    """Content of a checkpoint as nested dicts and lists of tensors on the CPU; other values are inert stand-ins.

    Reads safetensors and the formats of torch.save.

    Parameters
    ----------
    settings : mapping
        `trust_pickle` and `sha256`. A file that holds more than tensors and the names in ALLOWED is refused without
        executing anything, unless `trust_pickle` is true and `sha256` is pinned: then it is unpickled in full, which
        executes its code.
    path : Path or str
        The file.

    Raises
    ------
    InputError
        Naming what the file would import; and for a truncated or damaged file.
    """
    trusted = settings.get("trust_pickle", False)
    if trusted and not settings.get("sha256"):
        raise InputError(f"{path}: {NEEDS_PINNED_DIGEST}")
    with Path(path).open("rb") as file:
        head = file.read(9)
    if head[8:] == b"{":
        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged safetensors file ({error}); download or copy it again") from error

    stand_ins: list[Any] = [(_Unused, name) for name in ALLOWED]
    stand_ins += [(_empty_mapping, name) for name in MAPPINGS]
    try:
        with torch.serialization.safe_globals(stand_ins), warnings.catch_warnings():
            # Warnings about archives and protocols, which are followed by an error.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    # An untrusted file may cause an error of any type, MemoryError included.
    except Exception as error:
        if trusted:
            return _unpickle(path, settings["sha256"])
        raise InputError(_refusal(path, error)) from error


def _unpickle(path: Path | str, pinned: str | Sequence[str]) -> Content:
    # Compared again here, since only the pinned digest protects against the file's code.
    digest = sha256_of_file(path)
    digests = [pinned] if isinstance(pinned, str) else pinned
    if digest not in [sha256.lower() for sha256 in digests]:
        raise InputError(f"{path}: sha256 is {digest[:12]}, not a pinned one, so it is not unpickled; correct the pin")
    print(f"{path}: trust_pickle is true and the digest is pinned: unpickling in full")
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise InputError(
            f"{path}: cannot be unpickled even when trusted ({type(error).__name__}: {error}); install the package "
            "that it needs, or convert it to a state dict on the machine where it was saved"
        ) from error


def _refusal(path: Path | str, error: Exception) -> str:
    text = str(error)
    if "TorchScript" in text or "tar" in text.split():
        return (
            f"{path}: refused: a TorchScript or tar archive holds code. If you trust it, save its weights with "
            "torch.save(torch.jit.load(path).state_dict(), other_path), and name the network's code as architecture"
        )
    imported = re.search(r"GLOBAL (\S+)", text)
    if imported:
        return (
            f"{path}: refused, nothing in it was run: besides weights it imports {imported.group(1)}, which could run "
            "code. Request a state dict (torch.save(model.state_dict(), ...)) or a safetensors file; if you "
            "trust it with your account, set trust_pickle: true and pin its sha256 in a configuration "
            "(docs/add-a-model.md)"
        )
    reason = text.strip()
    if not reason or "weights_only" in reason:
        # torch's message about pickles advises to unpickle them.
        reason = type(error).__name__
    first = reason.splitlines()[0][:200]
    return (
        f"{path}: nothing in it was run: damaged or truncated, no PyTorch checkpoint, or of a pickle protocol above 2 "
        f"({first}); download or copy it again, or save it again with the defaults of torch.save"
    )


# The state dict


def weights_of(content: Content, path: Path | str, *, which: str) -> dict[str, Tensor]:
    """State dict in the content of a checkpoint.

    Parameters
    ----------
    content
        Content of a checkpoint, see `load_checkpoint`. A list of one state dict counts as the state dict.
    path : Path or str
        The file, for messages.
    which : str
        "model" for the weights or "ema" for their moving average.

    Raises
    ------
    InputError
        Listing the keys of the content, if it holds no state dict, or the weights of two networks.
    """
    if which == "ema":
        averaged_keys = [key for key in AVERAGED if isinstance(content, Mapping) and key in content]
        if not averaged_keys:
            raise InputError(
                f"{path}: no averaged weights under {', '.join(AVERAGED)}; it has {_keys(content)}; set weights: model"
            )
        content = content[averaged_keys[0]]
    for _ in range(DEPTH):
        content = _module_weights(content)
        if isinstance(content, list | tuple) and len(content) == 1:
            content = content[0]
        elif isinstance(content, Mapping) and not _is_state_dict(content):
            keys = [key for key in WRAPPERS if isinstance(content.get(key), Mapping | list | tuple | nn.Module)]
            if not keys:
                break
            if len(keys) > 1 and all(_is_state_dict(_module_weights(content[key])) for key in keys[:2]):
                raise InputError(
                    f"{path}: holds weights under {keys[0]} and under {keys[1]}; save only those of one network"
                )
            content = content[keys[0]]
    if not _is_state_dict(content):
        raise InputError(
            f"{path}: no state dict found; it has {_keys(content)}; save the weights with "
            "torch.save(model.state_dict(), ...), or under the key state_dict"
        )
    return dict(content)


def _module_weights(value: Content) -> Content:
    # Modules occur in trusted pickles only.
    return value.state_dict() if isinstance(value, nn.Module) else value


def _is_state_dict(content: Content) -> bool:
    if not isinstance(content, Mapping) or not content:
        return False
    return all(isinstance(value, Tensor) for value in content.values())


def stored_weights(settings: Settings, path: Path | str, *, which: str) -> dict[str, Tensor]:
    """State dict of a checkpoint, or of all files that an index names; see `load_checkpoint` and `weights_of`."""
    weights = {}
    for file in parts_of(path) or [Path(path)]:
        weights.update(weights_of(load_checkpoint(settings, file), file, which=which))
    return weights


# Loading


def load_weights(network: nn.Module, weights: Weights, path: Path | str) -> nn.Module:
    """Load a state dict into a network; prefixes common to all names are removed if that makes it fit.

    Parameters
    ----------
    network : torch.nn.Module
    weights : mapping of str to Tensor
    path : Path or str
        The file of the weights, for messages.

    Raises
    ------
    InputError
        Listing the first missing, unexpected and misshapen names, if they do not fit.
    """
    expected = network.state_dict()
    if COUNTER not in expected:
        weights = without(weights, [COUNTER])
    fitting = min(_without_prefixes(weights), key=lambda candidate: len(expected.keys() ^ candidate.keys()))

    # torch before 0.4.1 did not store num_batches_tracked, which evaluation does not use.
    needed = [name for name in expected if not name.endswith("num_batches_tracked")]
    missing = [name for name in needed if name not in fitting]
    unexpected = [name for name in fitting if name not in expected]
    if missing or unexpected:
        remedy = f"name the architecture that they were trained with, with its arguments {ARGUMENTS_OF_AN_AUDIT}"
        # As where a training script stores a loss or a metric beside the network.
        for prefix in sorted({str(name).partition(".")[0] for name in unexpected}):
            if all(f"{prefix}.{name}" in fitting for name in needed):
                remedy = f"those of {prefix} alone fit: save them with torch.save(model.{prefix}.state_dict(), ...)"
        raise InputError(
            f"{path}: the weights do not fit the architecture: missing {_listed(missing)}; unexpected "
            f"{_listed(unexpected)}; {remedy}"
        )

    try:
        _require_shapes(fitting, expected, path)
        require_real_numbers(fitting, expected, path)
        network.load_state_dict(fitting, strict=False)
    except InputError:
        raise
    # torch refuses tensors that are not dense numbers, and architectures may override loading and raise anything.
    except Exception as error:
        # torch names the tensor and the reason below its first line.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"{path}: the weights cannot be loaded into the architecture ({shortened(reason, 400)}); "
            "save them again as dense tensors of numbers, with torch.save(model.state_dict(), ...)"
        ) from error
    return network


def _require_shapes(fitting: Weights, expected: Weights, path: Path | str) -> None:
    misshapen = []
    for name, value in fitting.items():
        if value.shape != expected[name].shape:
            misshapen.append(f"{name} {tuple(value.shape)} instead of {tuple(expected[name].shape)}")
    if misshapen:
        raise InputError(
            f"{path}: the weights have other shapes than the architecture: {_listed(misshapen)}; correct its "
            f"arguments, such as the number of classes, width and input size {ARGUMENTS_OF_AN_AUDIT}"
        )


def require_real_numbers(weights: Weights, expected: Weights, path: Path | str) -> None:
    """Raise InputError for whole numbers of 8 bits where a network has real ones, as of quantised weights.

    Parameters
    ----------
    weights : mapping of str to Tensor
        Weights of the file `path`.
    expected : mapping of str to Tensor
        State dict of the network.
    """
    quantised = []
    for name, value in weights.items():
        is_real = name in expected and expected[name].is_floating_point()
        # Wider whole numbers stand for themselves.
        if is_real and not value.is_floating_point() and value.element_size() == 1:
            quantised.append(f"{name} {value.dtype}".replace("torch.", ""))
    if quantised:
        raise InputError(
            f"{path}: 8-bit whole numbers where the network has real ones: {_listed(quantised)}; quantised weights "
            "mean nothing without their scale: save them in float32 (dequantize()), or export the quantised network as "
            "ONNX"
        )


def _without_prefixes(weights: Weights) -> Iterator[Weights]:
    # DataParallel (module.), torch.compile (_orig_mod.) and other wrappers prefix all names. One at a time, since a
    # hostile file may have a name of a million prefixes.
    yield weights
    while weights and all("." in str(name) for name in weights):
        prefixes = {str(name).partition(".")[0] for name in weights}
        if len(prefixes) > 1:
            return
        weights = {str(name).partition(".")[2]: value for name, value in weights.items()}
        yield weights


def _keys(content: Content) -> str:
    if not isinstance(content, Mapping):
        return f"a {type(content).__name__}"
    return f"the keys {_listed([str(key)[:80] for key in content])}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "nothing"
    listed = ", ".join(map(str, names[:SHOWN]))
    if len(names) > SHOWN:
        return f"{listed} and {len(names) - SHOWN} more"
    return listed
