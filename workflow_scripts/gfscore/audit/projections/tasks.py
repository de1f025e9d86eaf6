"""Tasks of an audit, datasets of the same images whose labels models of one name predict, and their projections."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import GROUP_METRICS as GROUP_METRICS_TABLE
from gfscore.audit.groups.metrics import MACRO, metrics_of_predictions
from gfscore.audit.projections.columns import GROUP_METRICS
from gfscore.audit.samples import SampleList
from gfscore.audit.settings import GroupSettings
from gfscore.audit.values import AuditValues
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import label_of
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.projection.mappers.conditions import condition_names
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_logits, read_table, stacked
from gfscore.tables.table import DATASET

UNPERTURBED = "clean"
"""Kind of the measure with predictions on unperturbed samples."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: its models that take part (`models` of all, in order), K names of classes, SampleList and image shape.

    `own_attribute` is the attribute that the labels are, if they are one; `accuracies` are those on all samples, by
    label of the model; `metrics` are rows of group_metrics of a task other than the audit's own dataset, where groups
    are compared.
    """

    models: Sequence[Mapping[str, str]]
    class_names: Sequence[str]
    listed: SampleList
    image_shape: Sequence[int]
    own_attribute: str | None = None
    accuracies: Mapping[str, float] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=lambda: stacked(GROUP_METRICS_TABLE, []))

    @property
    def name(self) -> str:
        """The dataset."""
        return self.models[0]["dataset"]


def read_tasks(
    inputs: AuditValues, files: Mapping[str, Any], settings: Sequence[Mapping[str, Any]], *, confidence: float
) -> list[Task]:
    """Tasks of an audit, that of its own dataset first, from what layout.table_settings says of them.

    `files` maps manifest and dataset, and task_manifests, task_datasets, task_attributes and task_logits to paths. A
    model that takes no part in the audit takes none in a task. Accuracies on the audit's own dataset are those of the
    selection. Raises InputError for a task of other images.
    """
    manifests = [read_json(path) for path in (files["manifest"], *files.get("task_manifests", ()))]
    paths = [files["dataset"], *files.get("task_datasets", ())]
    attributes, logits = (iter(files.get(f"task_{name}", ())) for name in ("attributes", "logits"))
    accuracies = read_json(inputs.selection).get("clean_accuracy", {})
    found = [_task(settings[0], manifests[0], inputs.listed, accuracies)]
    for entry, manifest, path in zip(settings[1:], manifests[1:], paths[1:], strict=True):
        _require_same_images(path, paths[0])
        listed, grouping, groups = SampleList.read(path), None, None
        if entry["groups"]:
            groups = GroupSettings.model_validate(entry["groups"])
            grouping = Grouping.read_chosen(next(attributes), dataset=manifest["dataset"], groups=groups)
        of_models = [(model, next(logits)) for model in entry["models"]]
        included = {model.label for model in inputs.included}
        taking_part = [pair for pair in of_models if label_of(pair[0]) in included]
        accuracies, metrics = {}, []
        for key, samples in _predictions(taking_part, listed, manifest["digest"]):
            accuracies[label_of(key)] = float((samples["prediction"] == samples["label"]).mean())
            if grouping and groups:
                frame = metrics_of_predictions(
                    samples,
                    grouping,
                    manifest["classes"],
                    settings=groups,
                    confidence=confidence,
                )
                metrics.append(frame.assign(**key))
        found.append(_task(entry, manifest, listed, accuracies, stacked(GROUP_METRICS_TABLE, metrics)))
    return found


def _task(entry, manifest, listed, accuracies, metrics=None):
    about = {"class_names": manifest["classes"], "image_shape": manifest["image_shape"], "listed": listed}
    metrics = stacked(GROUP_METRICS_TABLE, []) if metrics is None else metrics
    own = {"own_attribute": entry["own_attribute"], "accuracies": accuracies, "metrics": metrics}
    return Task(models=entry["models"], **about, **own)


def _predictions(
    models: Sequence[tuple[Mapping[str, str], str]], listed: SampleList, digest: str
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    for model, path in models:
        sample_id, label, logits = read_logits(path, expect={**model, "dataset_digest": digest})
        frame = pd.DataFrame({"sample_id": sample_id, "label": label, "prediction": predictions(logits, label)})
        yield {**model, "measure": UNPERTURBED}, listed.once(frame, source=path)


def _require_same_images(path, own):
    # By name, whatever their order.
    first, second = (
        read_table(file, DATASET).set_index("sample_id")["image_digest"].sort_index() for file in (own, path)
    )
    if not first.equals(second):
        raise InputError(
            f"{path}: its images are not those of {own}, or have other names; give both datasets the same images, "
            "`preprocessing` and `part`, whose split is within the labels unless it says otherwise (`within`)"
        )


@dataclass(frozen=True)
class Projections:
    """Projections of a task's models on a mapper: its `manifest`, and pairs of a model and its samples table."""

    manifest: Mapping[str, Any]
    task: Task
    samples: Sequence[tuple[Mapping[str, str], pd.DataFrame]]

    @property
    def attributes(self) -> list[str]:
        """Attribute that each dimension (D,) is a value of; the dimension itself where it is none."""
        categories = self.manifest["categories"] or {}
        named = {
            name: attribute for attribute in categories for name in condition_names({attribute: categories[attribute]})
        }
        return [named.get(dimension, dimension) for dimension in self.manifest["dimensions"]]

    @property
    def resized(self) -> str | None:
        """Sizes of images before and after they are resized for the mapper; None where they are not."""
        sizes = ["x".join(map(str, shape[1:])) for shape in (self.task.image_shape, self.manifest["image_shape"])]
        return None if sizes[0] == sizes[1] else " to ".join(sizes)


def read_projections(
    inputs: AuditValues, paths: Sequence[Path | str], manifests: Sequence[Mapping[str, Any]], tasks: Sequence[Task]
) -> list[Projections]:
    """Projections of the included models of an audit by mapper, then task, from one path per mapper, task and model."""
    remaining, found = iter(paths), []
    included = {model.label for model in inputs.included}
    for manifest in manifests:
        for task in tasks:
            samples = []
            for model in task.models:
                path, expect = next(remaining), {**model, "measure": manifest["mapper"]}
                if label_of(model) in included:
                    frame = read_table(path, PROJECTION_TABLE, expect=expect)
                    samples.append((model, task.listed.once(frame, source=path)))
            found.append(Projections(manifest, task, samples))
    return found


def differences_between_groups(metrics: pd.DataFrame, *, kinds: Mapping[str, str]) -> pd.DataFrame:
    """DP, EOpp and EOdd of every model by attribute, a column each; with threat, model, attribute and group_measure.

    Takes rows of group_metrics and the kind of every measure by name. Uses the first measure of kind clean, or else the
    first measure, and the positive class, or the mean over classes.
    """
    names = list(dict.fromkeys(metrics["measure"]))
    measure = next((name for name in names if kinds[name] == UNPERTURBED), names[0] if names else None)
    rows = metrics[(metrics["measure"] == measure) & metrics["metric"].isin(GROUP_METRICS)]
    one = rows["class_name"].nunique() == 1
    rows = rows[one | (rows["class_name"] == MACRO)]
    keys = ["threat", "model", "attribute", "metric"]
    wide = rows.set_index(keys)["value"].unstack("metric", sort=False)
    return wide.reindex(columns=list(GROUP_METRICS)).reset_index().assign(group_measure=measure)


def group_means(
    differences: pd.DataFrame, *, moved: Iterable[str] | None = None, own: str | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Mean DP, EOpp and EOdd of every model over attributes, with measure and number of attributes, by (threat, model).

    Takes `differences_between_groups`, the attributes that a mapper moves (None if its dimensions are no attributes)
    and the one that is the task itself. Uses the other attributes for which all three are defined for every model.
    Empty if there are no such attributes.
    """
    rows = differences[differences["attribute"] != own]
    if moved is not None:
        rows = rows[rows["attribute"].isin(list(moved))]
    defined = rows[list(GROUP_METRICS)].notna().all(axis=1)
    rows = rows[defined.groupby(rows["attribute"]).transform("all").astype(bool)]
    means = rows.groupby(["threat", "model"])[list(GROUP_METRICS)].mean()
    return {
        (str(threat), str(model)): {
            **dict(zip(GROUP_METRICS, values, strict=True)),
            "group_measure": rows["group_measure"].iloc[0],
            "group_attributes": rows["attribute"].nunique(),
        }
        for (threat, model), values in zip(means.index, means.to_numpy().tolist(), strict=True)
    }
