"""Settings of the search for temperatures, and of an audit's calibration. Imports nothing heavy."""

from typing import Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import (
    Closed,
    Confidence,
    InnerShare,
    Name,
    Number,
    Positive,
    Resamples,
    Seed,
    Unique,
    refusal,
)

LONGEST_GRID = 100_000
"""Temperatures in one phase of a search, beyond which it would only look endless."""

ATTACK_DISTANCE = "attack_distance"
"""Objective that needs distances in l2 of a measure of kind minimal."""

Objective = Literal[
    "cross_model_accuracy",
    "attack_distance",
    "within_model_class_accuracy",
    "ranking_stability",
    "ranking_stability_endpoints",
    "likelihood",
]
OBJECTIVES: tuple[str, ...] = Objective.__args__  # type: ignore[attr-defined]
"""Names of the objectives of a temperature, in the order of tables and pages."""


class Temperatures(Closed):
    """Range of the temperature search, and the GF-Score paper's two-phase grid over it (section 3.4)."""

    low: Positive = Field(0.01, description="Lowest temperature.")
    high: Positive = Field(10.0, description="Highest temperature.")
    coarse_step: Positive = Field(0.1, description="Step of the first phase.")
    fine_step: Positive = Field(0.001, description="Step of the second phase.")
    fine_radius: Positive = Field(
        0.1, description="The second phase searches this far on both sides of the best coarse temperature."
    )

    @model_validator(mode="after")
    def _can_be_searched(self) -> Self:
        if not self.low < 1 < self.high:
            raise refusal(f"low < 1 < high is needed, got {self.low} and {self.high}")
        for width, step, key in (
            (self.high - self.low, self.coarse_step, "coarse_step"),
            (self.fine_radius, self.fine_step, "fine_step"),
        ):
            if width / step > LONGEST_GRID:
                raise refusal(f"{step:g} gives more than {LONGEST_GRID:,} temperatures; raise it", key)
        return self


class Resampling(Closed):
    """How the uncertainty of a searched temperature is measured."""

    bootstrap: Resamples = Field(999, description="Resamples of the models.")
    confidence: Confidence = 0.95
    permutations: Resamples = Field(
        9999, description="Random orders of the accuracies where there are too many to enumerate."
    )


class GreatSettings(Closed):
    """The attack-free margin score: its temperatures, and how it moves when logits are shifted or scaled."""

    temperatures: Temperatures = Field(default_factory=Temperatures)
    stability_window: Positive = Field(
        0.05, description="Half-width delta of the window in which the ranking must be stable (GF-Score, Eq. 9)."
    )
    resampling: Resampling = Field(default_factory=Resampling)
    shifts: list[Number] = Field(
        [-8, -4, -2, -1, 0, 1, 2, 4, 8],
        min_length=1,
        description="Constants added to every logit: they change no prediction, but move sigmoid scores.",
    )
    scales: list[Positive] = Field(
        [0.25, 0.5, 1, 2, 4],
        min_length=1,
        description="Factors of every logit: they change no prediction; a factor is the temperature 1 / factor.",
    )


class Split(Closed):
    """Samples that choose the temperature, while the others report."""

    share: InnerShare = Field(description="Share of each class that chooses.")
    seed: Seed = 0


class CalibrationSettings(Closed):
    """The temperature search of an audit."""

    measure: Name | None = Field(
        None, description="The great variant whose temperature is searched: the audit's first where it is left out."
    )
    objectives: Unique[Objective] | None = Field(
        None,
        min_length=1,
        description="Named objectives: all where they are left out, attack_distance only with a measure of kind "
        "minimal in l2.",
    )
    split: Split | None = Field(
        None,
        description="Samples that choose the temperature; null: all choose it and report it, so scores at it carry no "
        "interval.",
    )
