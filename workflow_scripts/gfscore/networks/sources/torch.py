"""A checkpoint of weights and an architecture of an installed package or of the folder architectures/."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import CHECKPOINTS, ModelSource, NetworkOutputs, Settings, WeightsSettings


class Torch(NetworkOutputs, WeightsSettings):
    """Weights and the code that builds their network."""

    source: Literal["torch"] = "torch"
    architecture: Text = Field(
        description="package.module:callable, from an installed package or the folder architectures/"
    )


def _claims(entry: Settings) -> bool:
    if not path_ends(*CHECKPOINTS)(entry) or "train_on" in entry:
        return False
    # Also without an architecture, so that the error says that it is missing.
    return "architecture" not in entry or ":" in str(entry["architecture"])


SOURCE = ModelSource(
    name="torch",
    settings=Torch,
    gives="gradients",
    fetched=True,
    claims=_claims,
    opened_by="gfscore.networks.torch_models",
    files_by=__name__,
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
