"""Settings of the paired comparison of models. Imports nothing heavy."""

from pydantic import Field

from gfscore.core.settings import Closed, Confidence, Count, Resamples, Seed


class ComparisonSettings(Closed):
    """Paired comparison of the models of an audit on the same samples."""

    confidence: Confidence = Field(
        0.95, description="Joint confidence of every statement about all pairs of models, and all classes."
    )
    most: Count = Field(
        20_000,
        description="Comparisons (pairs x classes) listed per measure; beyond it only pairs with the model of the "
        "largest aggregate. Corrections are for all pairs either way.",
    )
    flips: Resamples = Field(999, description="Random sign vectors of the sign-flip test.")
    seed: Seed = 0
