"""A model of the RobustBench leaderboard."""

from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Sha256, Text, Unique
from gfscore.networks import leaderboard
from gfscore.networks.model_source import LogitsSettings, ModelSource


class RobustBench(LogitsSettings):
    """A leaderboard model; defaults are taken from the leaderboard."""

    source: Literal["robustbench"] = "robustbench"
    dataset: Literal["cifar10", "cifar100", "imagenet"] = Field(description="Dataset of the leaderboard.")
    threat: Literal["Linf", "L2", "corruptions"] = Field(description="Threat of the leaderboard.")
    model: Text = Field(description="Name on the leaderboard.")
    path: Text = Field("checkpoints", description="Folder of all RobustBench checkpoints.")
    architecture: Text | None = Field(None, description="Architecture in words; null if not stated.")
    sha256: Sha256 | Unique[Sha256] | None = Field(
        None, description="Digest, one per file for ensembles; null to record it at first use."
    )
    trust_pickle: bool = Field(
        False, description="Run code that the checkpoint may contain; requires sha256. See SECURITY.md."
    )

    absent = frozenset({"architecture"})


def completed(entry: dict[str, Any], zoo: str, threat: str, model: str, *, folder: str) -> dict[str, Any]:
    """Entry completed by the leaderboard's data on its model.

    Parameters
    ----------
    entry : dict
        As the configuration has it.
    zoo, threat, model : str
        Keys of the entry, the defaults of its settings dataset, threat and model.
    folder : str
        The folder of checkpoints.
    """
    name = {
        "dataset": entry.get("dataset", zoo),
        "threat": entry.get("threat", threat),
        "model": entry.get("model", model),
    }
    try:
        listed = leaderboard.entry(str(name["dataset"]), str(name["threat"]), str(name["model"]), folder=folder)
    except InputError:
        # An unknown model is reported by the validation of the entry.
        listed = name
    return {**listed, **entry}


SOURCE = ModelSource(
    name="robustbench",
    settings=RobustBench,
    gives="gradients",
    fetched=True,
    opened_by="gfscore.networks.robustbench_models",
    files_by="gfscore.networks.leaderboard",
)
