"""Every table of an audit, from values per sample that are read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gfscore.audit.agreement.decisions import class_share_table, names_of_training, training_method_table
from gfscore.audit.agreement.falsification import falsification_table
from gfscore.audit.agreement.gradient_masking import masking_table
from gfscore.audit.agreement.radii import radius_tables
from gfscore.audit.agreement.rank_correlations import measure_agreement
from gfscore.audit.calibration.evidence import accuracies_of, evidence_of_models
from gfscore.audit.calibration.sweeps import read_sweeps
from gfscore.audit.calibration.temperature_search import SearchSettings
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.class_scores import (
    class_pair_rows,
    class_rows,
    resolve_label_error_rates,
    vulnerability_rows,
)
from gfscore.audit.classwise.confusion import confusion_tables, predictions_of
from gfscore.audit.classwise.corruptions import corruption_errors
from gfscore.audit.classwise.similarity import similarity_table
from gfscore.audit.classwise.targets import target_tables
from gfscore.audit.comparison import comparison_tables
from gfscore.audit.costs import cost_rows
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import metric_rows
from gfscore.audit.groups.scores import group_score_rows
from gfscore.audit.model_summary import model_rows
from gfscore.audit.projections.rows import projection_tables
from gfscore.audit.projections.tasks import (
    UNPERTURBED,
    Projections,
    differences_between_groups,
    read_projections,
    read_tasks,
)
from gfscore.audit.table_names import TABULATED
from gfscore.audit.tables import TABLES
from gfscore.audit.values import AuditValues
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName
from gfscore.statistics.curves import ScoreCurves
from gfscore.tables.parquet_tables import frame_of, typed_frame

Rows = dict[str, Any]
"""Rows by the names of the tables; a table that an audit does not measure for is left out."""


def tabulate(
    inputs: AuditValues, files: Mapping[str, Any], *, audit: str, settings: Mapping[str, Any]
) -> Iterator[tuple[dict[str, tuple[Any, dict[str, Any]]], dict[str, Any]]]:
    """Yield the tables of TABULATED, some at a time, with the contents of the JSON file that belongs to them, by name.

    A table is a pair: its rows, as mappings or a data frame, and the identity in its file's metadata. Takes `files` as
    Tabulation.read does, with the table `sweeps`. Those that the audit does not measure for come last: they have no
    rows, and say so (`measured`).
    """
    manifest = read_json(files["manifest"])
    tabulation = Tabulation.read(inputs, files, manifest["classes"], settings)
    # What another audit must share for its numbers to be compared with these.
    about = {"measures": inputs.subject.entries(), "fp_lambda": settings["disparity"]["fp_lambda"]}
    own = {"class_scores": {"made_from": inputs.sources()}, "model_summary": about}

    def identity(name: str, *, measured: bool) -> dict[str, Any]:
        shared = {"audit": audit, "dataset_digest": manifest["digest"], "measured": measured}
        return shared | own.get(name, {})

    waiting = dict.fromkeys(TABULATED)
    for tables, beside in tabulation.tables(read_sweeps(files["sweeps"], audit=audit)):
        yield {name: (rows, identity(name, measured=True)) for name, rows in tables.items()}, beside
        for name in tables:
            del waiting[name]
    yield {name: ([], identity(name, measured=False)) for name in waiting}, {}


@dataclass(frozen=True, kw_only=True)
class Tabulation:
    """What the tables of an audit are made of.

    `settings` are what layout.table_settings says; `accuracies` those of accuracies_of; `label_error_rates` one number
    per class, or None: labels assumed right; `grouping` is None, and `projections` empty, in an audit without.
    """

    inputs: AuditValues
    class_names: Sequence[str]
    settings: Mapping[str, Any]
    accuracies: Mapping[ModelName, Mapping[str, Any]]
    label_error_rates: Sequence[float] | None = None
    grouping: Grouping | None = None
    projections: Sequence[Projections] = ()

    @classmethod
    def read(
        cls, inputs: AuditValues, files: Mapping[str, Any], class_names: Sequence[str], settings: Mapping[str, Any]
    ) -> Tabulation:
        """With what stands in files: the manifests of dataset, trained checkpoints and generator, attributes,
        projections, the manifests of their mappers and the files of other tasks; of all but the first two nothing
        where an audit has none."""
        grouping, projections = None, []
        if settings["groups"]:
            dataset = inputs.subject.models[0].dataset
            grouping = Grouping.read_chosen(files["attributes"], dataset=dataset, groups=settings["groups"])
        if files["mappers"]:
            tasks = read_tasks(inputs, files, settings["tasks"], confidence=settings["intervals"]["confidence"])
            mappers = [read_json(path) for path in files["mappers"]]
            projections = read_projections(inputs, files["projections"], mappers, tasks)
        return cls(
            inputs=inputs,
            class_names=class_names,
            settings=settings,
            accuracies=accuracies_of(inputs.subject.models, settings["published"], files["manifests"]),
            label_error_rates=resolve_label_error_rates(
                settings["label_error_rate"], files["manifest"], files["generator"]
            ),
            grouping=grouping,
            projections=projections,
        )

    def _evidence(self, curves):
        # What temperatures are chosen by; None where none is.
        measure, asked = self.inputs.subject.calibrated_measure, self.settings["calibration"]
        if not measure:
            return None
        chosen_by = {name: asked[name] for name in ("split", "distances")}
        seed = self.settings["disparity"]["seed"]
        return evidence_of_models(self.inputs, curves, self.accuracies, **chosen_by, seed=seed)

    def _calibrations(self, evidence):
        # Temperatures chosen by each objective, and the searched curves.
        if evidence is None:
            return {}, {}
        measure, asked = self.inputs.subject.calibrated_measure, self.settings["calibration"]
        results, rows = calibrate(
            evidence,
            asked["objectives"],
            settings=SearchSettings(**asked["temperatures"]),
            stability_window=asked["stability_window"],
            resampling=asked["resampling"] | {"seed": self.settings["disparity"]["seed"]},
            split=asked["split"],
        )
        named = {name: {"measure": measure, **result} for name, result in results.items()}
        return named, {"calibration": [{"measure": measure, **row} for row in rows]}

    def tables(self, curves: Mapping[str, ScoreCurves]) -> Iterator[tuple[Rows, dict[str, Any]]]:
        """Yield Rows of one table after the other, with the contents of the JSON file that belongs to them, by name.

        Takes the score of each model over the temperature by label.
        """
        evidence = self._evidence(curves)
        at_one = list(self.inputs.at_one())
        # Whose files are read, so that both only compute: the search takes about as long as these tables.
        with ThreadPoolExecutor(1) as beside:
            search = beside.submit(self._calibrations, evidence)
            yield from self._at_one(at_one)
            results, searched = search.result()
        yield searched, {"calibration": results}
        inputs, names, settings = self.inputs, self.class_names, self.settings
        measured = inputs.with_calibrated(at_one, results)
        how = {"intervals": settings["intervals"], "label_error_rates": self.label_error_rates}
        rows = [row for item in measured for row in class_rows(item, names, **how)]
        yield {"class_scores": rows}, {}
        # With the types of its columns, as it is read by others.
        class_scores = typed_frame(TABLES["class_scores"], rows)
        summary = model_rows(measured, class_scores, self.accuracies, settings["disparity"])
        yield {"model_summary": summary}, {}
        yield {"vulnerability": vulnerability_rows(class_scores), "class_pairs": class_pair_rows(class_scores)}, {}
        yield self._groups_and_projections(measured), {}
        yield self._agreement(class_scores), {}
        falsified = falsification_table(
            inputs, names, calibrations=results, alpha=1 - settings["intervals"]["confidence"]
        )
        if len(falsified):
            yield {"falsification": falsified}, {}
        yield {"costs": cost_rows(settings["costs"], class_scores)}, {}

    def _at_one(self, measured):
        # Tables that no temperature changes.
        inputs, names, settings = self.inputs, self.class_names, self.settings
        how = {"settings": settings["comparison"], "fp_lambda": settings["disparity"]["fp_lambda"]}
        rows, about = comparison_tables(measured, names, **how)
        yield rows, {"comparison": about}
        predictions = list(predictions_of(inputs))
        confusions, class_errors = confusion_tables(predictions, names)
        similarities = similarity_table(predictions, names, **settings["confusions"])
        yield {"confusions": confusions, "class_errors": class_errors, "similarities": similarities}, {}
        if inputs.subject.of_kind("corruption"):
            errors = corruption_errors(
                inputs,
                len(names),
                intervals=settings["intervals"],
                label_error_rates=self.label_error_rates,
                baseline=settings["corruption_baseline"],
            )
            yield {"corruption_errors": errors}, {}
        yield radius_tables(inputs, names, **self._ranking()), {}
        if inputs.subject.of_kind("probabilistic"):
            shares = class_share_table(inputs, names, confidence=settings["intervals"]["confidence"])
            yield {"class_shares": shares}, {}
        yield target_tables(inputs, names), {}

    def _agreement(self, class_scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
        # Tables that compare the measures of the audit with each other, as far as it has the measures.
        subject = self.inputs.subject
        kinds = {measure.kind.name for measure in subject.measures.values()}
        methods = self.settings["methods"]
        several_methods = len({model["method"] for model in methods} - {None}) > 1
        tables = {}
        if len(subject.measures) > 1:
            tables["measure_agreement"] = measure_agreement(class_scores, list(subject.measures), **self._ranking())
        if kinds >= {"clean", "adversarial", "probabilistic"} and several_methods:
            tables["training_methods"] = training_method_table(
                self.inputs, names_of_training(methods), confidence=self.settings["intervals"]["confidence"]
            )
        if kinds & {"adversarial", "minimal"}:
            tables["masking_signs"] = masking_table(self.inputs, len(self.class_names))
        return tables

    def _ranking(self):
        chosen = {name: self.settings["disparity"][name] for name in ("permutations", "seed")}
        return chosen | {"confidence": self.settings["intervals"]["confidence"]}

    def _groups_and_projections(self, measured):
        rows, differences = {}, {}
        groups, intervals = self.settings["groups"], self.settings["intervals"]
        if self.grouping:
            shared, fewest = (self.grouping, self.class_names), groups["minimum_cell"]
            rows["group_scores"] = group_score_rows(measured, *shared, intervals=intervals, minimum_cell=fewest)
            metrics = metric_rows(self.inputs, *shared, settings=groups, confidence=intervals["confidence"])
            rows["group_metrics"] = list(metrics)
        if self.projections and self.grouping:
            kinds = {UNPERTURBED: UNPERTURBED} | {
                name: measure.kind.name for name, measure in self.inputs.subject.measures.items()
            }
            own = {self.projections[0].task.name: rows["group_metrics"]}
            for task, of_task in ({of.task.name: of.task.metrics for of in self.projections} | own).items():
                frame = frame_of(TABLES["group_metrics"], of_task)
                differences[task] = differences_between_groups(frame, kinds=kinds)
        if self.projections:
            rows |= projection_tables(self.projections, differences, confidence=intervals["confidence"])
        return rows
