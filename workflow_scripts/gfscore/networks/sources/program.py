"""A network with its code in one file: TorchScript, or a program of torch.export."""

from typing import Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import Sha256, path_ends, refusal
from gfscore.networks.model_source import FileSettings, GraphOutputs, ModelSource


class Program(GraphOutputs, FileSettings):
    """A file of TorchScript or torch.export and its preprocessing."""

    source: Literal["program"] = "program"
    trust_pickle: bool = Field(description="true: run the code in the file, without which it cannot be opened.")
    sha256: Sha256 = Field(description="Digest that the file must have, since its code is run.")

    @model_validator(mode="after")
    def _is_trusted(self) -> Self:
        if not self.trust_pickle:
            raise refusal("such a file is code; if you trust it with your account, set true", "trust_pickle")
        return self


SOURCE = ModelSource(
    name="program",
    settings=Program,
    gives="gradients",
    fetched=True,
    claims=path_ends(".pt2", ".torchscript"),
    opened_by="gfscore.networks.programs",
    adjusted_by="gfscore.networks.adjusted_files.programs",
)
