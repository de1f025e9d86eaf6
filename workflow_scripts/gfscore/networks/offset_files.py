"""Files of chosen class offsets: what choose_offsets writes, and what opens a model with offsets reads.

Imports nothing heavy: tables of remedies read these files too.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.settings import Closed, first_fault
from gfscore.networks.model_source import Manifest
from gfscore.networks.offset_settings import OffsetSettings


class OffsetRound(Closed):
    """One round of attack and adjustment (see gfscore.remedies.offsets.Round)."""

    offsets: list[float] = Field(description="Number added to each logit; they sum to 0.")
    values: list[float] = Field(description="Robust accuracy of each class on the choosing images.")
    clean_accuracy: list[float] = Field(description="Accuracy of each class on the undisturbed images.")
    mean: float = Field(description="Mean of the values by the class weights.")
    objective: float = Field(description="How well the values serve the objective; higher is better.")
    standard_error: float
    reached: bool = Field(description="Whether every class is above the floor; true without one.")
    step: float | None = Field(description="Length of the steps that led here; null for the first round.")
    attacked: int = Field(description="Images attacked.")
    forwards: int = Field(description="Forward passes, counted by image.")
    backwards: int = Field(description="Backward passes.")


class OffsetFile(Closed):
    """Offsets of one model and how they were chosen."""

    model: dict[str, str] = Field(description="Dataset that they were chosen on, threat and model.")
    measure: str = Field(description="Measure whose attacks they were chosen under.")
    settings: OffsetSettings
    classes: list[str] = Field(description="Names of the K classes.")
    offsets: list[float] = Field(description="Chosen number for each logit; they sum to 0.")
    chosen: int = Field(description="Number of the round that was chosen.")
    reached: bool = Field(description="Whether every class reached the floor; true without one.")
    trail: list[OffsetRound] = Field(min_length=1)
    made_from: dict[str, str] = Field(description="Data, network and software, as the identity of values names them.")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Offsets of a file; raises InputError for one that choose_offsets did not write."""
        try:
            return cls.model_validate(read_json(path))
        except ValidationError as error:
            raise InputError(
                f"{path}: not as choose_offsets writes it ({first_fault(error)}); delete it and run the workflow again"
            ) from error

    @property
    def forwards(self) -> int:
        """Forward passes of all rounds, counted by image."""
        return sum(round_.forwards for round_ in self.trail)

    def words(self, strength: float) -> str:
        """Share of the offsets, the start of their SHA-256, and their objective, for the identity of values."""
        digest = hashlib.sha256(json.dumps(self.offsets).encode()).hexdigest()
        return f"{strength:g} x {digest[:16]}, chosen for {self.settings.objective}"


@dataclass(frozen=True)
class Adjustment:
    """Offsets that a job adds to the logits of a model, and the name of the model with them.

    Parameters
    ----------
    offsets : path
        File that choose_offsets wrote.
    strength : float
        Share of the offsets that is added.
    threat, model : str
        Name of the model with offsets.
    """

    offsets: Path | str
    strength: float
    threat: str
    model: str

    @classmethod
    def from_snakemake(cls, job: Any) -> Self | None:
        """Offsets of a job's model; None for a model without."""
        offsets = job.input.get("offsets")
        if not offsets:
            return None
        return cls(offsets, job.params.strength, job.wildcards.threat, job.wildcards.model)


def added_offsets(adjustment: Adjustment, manifest: Manifest) -> tuple[list[float], Manifest]:
    """Offsets of a model, times their strength, and the manifest of the model with them.

    Parameters
    ----------
    adjustment : Adjustment
    manifest : mapping
        Manifest of the network that the offsets are added to.

    Returns
    -------
    numbers : list of float
        One for each class.
    manifest : mapping
        Manifest of the network under the name of the model with offsets; its entry `offsets` tells them apart.

    Raises
    ------
    InputError
        For offsets that were chosen for another network.
    """
    chosen = OffsetFile.read(adjustment.offsets)
    chosen_for = chosen.made_from["checkpoint_sha256"]
    if chosen_for != manifest["sha256"]:
        raise InputError(
            f"{adjustment.offsets}: chosen for a network of digest {chosen_for[:12]}, but the model has "
            f"{manifest['sha256'][:12]}; delete that file and run the workflow again"
        )
    adjusted = {
        **manifest,
        "threat": adjustment.threat,
        "model": adjustment.model,
        "offsets": chosen.words(adjustment.strength),
    }
    return [adjustment.strength * number for number in chosen.offsets], adjusted
