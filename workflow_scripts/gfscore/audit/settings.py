"""Settings of an audit's checks, intervals, disparity, confusions, comparisons and groups. Imports nothing heavy."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Confidence, Count, Name, Number, Resamples, Seed, Text, Unique


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
    flips: Resamples = Field(999, description="Random sign vectors of the sign-flip test.")
    seed: Seed = 0


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
    bootstrap_resamples: int = Field(
        199,
        ge=99,
        le=1_000_000,
        description="Resamples of the approximate intervals in class_scores, which report and gate do not use.",
    )


class Balanced(Closed):
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
    balanced: Balanced | None = Field(
        None, description="Additional values on a balanced part of the samples; null for none."
    )
