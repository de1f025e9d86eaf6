"""Names of a classifier on a dataset, the same in every stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODEL = "{dataset}/{threat}/{model}"
"""End of the path of a model's file in every stage: data evaluated, threat model, classifier."""

ALL = -1
"""Value of class_index, or dimension_index, for all classes, or dimensions, together; their name is ALL_NAME."""

ALL_NAME = "all"

UNCALIBRATED = "none"
"""Value of the column `calibration` for values at T = 1 and for measures without a temperature."""


@dataclass(frozen=True, order=True)
class ModelName:
    """Name of a classifier on the dataset that it is evaluated on.

    Parameters
    ----------
    dataset : str
        Name of the dataset evaluated.
    threat : str
        Threat model that the classifier was trained against, "none" for one without.
    classifier : str
        Name of the classifier, unique for its dataset and threat model.
    """

    dataset: str
    threat: str
    classifier: str

    @classmethod
    def from_columns(cls, columns: Mapping[str, str]) -> ModelName:
        """Name of a mapping that has dataset, threat and model among its keys, as a row of a table has."""
        return cls(columns["dataset"], columns["threat"], columns["model"])

    @property
    def label(self) -> str:
        """Name within an audit, "threat/model": the same model name exists under several threats."""
        return f"{self.threat}/{self.classifier}"

    @property
    def path(self) -> str:
        """End of the path of the model's file in every stage, without suffix: "dataset/threat/model"."""
        return f"{self.dataset}/{self.threat}/{self.classifier}"

    def columns(self) -> dict[str, str]:
        """Dataset, threat and model by name, as tables, identities and params hold them."""
        return {"dataset": self.dataset, "threat": self.threat, "model": self.classifier}


def label_of(model: Mapping[str, str]) -> str:
    """Name of a model within an audit, "threat/model": the same model name exists under several threats."""
    return f"{model['threat']}/{model['model']}"
