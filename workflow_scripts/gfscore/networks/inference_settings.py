"""Settings of how classifiers are run. Imports nothing heavy."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, ImagesAtOnce


class InferenceSettings(Closed):
    """How classifiers are run."""

    batch_size: ImagesAtOnce = Field(
        256,
        description="Images at a time of all measures that disturb images, halved when memory runs out; what they draw "
        "at random depends on it. extract_logits finds its own.",
    )
    precision: Literal["float32", "tf32", "bfloat16"] = Field(
        "float32",
        description="Arithmetic of extract_logits alone; any but float32 adds the measured drift to the logits file.",
    )
    compiled: bool = Field(
        False, description="Whether extract_logits runs networks through torch.compile; minutes per model."
    )
