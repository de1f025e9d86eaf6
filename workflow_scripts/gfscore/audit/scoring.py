"""Checks and scores of the models of an audit, from their logits, one model at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.calibration.evidence import SWEEPS, sweep_frame
from gfscore.audit.checks import CheckedModel, PublishedAccuracy, check_logits
from gfscore.audit.samples import ModelLogits, SampleList, computed_logits, supplied_logits
from gfscore.audit.sensitivity import SENSITIVITY, model_sensitivity, with_places
from gfscore.audit.settings import TemperatureRange
from gfscore.audit.step_params import LogitChanges
from gfscore.audit.values import AuditSubject
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.identity import ModelName
from gfscore.core.settings import PlainSettings, Probabilities
from gfscore.measures.great import Great
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import FrameCache, Identity, read_table, stacked
from gfscore.tables.table import DATASET


@dataclass(frozen=True, kw_only=True)
class LogitCheck:
    """How the logits of one model are read and checked.

    Parameters
    ----------
    model : ModelName
    gate : PublishedAccuracy
        Published accuracy that the logits must reproduce.
    member : str or None
        Array to read from a user's file that holds several.
    allow_probabilities : bool or "logarithms"
        As in require_logits.
    """

    model: ModelName
    gate: PublishedAccuracy
    member: str | None = None
    allow_probabilities: Probabilities = False

    @classmethod
    def parse(cls, params: PlainSettings) -> LogitCheck:
        """Check from the params of a step: model, gate, member and allow_probabilities."""
        return cls(
            model=ModelName.from_columns(params["model"]),
            gate=PublishedAccuracy(**params["gate"]),
            member=params["member"],
            allow_probabilities=params["allow_probabilities"],
        )


@dataclass(frozen=True, kw_only=True)
class ScoredModels:
    """Checks and scores of the models of an audit.

    Parameters
    ----------
    checks : dict of ModelName to CheckedModel
    samples : list of (ModelName, str, DataFrame)
        Model, measure and samples table, of the accepted models.
    sweeps, sensitivity : DataFrame
        Tables of these names for the accepted models.
    identities : dict
        Identities of their logits, by label.
    """

    checks: dict[ModelName, CheckedModel]
    samples: list[tuple[ModelName, str, pd.DataFrame]]
    sweeps: pd.DataFrame
    sensitivity: pd.DataFrame
    identities: dict[str, Identity]


def check_and_score(
    files: AuditFiles,
    *,
    subject: AuditSubject,
    checks: Sequence[LogitCheck],
    temperatures: TemperatureRange,
    changes: LogitChanges,
    cache: FrameCache | None = None,
) -> ScoredModels:
    """Check the logits of every model of an audit, and score those that are accepted.

    Parameters
    ----------
    files : AuditFiles
        Manifest and dataset.
    subject : AuditSubject
    checks : sequence of LogitCheck
        One for each model with logits.
    temperatures : TemperatureRange
        Range that is searched.
    changes : LogitChanges
        Shifts and scales of the logits for the table `sensitivity`.
    cache : FrameCache, optional
        Frames of earlier runs that took long.

    Raises
    ------
    InputError
        For logits that cannot be audited.
    """
    manifest = DatasetManifest.read(files.manifest)
    path_to_dataset = cast(str, files.dataset)
    dataset = read_table(path_to_dataset, DATASET, expect={"dataset_digest": manifest.digest})
    counted = SampleList(dataset, source=path_to_dataset).counted
    measures = [measure for measure in subject.measures.values() if measure.from_logits]
    activations = {measure.name: cast(Great, measure.settings).activation for measure in subject.of_kind("great")}

    results = {}
    identities = {}
    samples = []
    sweeps = []
    sensitivity = []
    # One model at a time, so that the logits of only one are in memory.
    for check in checks:
        model = check.model
        path = subject.logits[model]
        evidence = _read_logits(path, check, manifest, dataset, supplied=model in subject.supplied).only(counted)
        results[model] = check_logits(evidence, manifest.classes, source=path, gate=check.gate)
        if not results[model].accepted:
            continue
        identities[model.label] = evidence.identity

        for measure in measures:
            columns = measure.kind.load()(evidence.logits, evidence.labels, settings=measure.settings)
            frame = pd.DataFrame({"sample_id": evidence.sample_id, "label": evidence.labels, **columns})
            samples.append((model, measure.name, frame[table_of(measure.kind.name).column_names]))

        cache_key = {"evidence": _digest_of(evidence), "model": model.columns()}
        if subject.calibrated_measure is not None:
            sweep: dict[str, Any] = {
                "measure": subject.calibrated_measure,
                "activation": subject.activation,
                "low": temperatures.low,
                "high": temperatures.high,
            }
            make = partial(sweep_frame, evidence, model=model, **sweep)
            sweeps.append(cache.get(SWEEPS, cache_key | sweep, make) if cache else make())
        make = partial(model_sensitivity, model.columns(), evidence.logits, evidence.labels, activations, changes)
        sensitivity_key = cache_key | {"activations": activations, "changes": changes.model_dump()}
        sensitivity.append(cache.get(SENSITIVITY, sensitivity_key, make) if cache else make())
        print(f"{model.label}: scored")

    return ScoredModels(
        checks=results,
        samples=samples,
        sweeps=stacked(SWEEPS, sweeps),
        sensitivity=with_places(sensitivity),
        identities=identities,
    )


def _digest_of(evidence: ModelLogits) -> str:
    # Of the arrays, not of the file: labels may come from the dataset, and settings decide how the file is read.
    state = hashlib.sha256(evidence.logits.tobytes())
    state.update(evidence.labels.tobytes())
    return state.hexdigest()


def _read_logits(
    path: Path | str, check: LogitCheck, manifest: DatasetManifest, dataset: pd.DataFrame, *, supplied: bool
) -> ModelLogits:
    if supplied:
        return supplied_logits(
            path,
            manifest,
            dataset,
            model=check.model,
            allow_probabilities=check.allow_probabilities,
            member=check.member,
        )
    return computed_logits(path, manifest, model=check.model, allow_probabilities=check.allow_probabilities)
