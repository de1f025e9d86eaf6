"""An exported network, run by onnxruntime on the CPU: logits, no gradients."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import path_ends
from gfscore.networks.model_source import FileSettings, ModelSource, Pixels


class File(FileSettings):
    """An ONNX file."""

    output: str | None = Field(None, description="Name of the output with the logits; null when there is only one.")


class Onnx(Pixels, File):
    """An ONNX file, and what is done to the pixels before."""

    source: Literal["onnx"] = "onnx"


SOURCE = ModelSource(
    name="onnx",
    settings=Onnx,
    gives="predictions",
    fetched=True,
    claims=path_ends(".onnx"),
    opened_by="gfscore.networks.onnx_models",
)
