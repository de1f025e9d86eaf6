"""Checks and scores of the models of an audit, from the logits of one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from gfscore.audit.calibration.evidence import SWEEPS, sweep_frame
from gfscore.audit.checks import check_logits
from gfscore.audit.samples import SampleList, computed_logits, given_logits
from gfscore.audit.sensitivity import SENSITIVITY, model_sensitivity, with_places
from gfscore.audit.values import AuditSubject
from gfscore.core.digests import sha256_of_file
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import FrameCache, frame_of, read_table
from gfscore.tables.table import DATASET


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Checks and scores of the models of an audit, from their logits.

    `checks`: results of check_logits with dataset, threat, model. Of the accepted models `parts`: samples tables as
    (model, measure, data frame); the tables `sweeps`, scores over the temperature, and `sensitivity`; and the
    `identities` of their logits, by label.
    """

    checks: list[dict[str, Any]]
    parts: list[tuple[ModelName, str, pd.DataFrame]]
    sweeps: pd.DataFrame
    sensitivity: pd.DataFrame
    identities: dict[str, Mapping[str, Any]]


def score(
    files: Mapping[str, Any],
    *,
    subject: AuditSubject,
    checks: Sequence[Mapping[str, Any]],
    temperatures: Mapping[str, float],
    changes: Mapping[str, Any],
    kept: FrameCache | None = None,
) -> Scored:
    """Check the logits of every model of an audit, and score those that are accepted.

    `files` holds the paths of the `manifest` and the table of the `dataset`. `subject` are the models and measures,
    `checks` what is asked of the logits of each model (plan.logit_checks), `temperatures` low and high of the search,
    `changes` shifts and scales of the logits, and lam, lambda of FP; `kept` holds frames of earlier runs, which take
    long. Raises InputError for logits that cannot be audited.
    """
    manifest = read_json(files["manifest"])
    samples = read_table(files["dataset"], DATASET, expect={"dataset_digest": manifest["digest"]})
    counted = SampleList(samples, source=files["dataset"]).counted
    measures = [measure for measure in subject.measures.values() if measure.from_logits]
    great = {measure.name: measure.entry() for measure in subject.of_kind("great")}
    results, parts, sweeps, sensitivity, identities = [], [], [], [], {}
    # One model after the other, so that logits stand in memory once.
    for asked in checks:
        model = ModelName.from_columns(asked["model"])
        path = subject.logits[model]
        found = _logits_of(path, asked, manifest, samples, given=model in subject.supplied).only(counted)
        checked = check_logits(found, manifest["classes"], source=path, gate=asked["gate"])
        results.append({**model.columns(), **checked})
        if not checked["accepted"]:
            continue
        identities[model.label] = found.identity
        for measure in measures:
            columns = measure.kind.load()(found.logits, found.labels, settings=measure.settings)
            frame = pd.DataFrame({"sample_id": found.sample_id, "label": found.labels, **columns})
            parts.append((model, measure.name, frame[table_of(measure.kind.name).column_names]))
        made_of = {"logits": sha256_of_file(path), "model": model.columns()}
        if calibrated := subject.calibrated_measure:
            key = {**model.columns(), "measure": calibrated}
            how: dict[str, Any] = {"activation": subject.activation, **temperatures}
            make = partial(sweep_frame, found, model=model, measure=calibrated, **how)
            sweeps.append(_kept(kept, SWEEPS, made_of | {"key": key, "how": how}, make))
        make = partial(model_sensitivity, model.columns(), found.logits, found.labels, great, **changes)
        sensitivity.append(_kept(kept, SENSITIVITY, made_of | {"measures": great, "changes": changes}, make))
        print(f"{model.label}: scored")
    return Scored(
        checks=results,
        parts=parts,
        sweeps=pd.concat(sweeps) if sweeps else frame_of(SWEEPS, []),
        sensitivity=with_places(sensitivity),
        identities=identities,
    )


def _logits_of(path, asked, manifest, samples, *, given):
    how: dict[str, Any] = {
        "model": ModelName.from_columns(asked["model"]),
        "allow_probabilities": asked["allow_probabilities"],
    }
    if given:
        return given_logits(path, manifest, samples, member=asked["member"], **how)
    return computed_logits(path, manifest, **how)


def _kept(kept, table, made_of, make):
    return kept.get(table, made_of, make) if kept else make()
