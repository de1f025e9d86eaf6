"""How class offsets are chosen: settings that models with offsets and audits with a remedy share.

Imports nothing heavy, because settings are parsed whenever a run is planned.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import Closed, Positive, Seed, Share, refusal

MOST_ROUNDS = 100

Objective = Literal["worst_class", "rdi", "floor"]


class OffsetSettings(Closed):
    """How class offsets, numbers added to the logits, are chosen under attack."""

    objective: Objective = Field(
        "worst_class",
        description="worst_class: the largest robust accuracy of the worst class; rdi: the smallest difference between "
        "best and worst class; floor: the largest mean of those whose every class is at least the floor.",
    )
    floor: Share | None = Field(
        None, description="Robust accuracy that every class must have, with a margin of one standard error."
    )
    most_loss: Share | None = Field(
        0.03, description="Largest loss of the mean that the objectives worst_class and rdi may cost; null for any."
    )
    class_weights: list[Positive] | None = Field(
        None,
        min_length=2,
        description="Weights of the classes in the mean, their shares where the model is used, in label order; null "
        "for equal ones.",
    )
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = Field(
        6, description="Most rounds of attack and adjustment, the one without offsets among them."
    )
    seed: Seed = 0

    @property
    def choosing(self) -> "OffsetSettings":
        """These settings alone, of a class that has further ones."""
        return OffsetSettings.model_validate({name: getattr(self, name) for name in OffsetSettings.model_fields})

    @model_validator(mode="after")
    def _floor_belongs_to_its_objective(self) -> Self:
        if self.objective == "floor" and self.floor is None:
            raise refusal("is missing; objective: floor needs the accuracy that each class must have", "floor")
        if self.objective != "floor" and self.floor is not None:
            raise refusal(f"objective {self.objective} has no floor; leave it out, or set objective: floor", "floor")
        return self
