"""Settings of the confusions of classes. Imports nothing heavy."""

from pydantic import Field

from gfscore.core.settings import Closed, Count, Resamples, Seed


class ConfusionSettings(Closed):
    """Which classes are taken for which, and how alike models err."""

    shuffles: Resamples = Field(
        99, description="Shuffles behind the baseline and p-value of each similarity of two models."
    )
    models: Count = Field(
        20, description="Models of an audit whose predictions are compared in pairs, the first so many."
    )
    seed: Seed = 0
