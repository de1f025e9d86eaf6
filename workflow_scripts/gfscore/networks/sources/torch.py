"""A checkpoint of weights and an architecture of an installed package or of the folder architectures/."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import CHECKPOINTS, ModelSource, NetworkOutputs, WeightsSettings


class Torch(NetworkOutputs, WeightsSettings):
    """Weights and the code that builds their network."""

    source: Literal["torch"] = "torch"
    architecture: Text = Field(
        description="package.module:callable, from an installed package or the folder architectures/"
    )


def _claims(entry: Mapping[str, Any]) -> bool:
    # Also without an architecture, so that the error says that it is missing.
    named = ":" in str(entry.get("architecture", ":"))
    return path_ends(*CHECKPOINTS)(entry) and named and "train_on" not in entry


SOURCE = ModelSource(
    name="torch",
    settings=Torch,
    gives="gradients",
    fetched=True,
    claims=_claims,
    opened_by="gfscore.networks.torch_models",
)
