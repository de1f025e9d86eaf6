"""Resumption of an interrupted training after the last saved epoch."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.files import atomic

if TYPE_CHECKING:
    import torch

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
