"""An image classifier of Hugging Face's transformers: weights as safetensors, with config.json beside them."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.networks.model_source import FileSettings, ModelSource, NetworkOutputs, Settings, main_file


class Transformers(NetworkOutputs, FileSettings):
    """Weights of a network of transformers; its configuration is the file config.json in the same folder."""

    source: Literal["transformers"] = "transformers"
    path: Text = Field(description="File of the weights, .safetensors, beside its config.json.")


WEIGHTS = "model.safetensors"
CONFIGURATION = "config.json"
"""Files of a folder of transformers, and of timm, that save_pretrained writes."""


def files_of(settings: Settings) -> list[Settings]:
    """Weights and configuration, each enforced by its digest."""
    path = Path(settings["path"]).with_name(CONFIGURATION)
    return [main_file(settings), {"path": str(path), "url": None, "sha256": None}]


SOURCE = ModelSource(
    name="transformers",
    settings=Transformers,
    gives="gradients",
    fetched=True,
    opened_by="gfscore.networks.transformers_models",
    files_by=__name__,
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
