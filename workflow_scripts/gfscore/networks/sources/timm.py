"""A network of the timm collection by name, with weights from a file."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import CHECKPOINTS, ModelSource, NetworkOutputs, WeightsSettings


class Timm(NetworkOutputs, WeightsSettings):
    """Weights and the name of their network in timm."""

    source: Literal["timm"] = "timm"
    architecture: Text = Field(description="Name of the network in timm.")


def _claims(entry: Mapping[str, Any]) -> bool:
    named = ":" not in str(entry.get("architecture", ":"))
    return path_ends(*CHECKPOINTS)(entry) and named and "train_on" not in entry


SOURCE = ModelSource(
    name="timm",
    settings=Timm,
    gives="gradients",
    fetched=True,
    claims=_claims,
    opened_by="gfscore.networks.timm_models",
)
