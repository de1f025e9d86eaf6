"""Settings of an audit as users write them in config.yaml; those of its steps are in gfscore.audit.step_params.

Imports nothing heavy.
"""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from gfscore.core.settings import (
    Closed,
    Confidence,
    Count,
    InnerShare,
    Name,
    Number,
    Positive,
    Resamples,
    Seed,
    Text,
    Unique,
    refusal,
)


class CheckSettings(Closed):
    """Checks of logits before anything is computed from them."""

    published_accuracy: Literal["stop", "exclude"] = Field(
        "stop",
        description="Action if a measured clean accuracy differs from the published one: stop the run, or exclude the "
        "model and report the reason.",
    )


class DisparitySettings(Closed):
    """Disparity of class values."""

    fp_lambda: Annotated[Number, Field(ge=0)] = Field(0.5, description="Weight lambda of RDI in FP (GF-Score, Eq. 7).")
    permutations: Resamples = Field(
        999, description="Permutations of class membership for the noise floor; at least 20 per model are made."
    )
    seed: Seed = 0


class ConfusionSettings(Closed):
    """Confusions of classes, and similarities of the errors of two models."""

    shuffles: Resamples = Field(
        99, description="Permutations for the baseline and p-value of each similarity of two models."
    )
    models: Count = Field(20, description="Number of models, the first of the audit, that are compared in pairs.")
    seed: Seed = 0


class ComparisonSettings(Closed):
    """Paired comparison of the models of an audit on the same samples."""

    confidence: Confidence = Field(
        0.95, description="Simultaneous confidence of the statements about all pairs of models and all classes."
    )
    most: Count = Field(
        20_000,
        description="Largest number of comparisons (pairs x classes) listed per measure; beyond it only pairs with the "
        "model of the largest aggregate are listed. Corrections are for all pairs in both cases.",
    )


class IntervalSettings(Closed):
    """Confidence intervals of class values, jointly for all classes of a model."""

    method: Literal["betting", "empirical_bernstein", "hoeffding"] = Field(
        "betting",
        description="For measures with values between the ends of their range: betting (the tightest), "
        "empirical_bernstein, or hoeffding (GF-Score, Eq. 11); each holds for every sample size.",
    )
    binary: Literal["clopper_pearson", "betting", "empirical_bernstein", "hoeffding"] = Field(
        "clopper_pearson", description="For measures that are 0 or 1: clopper_pearson (exact), or one of the above."
    )
    confidence: Confidence = 0.95
    seed: Seed = Field(
        0,
        description="Seed of the order of the samples in betting; choosing it by the results voids the guarantee.",
    )


class BalancedSubsample(Closed):
    """Additional values of the metrics on a part of the samples with equally large groups of an attribute."""

    attribute: Text = Field(description="Attribute whose groups are balanced.")
    seed: Seed = 0


class GroupSettings(Closed):
    """Fairness between the groups that are defined by attributes of the dataset."""

    attributes: Unique[Text] | None = Field(
        None, min_length=1, description="Attributes of the dataset, by default all in its entry."
    )
    positive: str | dict[Name, str] | None = Field(
        None,
        description="Positive class; null for each class against the rest, and the mean and worst over classes. With "
        "several tasks, the positive class of each dataset that has one.",
    )
    minimum_cell: Count = Field(20, description="Number of samples below which a cell is marked as small.")
    balanced: BalancedSubsample | None = Field(
        None, description="Additional values on a random subsample in which groups are equally large; null for none."
    )


LONGEST_GRID = 100_000
"""Largest number of temperatures in one phase of a grid search."""

ATTACK_DISTANCE = "attack_distance"
"""The objective that needs l2 distances, which a measure of kind minimal gives."""

Objective = Literal[
    "cross_model_accuracy",
    "attack_distance",
    "within_model_class_accuracy",
    "ranking_stability",
    "ranking_stability_endpoints",
    "likelihood",
]
OBJECTIVES: tuple[str, ...] = get_args(Objective)
"""Names of the objectives of a temperature, in the order of tables and pages."""


class TemperatureRange(Closed):
    """Range of the temperature search."""

    low: Positive = Field(0.01, description="Lowest temperature.")
    high: Positive = Field(10.0, description="Highest temperature.")


class TemperatureGrid(TemperatureRange):
    """Range of the temperature search, and the GF-Score paper's two-phase grid over it (section 3.4)."""

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


class GreatSettings(Closed):
    """The attack-free margin score: its temperatures, and its sensitivity to shifts and scales of the logits."""

    temperatures: TemperatureGrid = Field(default_factory=TemperatureGrid)
    stability_window: Positive = Field(
        0.05, description="Half-width delta of the window in which the ranking must be stable (GF-Score, Eq. 9)."
    )
    permutations: Resamples = Field(
        9999, description="Random permutations of the accuracies if there are too many to enumerate."
    )
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


class CalibrationSplit(Closed):
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
    split: CalibrationSplit | None = Field(
        None,
        description="Split of the samples; null: all samples choose the temperature and report, so the calibrated "
        "scores have no intervals.",
    )
