"""Settings of an audit's checks, disparity, confusions and comparisons. Imports nothing heavy."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Confidence, Count, Number, Resamples, Seed


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
