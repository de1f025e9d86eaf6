"""Params of the steps of an audit, which the workflow derives from its configuration.

Imports nothing heavy.
"""

from typing import Any, Literal

from pydantic import Field

from gfscore.audit.settings import (
    CalibrationSplit,
    ComparisonSettings,
    ConfusionSettings,
    DisparitySettings,
    GroupSettings,
    IntervalSettings,
    Objective,
    TemperatureGrid,
)
from gfscore.core.settings import Closed, Name, Number, Positive, Resamples


class LogitChanges(Closed):
    """Changes of the logits whose effect is tabulated: params of the step score_models."""

    shifts: list[Number]
    scales: list[Positive]
    lam: Number = Field(description="Lambda of FP.")


class TemperatureSearch(Closed):
    """Search of the temperatures of one audit: params of the step tabulate_audit."""

    temperatures: TemperatureGrid
    stability_window: Positive
    permutations: Resamples
    objectives: list[Objective]
    split: CalibrationSplit | None = None
    distances: Name | None = Field(None, description="The l2 measure of kind minimal whose distances are used.")


class TaskSettings(Closed):
    """A task of an audit: models that predict the labels of one dataset of its images."""

    models: list[dict[str, str]] = Field(description="Dataset, threat and model of each, in order.")
    label_attribute: str | None = Field(None, description="Attribute that the labels are, if they are one.")
    groups: GroupSettings | None = None


class TrainedModel(Closed):
    """A model of an audit, with its training method and architecture where they are known."""

    dataset: str
    threat: str
    model: str
    method: str | None
    architecture: str | None = None


class JobRecord(Closed):
    """A job of an audit and the file with its cost."""

    step: str
    dataset: str
    threat: str
    model: str
    measure: str | None = None
    path: str


class RemedyParameters(Closed):
    """A remedy of an audit: a model and the same model with offsets, on the judging half of the samples."""

    original: dict[str, str] = Field(description="Dataset, threat and model.")
    adjusted: dict[float, dict[str, str]] = Field(description="Dataset, threat and model by strength, ascending.")
    measure: str
    entry: dict[str, Any] = Field(description="Settings of the measure.")


class TableSettings(Closed):
    """Settings of the tables of one audit: params of the step tabulate_audit."""

    intervals: IntervalSettings
    disparity: DisparitySettings
    comparison: ComparisonSettings
    confusions: ConfusionSettings
    calibration: TemperatureSearch | None = None
    corruption_baseline: str | None = Field(None, description="Baseline of corruption errors, threat/model.")
    groups: GroupSettings | None = None
    tasks: list[TaskSettings] = Field(default=[])
    label_error_rate: float | list[float] | Literal["from_generator"] | None = None
    published: list[dict[str, float | None]] = Field(default=[], description="Published accuracies of each model.")
    methods: list[TrainedModel]
    baselines: dict[str, str] = Field(
        default={}, description="Model of the training method that a model's method changes, each as threat/model."
    )
    costs: list[JobRecord] = Field(default=[])
    remedies: list[RemedyParameters] = Field(default=[])
    gate: list[dict[str, Any]] = Field(default=[], description="Rules of the gate, which remedies are judged by.")
