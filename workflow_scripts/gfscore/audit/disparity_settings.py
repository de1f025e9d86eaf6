"""Settings of the disparity of class values. Imports nothing heavy."""

from typing import Annotated

from pydantic import Field

from gfscore.core.settings import Closed, Number, Resamples, Seed


class DisparitySettings(Closed):
    """Disparity of class values."""

    fp_lambda: Annotated[Number, Field(ge=0)] = Field(0.5, description="Weight lambda of RDI in FP (GF-Score, Eq. 7).")
    permutations: Resamples = Field(
        999, description="Shuffles of class membership for the noise floor; at least 20 per model are made."
    )
    seed: Seed = 0
