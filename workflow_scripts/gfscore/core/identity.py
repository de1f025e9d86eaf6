"""What names the values of a classifier on a dataset in every stage."""

from collections.abc import Mapping

MODEL = "{dataset}/{threat}/{model}"
"""The same tail in every stage: the data evaluated, the threat, the classifier."""

UNCALIBRATED = "none"
"""Name in place of a calibration's: values at T = 1, and those of measures that have no temperature."""


def label_of(model: Mapping[str, str]) -> str:
    """Name of a model within an audit, "threat/model": the same model name exists under several threats."""
    return f"{model['threat']}/{model['model']}"
