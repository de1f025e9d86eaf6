"""Names of a classifier on a dataset, the same in every stage."""

from collections.abc import Mapping

MODEL = "{dataset}/{threat}/{model}"
"""End of the path of a model's file in every stage: data evaluated, threat model, classifier."""

UNCALIBRATED = "none"
"""Value of the column `calibration` for values at T = 1 and for measures without a temperature."""


def label_of(model: Mapping[str, str]) -> str:
    """Name of a model within an audit, "threat/model": the same model name exists under several threats."""
    return f"{model['threat']}/{model['model']}"
