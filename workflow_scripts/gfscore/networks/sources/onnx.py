"""An exported network, run by onnxruntime on the CPU without gradients."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import path_ends
from gfscore.networks.model_source import FileSettings, ModelSource, Pixels


class File(FileSettings):
    """An ONNX file."""

    output: str | None = Field(None, description="Name of the output with the logits; null if there is only one.")


class Onnx(Pixels, File):
    """An ONNX file and its preprocessing."""

    source: Literal["onnx"] = "onnx"


SOURCE = ModelSource(
    name="onnx",
    settings=Onnx,
    gives="predictions",
    fetched=True,
    claims=path_ends(".onnx"),
    opened_by="gfscore.networks.onnx_models",
)
