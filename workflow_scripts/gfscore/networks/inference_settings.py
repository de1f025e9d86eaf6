"""Settings of inference."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, ImagesAtOnce


class InferenceSettings(Closed):
    """Settings of inference."""

    batch_size: ImagesAtOnce = Field(
        256,
        description="Images per batch of all measures that perturb images, halved when memory runs out; their random "
        "draws depend on it. extract_logits chooses its own.",
    )
    precision: Literal["float32", "tf32", "bfloat16"] = Field(
        "float32",
        description="Arithmetic of extract_logits only; unless float32, its deviation is recorded in the logits file.",
    )
    search: Literal["auto", "float32", "tf32", "bfloat16"] = Field(
        "auto",
        description="Arithmetic in which attacks search; what they find counts only if the network confirms it in "
        "float32. auto: tf32 on a GPU that has it, else float32.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device of the models: auto for a GPU where there is one and it saves more time than it takes to "
        "start, cpu, or cuda, which fails without a GPU. Trainings name their own.",
    )
    compiled: bool = Field(
        False, description="Whether extract_logits uses torch.compile, which takes minutes per model."
    )
