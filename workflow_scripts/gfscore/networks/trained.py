"""Classifiers of the source `trained`: files of weights and the arguments to build the network; and training progress.

The files are safetensors. Progress of an interrupted training is kept in a file of torch.
"""

import hashlib
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.networks.architectures import NetworkRecipe, build_network
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.model_source import Manifest, Settings

HEADER_KEY = "gfscore"

SAVE_EVERY_S = 20.0
"""Seconds of training between two saves."""


# Trained networks


def save_classifier(path: Path | str, network: nn.Module, *, metadata: Manifest) -> str:
    """Write a trained network to a safetensors file, atomically.

    Parameters
    ----------
    path : Path or str
        The file.
    network : torch.nn.Module
        With a `recipe`; see `build_network`.
    metadata : mapping
        A mapping for JSON, stored with the recipe.

    Returns
    -------
    str
        SHA-256 (hex) of the file. Equal weights and metadata give equal bytes.
    """
    return save_network(path, network, {"recipe": network.recipe, "metadata": metadata})


def save_network(path: Path | str, network: nn.Module, header: Mapping[str, object]) -> str:
    """Write weights to a safetensors file with a header for JSON, atomically; returns its SHA-256 (hex)."""
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    # A single key, since the order of safetensors' metadata differs between runs.
    content = save(weights, metadata={HEADER_KEY: json.dumps(header, sort_keys=True)})
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def header_of(path: Path | str) -> Any:
    """Header of a file that `save_network` wrote; any other file may raise SafetensorError, KeyError or TypeError."""
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()[HEADER_KEY])


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier that train_model wrote; InputError as `load_network`.

    The arguments that all sources get are not used: the header of the file says what the network is.
    """
    del settings, image_shape, classes, threads
    network = load_network(path)
    recipe = cast(NetworkRecipe, network.recipe)
    height, width = recipe["image_size"]
    return from_network(
        network,
        architecture=recipe["architecture"],
        image_shape=(recipe["in_channels"], height, width),
        classes=recipe["classes"],
    )


def open_network(settings: Settings, path: Path | str, *, classes: int) -> nn.Module:
    """Trained network, as `load_network` returns it; `settings` and `classes` are not used."""
    del settings, classes
    return load_network(path)


def load_network(path: Path | str) -> nn.Module:
    """Trained network in eval mode on the CPU: images (n, C, H, W) in [0, 1] to logits (n, K).

    Returns
    -------
    torch.nn.Module
        With the attributes `recipe` (architecture, in_channels, image_size, classes, arguments) and `metadata`.

    Raises
    ------
    InputError
        Naming file and remedy: for a file that `save_classifier` did not write, and for weights that do not fit the
        architecture.
    """
    try:
        header = header_of(path)
        recipe, metadata = header["recipe"], header["metadata"]
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: no header of a classifier trained by this workflow; state the source of its architecture in "
            "config.yaml, or train the model again"
        ) from error
    try:
        network = build_network(
            recipe["architecture"],
            in_channels=recipe["in_channels"],
            image_size=recipe["image_size"],
            classes=recipe["classes"],
            **recipe["arguments"],
        )
    # A recipe of another version may cause any error.
    except Exception as error:
        raise InputError(f"{path}: its network cannot be built ({error}); train the model again") from error
    try:
        network.load_state_dict(load_file(path))
    except (RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{path}: the weights do not fit architecture {recipe['architecture']!r} "
            f"({str(error).splitlines()[0]}); train the model again with this version"
        ) from error
    network.metadata = metadata
    return network.eval()


# Progress of a training


Stateful = nn.Module | torch.optim.Optimizer | LRScheduler | torch.amp.GradScaler
"""What a training changes: networks, optimisers, schedules."""


class TrainingProgress:
    """State of a training after an epoch, saved in one file.

    The caller removes the file after the result is written (`remove_progress` removes its folder).

    Parameters
    ----------
    path : Path or str
        The file. Nothing is read or written yet.
    identity : object
        A value for JSON of all that determines the result: a state of another identity is not used.
    every_s : float
        Seconds between two saves.
    """

    def __init__(self, path: Path | str, identity: object, *, every_s: float = SAVE_EVERY_S) -> None:
        self.path = Path(path)
        self.identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self.every_s = every_s
        self._last_save = time.monotonic()

    def save(
        self,
        epochs: int,
        *,
        objects: Mapping[str, Stateful],
        memory: Mapping[str, Tensor],
        generator: torch.Generator,
    ) -> None:
        """Save the state after `epochs` epochs, unless the last save was less than `every_s` ago.

        Parameters
        ----------
        epochs : int
        objects : mapping
            Objects with a state, by name.
        memory : mapping of str to Tensor
            What the method remembers between epochs; `restore` writes into these tensors.
        generator : torch.Generator
            Source of the random draws.
        """
        if time.monotonic() - self._last_save < self.every_s:
            return
        state = {
            "identity": self.identity,
            "epochs": epochs,
            "parts": {name: item.state_dict() for name, item in objects.items()},
            "memory": memory,
            "generator": generator.get_state(),
        }
        with atomic(self.path) as temporary:
            torch.save(state, temporary)
        self._last_save = time.monotonic()
        print(f"{epochs} epochs done and saved")

    def restore(
        self, *, objects: Mapping[str, Stateful], memory: Mapping[str, Tensor], generator: torch.Generator
    ) -> int:
        """Restore the saved state in place; returns its number of epochs, 0 without a state that can be used."""
        state = self._saved_state()
        if state is None:
            return 0
        for name, item in objects.items():
            item.load_state_dict(state["parts"][name])
        for name, tensor in memory.items():
            tensor.copy_(state["memory"][name])
        generator.set_state(state["generator"])
        print(f"resuming after {state['epochs']} epochs of an earlier attempt")
        return state["epochs"]

    def _saved_state(self) -> dict[str, Any] | None:
        if not self.path.is_file():
            return None
        try:
            # torch does not verify the checksums that it writes.
            with zipfile.ZipFile(self.path) as file:
                damaged = file.testzip()
            if damaged:
                raise ValueError(f"the checksum of {damaged} does not match")
            state = torch.load(self.path, weights_only=True, map_location="cpu")
            identity = state["identity"]
        # Damaged files raise errors of many types; the training then starts from the beginning.
        except Exception as error:
            print(f"{self.path}: not used, since it is damaged ({error})")
            return None
        if identity != self.identity:
            print(f"{self.path}: not used, since it belongs to other images, settings or another version")
            return None
        return state
