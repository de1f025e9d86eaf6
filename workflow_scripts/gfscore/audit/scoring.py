"""Checks and scores of the models of an audit, from the logits of one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.calibration.sweeps import sweep_frame
from gfscore.audit.checks import check_logits
from gfscore.audit.comparison.sensitivity import model_sensitivity, with_places
from gfscore.audit.model_logits import ModelLogits, computed_logits, given_logits
from gfscore.audit.sample_list import SampleList
from gfscore.audit.summary_tables import SENSITIVITY
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json, sha256_of_file
from gfscore.core.identity import label_of
from gfscore.measures import from_logits, kind_of
from gfscore.measures.samples import table_of
from gfscore.tables.kept_frames import KeptFrames
from gfscore.tables.parquet_tables import frame_of, read_table
from gfscore.tables.table import DATASET


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is asked of every model, and what was found of those that were added.

    `measures`: those from logits, name -> settings; `calibrated`: the one whose temperature is searched, or None;
    `temperatures`: low and high of the search; `changes`: shifts and scales of the logits, and lam, lambda of FP;
    `kept`: frames of earlier runs, which may hold what takes long, if any. `checks`: results of check_logits with
    dataset, threat, model; of the accepted models `parts`: samples tables as (model, measure, data frame), `sweeps`:
    scores over the temperature, `sensitivity`: rows of that table, `identities`: those of their logits, by
    label.
    """

    class_names: Sequence[str]
    measures: Mapping[str, Mapping[str, Any]]
    calibrated: str | None
    temperatures: Mapping[str, float]
    changes: Mapping[str, Any]
    kept: KeptFrames | None = None
    checks: list[dict[str, Any]] = field(default_factory=list)
    parts: list[tuple[Mapping[str, str], str, pd.DataFrame]] = field(default_factory=list)
    sweeps: list[pd.DataFrame] = field(default_factory=list)
    sensitivity: list[pd.DataFrame] = field(default_factory=list)
    identities: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, model: Mapping[str, str], found: ModelLogits, *, gate: Mapping[str, Any], source: Path | str) -> None:
        """Check the logits of a model, and score them if they are accepted; see check_logits."""
        checked = check_logits(found, self.class_names, source=source, gate=gate)
        self.checks.append({**model, **checked})
        if not checked["accepted"]:
            return
        self.identities[label_of(model)] = found.identity
        for name, entry in self.measures.items():
            columns = kind_of(entry).load()(found.logits, found.labels, settings=entry)
            frame = pd.DataFrame({"sample_id": found.sample_id, "label": found.labels, **columns})
            self.parts.append((model, name, frame[table_of(entry["kind"]).column_names]))
        made_of = {"logits": sha256_of_file(source), "model": dict(model)}
        if self.calibrated:
            key, activation = {**model, "measure": self.calibrated}, self.measures[self.calibrated]["activation"]
            how = {"activation": activation, **self.temperatures}
            sweep = self._kept(
                TABLES["sweeps"], made_of | {"key": key, "how": how}, lambda: sweep_frame(found, key, **how)
            )
            self.sweeps.append(sweep)
        great = {name: entry for name, entry in self.measures.items() if entry["kind"] == "great"}
        rows = self._kept(
            SENSITIVITY,
            made_of | {"measures": great, "changes": self.changes},
            lambda: model_sensitivity(model, found.logits, found.labels, great, **self.changes),
        )
        self.sensitivity.append(rows)
        print(f"{label_of(model)}: scored")

    def _kept(self, table, made_of, make):
        return self.kept.get(table, made_of, make) if self.kept else make()

    def all_sweeps(self) -> pd.DataFrame:
        """The table sweeps of all models."""
        return pd.concat(self.sweeps) if self.sweeps else frame_of(TABLES["sweeps"], [])

    def all_sensitivity(self) -> pd.DataFrame:
        """The table sensitivity of all models."""
        return with_places(self.sensitivity)


def score(
    files: Mapping[str, Any],
    *,
    subject: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
    temperatures: Mapping[str, float],
    changes: Mapping[str, Any],
    kept: KeptFrames | None = None,
) -> Scoring:
    """Check and score the logits of every model of an audit.

    `files` holds the paths of the `manifest` and the table of the `dataset`. `subject` is what
    plan.subject_of says, `checks` what is asked of the logits of each model (plan.logit_checks); the others are those
    of Scoring. Raises InputError for logits that cannot be audited.
    """
    manifest = read_json(files["manifest"])
    samples = read_table(files["dataset"], DATASET, expect={"dataset_digest": manifest["digest"]})
    counted = SampleList.of(samples, source=files["dataset"]).counted
    scoring = Scoring(
        class_names=manifest["classes"],
        measures={name: entry for name, entry in subject["measures"].items() if from_logits(entry)},
        calibrated=subject["calibrated_measure"],
        temperatures=temperatures,
        changes=changes,
        kept=kept,
    )
    # One model after the other, so that logits stand in memory once.
    for asked in checks:
        model, path = asked["model"], subject["logits"][label_of(asked["model"])]
        how = {name: asked[name] for name in ("model", "allow_probabilities")}
        if label_of(model) in subject["given"]:
            found = given_logits(path, manifest, samples, member=asked["member"], **how)
        else:
            found = computed_logits(path, manifest, **how)
        scoring.add(model, found.only(counted), gate=asked["gate"], source=path)
    return scoring
