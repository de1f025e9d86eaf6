"""An image classifier of Hugging Face's transformers: weights as safetensors, with config.json beside them."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.networks.model_source import FileSettings, ModelSource, NetworkOutputs


class Transformers(NetworkOutputs, FileSettings):
    """Weights of a network of transformers; its configuration is the file config.json in the same folder."""

    source: Literal["transformers"] = "transformers"
    path: Text = Field(description="File of the weights, .safetensors, beside its config.json.")


SOURCE = ModelSource(
    name="transformers",
    settings=Transformers,
    gives="gradients",
    fetched=True,
    opened_by="gfscore.networks.transformers_models",
)
