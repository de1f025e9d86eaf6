"""A model of the RobustBench leaderboard."""

from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Sha256, Text, Unique
from gfscore.networks.model_source import LogitsSettings, ModelSource


class RobustBench(LogitsSettings):
    """A leaderboard model; what its entry leaves out comes from the leaderboard."""

    source: Literal["robustbench"] = "robustbench"
    dataset: Literal["cifar10", "cifar100", "imagenet"] = Field(description="Data set of the leaderboard.")
    threat: Literal["Linf", "L2", "corruptions"] = Field(description="Threat of the leaderboard.")
    model: Text = Field(description="Name on the leaderboard.")
    path: Text = Field("checkpoints", description="Folder of all RobustBench checkpoints.")
    architecture: Text | None = Field(None, description="Architecture in words; null where the entry does not say.")
    sha256: Sha256 | Unique[Sha256] | None = Field(
        None, description="Digest, one per file for ensembles; null to record it at first sight."
    )
    trust_pickle: bool = Field(
        False, description="Run code that the checkpoint may hold; needs sha256. See SECURITY.md."
    )

    absent = frozenset({"architecture"})


def completed(entry: dict[str, Any], zoo: str, threat: str, model: str, *, folder: str) -> dict[str, Any]:
    """An entry with what the leaderboard says of the model that it names, by default that of its own place."""
    from gfscore.core.errors import InputError
    from gfscore.networks import leaderboard

    key = {"dataset": entry.get("dataset", zoo), "threat": entry.get("threat", threat)}
    key["model"] = entry.get("model", model)
    try:
        listed = leaderboard.entry(**{name: str(value) for name, value in key.items()}, folder=folder)
    except InputError:
        # What is no such model is said where the entry is checked.
        listed = key
    return {**listed, **entry}


SOURCE = ModelSource(
    name="robustbench",
    settings=RobustBench,
    gives="gradients",
    fetched=True,
    opened_by="gfscore.networks.robustbench_models",
)
