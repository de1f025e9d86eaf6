"""Files that the tables and the verdict of an audit are made of, besides the values of its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import Field

from gfscore.core.settings import RecordFile

Paths = Sequence[Path | str]


class ModelSelection(RecordFile):
    """Which models take part in an audit, as models.json holds it.

    Parameters
    ----------
    included : list of str
        Labels "threat/model" of the models that take part.
    excluded : list of dict
        Label and reason, as `model` and `reason`, of those that do not.
    warned : list of dict
        The same of those that take part all the same.
    guessing : list of str
        Labels of included models that may be guessing.
    """

    included: list[str] = Field(min_length=1)
    excluded: list[dict[str, str]]
    warned: list[dict[str, str]] = Field(default_factory=list)
    guessing: list[str]


@dataclass(frozen=True, kw_only=True)
class AuditFiles:
    """Input files of the steps that score, tabulate and judge an audit; a step reads some of them.

    Parameters
    ----------
    manifest : path
        Manifest of the dataset.
    dataset : path or None
        Table `dataset`.
    code : sequence of path
        Source files of the step.
    sweeps : path or None
        Scores over the temperature.
    generator : path or None
        Manifest of the generator that the dataset was drawn from, which gives label-error rates.
    attributes : path or None
        Attributes of the samples, where groups are compared.
    manifests : sequence of path
        Manifests of trained checkpoints.
    checkpoints : sequence of path
        Manifests of fetched checkpoints.
    configuration : path or None
        The resolved configuration of the audit.
    release : path or None
        Values of the last release, for rules about declines.
    mappers, projections : sequence of path
        Manifests of the mappers, and one samples table for each mapper, task and model.
    task_manifests, task_datasets, task_attributes, task_logits : sequence of path
        Of the tasks beside the audit's own dataset: one for each, the logits one for each task and model.
    remedy_datasets, remedy_offsets, remedy_logits, remedy_samples : sequence of path
        Judging half and offsets of each remedy; logits of its original and of its whole adjustment; samples tables of
        the original and of each strength.
    """

    manifest: Path | str
    dataset: Path | str | None = None
    code: Paths = ()
    sweeps: Path | str | None = None
    generator: Path | str | None = None
    attributes: Path | str | None = None
    manifests: Paths = ()
    checkpoints: Paths = ()
    configuration: Path | str | None = None
    release: Path | str | None = None
    mappers: Paths = ()
    projections: Paths = ()
    task_manifests: Paths = ()
    task_datasets: Paths = ()
    task_attributes: Paths = ()
    task_logits: Paths = ()
    remedy_datasets: Paths = ()
    remedy_offsets: Paths = ()
    remedy_logits: Paths = ()
    remedy_samples: Paths = ()

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, object]) -> AuditFiles:
        """Input files of a step by name: an empty one is absent, and other names are left out."""
        present = {}
        for field in fields(cls):
            if inputs.get(field.name):
                present[field.name] = inputs[field.name]
        return cls(**present)  # type: ignore[arg-type]
