"""A checkpoint of weights and an architecture of an installed package or of the folder architectures/."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import CHECKPOINTS, ModelSource, Pixels, WeightsSettings


class Torch(Pixels, WeightsSettings):
    """Weights, and code that makes their network."""

    source: Literal["torch"] = "torch"
    architecture: Text = Field(
        description="package.module:callable, of an installed package or of the folder architectures/"
    )


def _claims(entry: Mapping[str, Any]) -> bool:
    # Without an architecture too: it is then missed by its name.
    named = ":" in str(entry.get("architecture", ":"))
    return path_ends(*CHECKPOINTS)(entry) and named and "train_on" not in entry


SOURCE = ModelSource(
    name="torch",
    settings=Torch,
    gives="gradients",
    fetched=True,
    claims=_claims,
    opened_by="gfscore.networks.checkpoint",
)
