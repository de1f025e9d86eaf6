"""Tasks of an audit, datasets of the same images whose labels models of one name predict, and their projections."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import GROUP_METRICS, MACRO, metrics_of_predictions
from gfscore.audit.samples import SampleList
from gfscore.audit.step_params import TaskSettings
from gfscore.audit.values import AuditValues
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.projection.mappers.conditions import condition_names
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_logits, read_table, stacked
from gfscore.tables.table import DATASET

UNPERTURBED = "clean"
"""Kind of the measure with predictions on unperturbed samples."""

DIFFERENCES = {"dp": "demographic parity", "eopp": "equal opportunity", "eodd": "equalized odds"}
"""Differences between groups that the paper compares with Tolerance and Deviation, and what they are called."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A dataset of the audit's images, whose labels models predict.

    Parameters
    ----------
    models : sequence of ModelName
        All models of the task, in order.
    class_names : sequence of str
        Names of the K classes.
    listed : SampleList
        Samples of the dataset.
    image_shape : sequence of int
        Channels, height and width of its images.
    label_attribute : str or None
        Attribute that the labels are, if they are one.
    accuracies : mapping
        Accuracies on all samples, by label of the model.
    metrics : DataFrame
        Rows of `group_metrics`, of a task other than the audit's own dataset where groups are compared.
    """

    models: Sequence[ModelName]
    class_names: Sequence[str]
    listed: SampleList
    image_shape: Sequence[int]
    label_attribute: str | None = None
    accuracies: Mapping[str, float] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=lambda: stacked(GROUP_METRICS, []))

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.models[0].dataset


def read_tasks(
    audit_values: AuditValues, files: AuditFiles, settings: Sequence[TaskSettings], *, confidence: float
) -> list[Task]:
    """Tasks of an audit, its own dataset first.

    A model that takes no part in the audit takes none in a task. Accuracies on the audit's own dataset are taken from
    the selection of models.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    files : AuditFiles
        Manifest and dataset of the audit and of its tasks.
    settings : sequence of TaskSettings
        Settings of the tasks, the audit's own dataset first.
    confidence : float
        Nominal confidence of the intervals of metrics between groups.

    Raises
    ------
    InputError
        For a task of other images.
    """
    accuracies = read_json(audit_values.selection).get("clean_accuracy", {})
    tasks = [_task(settings[0], DatasetManifest.read(files.manifest), audit_values.listed, accuracies)]
    attributes = iter(files.task_attributes)
    logits = iter(files.task_logits)
    included = audit_values.included_labels
    files_of_tasks = zip(files.task_manifests, files.task_datasets, strict=True)
    for entry, (path_to_manifest, path_to_dataset) in zip(settings[1:], files_of_tasks, strict=True):
        manifest = DatasetManifest.read(path_to_manifest)
        # The images are compared by name, whatever their order.
        digests = read_table(path_to_dataset, DATASET).set_index("sample_id")["image_digest"].sort_index()
        digests_of_audit = read_table(audit_values.dataset, DATASET).set_index("sample_id")["image_digest"].sort_index()
        if not digests.equals(digests_of_audit):
            raise InputError(
                f"{path_to_dataset}: its images are not those of {audit_values.dataset}, or have other names; give "
                "both datasets the same images, `preprocessing` and `part`, whose split is within the labels unless "
                "it says otherwise (`within`)"
            )
        listed = SampleList.read(path_to_dataset)
        groups = entry.groups
        if groups:
            grouping = Grouping.read_chosen(next(attributes), dataset=manifest.dataset, groups=groups)

        accuracies = {}
        metrics = []
        for columns in entry.models:
            path_to_logits = next(logits)
            model = ModelName.from_columns(columns)
            if model.label not in included:
                continue
            expected = {**model.columns(), "dataset_digest": manifest.digest}
            sample_id, label, values = read_logits(path_to_logits, expect=expected)
            samples = pd.DataFrame({"sample_id": sample_id, "label": label, "prediction": predictions(values, label)})
            samples = listed.once(samples, source=path_to_logits)
            accuracies[model.label] = float((samples["prediction"] == samples["label"]).mean())
            if groups:
                frame = metrics_of_predictions(
                    samples, grouping, manifest.classes, settings=groups, confidence=confidence
                )
                metrics.append(frame.assign(**model.columns(), measure=UNPERTURBED))
        tasks.append(_task(entry, manifest, listed, accuracies, stacked(GROUP_METRICS, metrics)))
    return tasks


def _task(
    entry: TaskSettings,
    manifest: DatasetManifest,
    listed: SampleList,
    accuracies: Mapping[str, float],
    metrics: pd.DataFrame | None = None,
) -> Task:
    return Task(
        models=[ModelName.from_columns(columns) for columns in entry.models],
        class_names=manifest.classes,
        listed=listed,
        image_shape=manifest.image_shape,
        label_attribute=entry.label_attribute,
        accuracies=accuracies,
        metrics=stacked(GROUP_METRICS, []) if metrics is None else metrics,
    )


@dataclass(frozen=True)
class Projections:
    """Projections of a task's models on a mapper.

    Parameters
    ----------
    manifest : mapping
        Manifest of the mapper.
    task : Task
    samples : sequence of tuple
        Pairs of a model that takes part and its samples table.
    """

    manifest: Mapping[str, Any]
    task: Task
    samples: Sequence[tuple[ModelName, pd.DataFrame]]

    @property
    def attributes(self) -> list[str]:
        """Attribute that each dimension (D,) is a value of; the dimension itself where it is none."""
        attribute_of = {}
        for attribute, categories in (self.manifest["categories"] or {}).items():
            for name in condition_names({attribute: categories}):
                attribute_of[name] = attribute
        return [attribute_of.get(dimension, dimension) for dimension in self.manifest["dimensions"]]

    @property
    def resized(self) -> str | None:
        """Sizes of images before and after they are resized for the mapper; None where they are not."""
        size = "x".join(map(str, self.task.image_shape[1:]))
        size_for_mapper = "x".join(map(str, self.manifest["image_shape"][1:]))
        return None if size == size_for_mapper else f"{size} to {size_for_mapper}"


def read_projections(
    audit_values: AuditValues,
    paths: Sequence[Path | str],
    manifests: Sequence[Mapping[str, Any]],
    tasks: Sequence[Task],
) -> list[Projections]:
    """Projections of the models that take part in an audit, by mapper, then task.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    paths : sequence of path
        One samples table for each mapper, task and model, in this order.
    manifests : sequence of mapping
        Manifests of the mappers.
    tasks : sequence of Task
    """
    included = audit_values.included_labels
    remaining = iter(paths)
    projections = []
    for manifest, task in product(manifests, tasks):
        samples = []
        for model in task.models:
            path = next(remaining)
            if model.label in included:
                frame = read_table(path, PROJECTION_TABLE, expect={**model.columns(), "measure": manifest["mapper"]})
                samples.append((model, task.listed.once(frame, source=path)))
        projections.append(Projections(manifest, task, samples))
    return projections


def differences_between_groups(metrics: pd.DataFrame, *, kinds: Mapping[str, str]) -> pd.DataFrame:
    """DP, EOpp and EOdd of every model by attribute.

    Of the first measure of kind clean, or else the first measure, and of the positive class, or the mean over classes.

    Parameters
    ----------
    metrics : DataFrame
        Rows of `group_metrics`.
    kinds : mapping
        Kind of every measure by name.

    Returns
    -------
    DataFrame
        Columns threat, model, attribute, the names in DIFFERENCES, and group_measure.
    """
    measures = list(metrics["measure"].unique())
    unperturbed = [name for name in measures if kinds[name] == UNPERTURBED]
    measure = next(iter([*unperturbed, *measures]), None)
    rows = metrics[(metrics["measure"] == measure) & metrics["metric"].isin(list(DIFFERENCES))]
    if rows["class_name"].nunique() != 1:
        rows = rows[rows["class_name"] == MACRO]
    wide = rows.set_index(["threat", "model", "attribute", "metric"])["value"].unstack("metric", sort=False)
    return wide.reindex(columns=list(DIFFERENCES)).reset_index().assign(group_measure=measure)


def group_means(
    differences: pd.DataFrame, *, moved: Iterable[str] | None = None, task_attribute: str | None = None
) -> pd.DataFrame:
    """Mean DP, EOpp and EOdd of every model over attributes.

    Of the attributes for which all three are defined for every model.

    Parameters
    ----------
    differences : DataFrame
        Result of differences_between_groups.
    moved : iterable of str, optional
        Attributes that a mapper moves; None if its dimensions are no attributes.
    task_attribute : str, optional
        Attribute that is the task itself, which is left out.

    Returns
    -------
    DataFrame
        Columns of DIFFERENCES, group_measure and group_attributes, their number; index threat and model. Empty if there
        are no such attributes.
    """
    names = list(DIFFERENCES)
    rows = differences[differences["attribute"] != task_attribute]
    if moved is not None:
        rows = rows[rows["attribute"].isin(list(moved))]
    defined = rows[names].notna().all(axis=1)
    rows = rows[defined.groupby(rows["attribute"]).transform("all").astype(bool)]
    means = rows.groupby(["threat", "model"])[names].mean()
    measure = rows["group_measure"].iloc[0] if len(rows) else None
    return means.assign(group_measure=measure, group_attributes=rows["attribute"].nunique())
