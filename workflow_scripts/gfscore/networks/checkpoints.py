"""Reading of weights from untrusted checkpoint files without executing code that they contain."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file
from gfscore.networks.checkpoint_files import NEEDS_PINNED_DIGEST

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
