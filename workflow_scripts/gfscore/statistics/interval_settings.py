"""Settings of the confidence intervals of class values. Imports nothing heavy."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, Confidence, Seed


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
