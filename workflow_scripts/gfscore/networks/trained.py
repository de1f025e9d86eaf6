"""Classifiers of the source `trained`: safetensors files of weights and the arguments to build the network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.networks.architectures import build_network
from gfscore.networks.classifier import Classifier, from_network

if TYPE_CHECKING:
    from torch import nn
import time
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


HEADER_KEY = "gfscore"


def save_classifier(path: Path | str, network: nn.Module, *, metadata: Mapping[str, Any]) -> str:
    """Write a network built by `build_network` to a safetensors file, atomically; returns its sha256 (hex).

    `metadata` is a mapping for JSON, stored with the recipe. Equal weights and metadata give equal bytes.
    """
    from safetensors.torch import save

    # A single key, since the order of safetensors' metadata differs between runs.
    header = json.dumps({"recipe": network.recipe, "metadata": metadata}, sort_keys=True)
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = save(weights, metadata={HEADER_KEY: header})
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier written by train_model; shape and classes are those in its header. InputError as load_network."""
    del settings, image_shape, classes, threads
    network = load_network(path)
    recipe = network.recipe
    shape = (recipe["in_channels"], *recipe["image_size"])
    return from_network(network, architecture=recipe["architecture"], image_shape=shape, classes=recipe["classes"])


def load_network(path: Path | str) -> Any:
    """Trained network in eval mode on the CPU: images (n, C, H, W) in [0, 1] to logits (n, K).

    The result has `recipe` (architecture, in_channels, image_size, classes, arguments) and `metadata`. Raises
    InputError, naming the file and the remedy, for a file not written by `save_classifier`, and for weights that do not
    fit the architecture.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = Path(path).read_bytes()
    header = _header(content, path)
    recipe = header["recipe"]
    network = _built(recipe, path)
    try:
        network.load_state_dict(load(content))
    except (RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{path}: the weights do not fit architecture {recipe['architecture']!r} "
            f"({str(error).splitlines()[0]}); train the model again with this version"
        ) from error
    network.metadata = header["metadata"]
    return network.eval()


def _built(recipe, path):
    try:
        return build_network(
            recipe["architecture"],
            in_channels=recipe["in_channels"],
            image_size=recipe["image_size"],
            classes=recipe["classes"],
            **recipe["arguments"],
        )
    # A recipe of another version may cause any error.
    except Exception as error:
        raise InputError(f"{path}: its network cannot be built ({error}); train the model again") from error


def _header(content, path):
    # safetensors: 8 bytes little-endian length of the JSON header, then the header.
    try:
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8:end])["__metadata__"][HEADER_KEY])
        return {key: header[key] for key in ("recipe", "metadata")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: no header of a classifier trained by this workflow; state the source of its architecture in "
            "config.yaml, or train the model again"
        ) from error


# ---- Resumption of an interrupted training after the last saved epoch.


KEPT_EVERY_S = 20.0
"""Seconds of training between two saves."""


class TrainingProgress:
    """State of a training after an epoch, saved in one file.

    `path` is the file; `identity` a value for JSON of all that determines the result: a state of another identity is
    not used. `every_s` is the time between two saves in seconds. The caller removes the file after the result is
    written (gfscore.measures.progress.forget removes its folder).
    """

    def __init__(self, path: Path | str, identity: object, *, every_s: float = KEPT_EVERY_S) -> None:
        """Nothing is read or written yet."""
        self.path, self.every_s, self._saved = Path(path), every_s, time.monotonic()
        self.identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def keep(
        self, epochs: int, *, parts: Mapping[str, Any], memory: Mapping[str, torch.Tensor], generator: torch.Generator
    ) -> None:
        """Save the state after `epochs` epochs, unless the last save was less than `every_s` ago.

        `parts` maps names to objects with state_dict, `memory` names to tensors; `generator` is a torch Generator.
        """
        if time.monotonic() - self._saved < self.every_s:
            return
        import torch

        states = {name: part.state_dict() for name, part in parts.items()}
        state = {"identity": self.identity, "epochs": epochs, "parts": states, "memory": memory}
        with atomic(self.path) as temporary:
            torch.save(state | {"generator": generator.get_state()}, temporary)
        self._saved = time.monotonic()
        print(f"{epochs} epochs done and saved")

    def restore(
        self, *, parts: Mapping[str, Any], memory: Mapping[str, torch.Tensor], generator: torch.Generator
    ) -> int:
        """Restore the saved state and return its number of epochs; 0 if there is none or it cannot be used."""
        state = self._kept()
        if state is None:
            return 0
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])
        for name, tensor in memory.items():
            tensor.copy_(state["memory"][name])
        generator.set_state(state["generator"])
        print(f"resuming after {state['epochs']} epochs of an earlier attempt")
        return state["epochs"]

    def _kept(self):
        import torch

        if not self.path.is_file():
            return None
        try:
            # torch does not verify the checksums that it writes.
            with zipfile.ZipFile(self.path) as file:
                if wrong := file.testzip():
                    raise ValueError(f"the checksum of {wrong} does not match")
            state = torch.load(self.path, weights_only=True, map_location="cpu")
            same = state["identity"] == self.identity
        # Damaged files raise errors of many types; the training then starts from the beginning.
        except Exception as error:
            print(f"{self.path}: not used, since it is damaged ({error})")
            return None
        if not same:
            print(f"{self.path}: not used, since it belongs to other images, settings or another version")
        return state if same else None
