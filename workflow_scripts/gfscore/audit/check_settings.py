"""Settings of the checks of logits before anything is computed from them. Imports nothing heavy."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed


class CheckSettings(Closed):
    """Checks of logits before anything is computed from them."""

    published_accuracy: Literal["stop", "exclude"] = Field(
        "stop",
        description="What happens when a measured clean accuracy differs from the published one: the run stops, or the "
        "model is left out with its reason.",
    )
