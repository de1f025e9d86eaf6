"""Settings of the temperature search and of an audit's calibration. Imports nothing heavy."""

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
"""Largest number of temperatures in one phase of a search."""

ATTACK_DISTANCE = "attack_distance"
"""Objective that needs the l2 distances of a measure of kind minimal."""

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
    """Resampling for the uncertainty of a searched temperature."""

    bootstrap: Resamples = Field(999, description="Resamples of the models.")
    confidence: Confidence = 0.95
    permutations: Resamples = Field(
        9999, description="Random permutations of the accuracies if there are too many to enumerate."
    )


class GreatSettings(Closed):
    """The attack-free margin score: its temperatures, and its sensitivity to shifts and scales of the logits."""

    temperatures: Temperatures = Field(default_factory=Temperatures)
    stability_window: Positive = Field(
        0.05, description="Half-width delta of the window in which the ranking must be stable (GF-Score, Eq. 9)."
    )
    resampling: Resampling = Field(default_factory=Resampling)
    shifts: list[Number] = Field(
        [-8, -4, -2, -1, 0, 1, 2, 4, 8],
        min_length=1,
        description="Constants added to all logits, which change sigmoid scores but no prediction.",
    )
    scales: list[Positive] = Field(
        [0.25, 0.5, 1, 2, 4],
        min_length=1,
        description="Factors of all logits, equivalent to the temperature 1 / factor.",
    )


class Split(Closed):
    """Split of the samples into those that choose the temperature and those that report the scores."""

    share: InnerShare = Field(description="Share of each class that chooses the temperature.")
    seed: Seed = 0


class CalibrationSettings(Closed):
    """The temperature search of an audit."""

    measure: Name | None = Field(
        None, description="Measure of kind great whose temperature is searched; by default the audit's first."
    )
    objectives: Unique[Objective] | None = Field(
        None,
        min_length=1,
        description="Objectives, by default all; attack_distance only with an l2 measure of kind minimal.",
    )
    split: Split | None = Field(
        None,
        description="Split of the samples; null: all samples choose the temperature and report, so the calibrated "
        "scores have no intervals.",
    )
