"""A network of the timm collection by name, with weights from a file."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import CHECKPOINTS, ModelSource, NetworkOutputs, Settings, WeightsSettings


class Timm(NetworkOutputs, WeightsSettings):
    """Weights and the name of their network in timm."""

    source: Literal["timm"] = "timm"
    architecture: Text = Field(description="Name of the network in timm.")


def _claims(entry: Settings) -> bool:
    if not path_ends(*CHECKPOINTS)(entry) or "train_on" in entry:
        return False
    # An architecture of the form package.module:callable is of the source torch.
    return "architecture" in entry and ":" not in str(entry["architecture"])


SOURCE = ModelSource(
    name="timm",
    settings=Timm,
    gives="gradients",
    fetched=True,
    claims=_claims,
    opened_by="gfscore.networks.timm_models",
    files_by=__name__,
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
