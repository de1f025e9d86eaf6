"""An exported network, run by onnxruntime on the CPU without gradients, or converted to torch with them."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import path_ends
from gfscore.networks.model_source import FileSettings, GraphOutputs, ModelSource, OutputName


class File(FileSettings):
    """An ONNX file."""

    output: OutputName = None
    gradients: bool = Field(
        False,
        description="Whether to convert the graph to a torch network, so that attacks have gradients; its logits must "
        "then be those of onnxruntime.",
    )


class Onnx(GraphOutputs, File):
    """An ONNX file and its preprocessing."""

    # Entries of ONNX files always had the key `output`.
    absent = GraphOutputs.absent - {"output"}

    source: Literal["onnx"] = "onnx"


SOURCE = ModelSource(
    name="onnx",
    settings=Onnx,
    gives=lambda entry: "gradients" if entry.get("gradients") else "predictions",
    fetched=True,
    all_files_identify=True,
    claims=path_ends(".onnx"),
    opened_by="gfscore.networks.onnx_models",
    files_by="gfscore.networks.onnx_content",
    adjusted_by="gfscore.networks.adjusted_files.graphs",
)
