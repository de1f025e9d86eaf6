"""All tables of an audit, made of the values of its samples, which are read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pandas as pd

from gfscore.audit.agreement.decisions import class_share_table, training_method_names, training_method_table
from gfscore.audit.agreement.falsification import falsification_table
from gfscore.audit.agreement.gradient_masking import masking_table
from gfscore.audit.agreement.radii import radius_tables
from gfscore.audit.agreement.rank_correlations import measure_agreement
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.calibration.evidence import ModelEvidence, accuracies_of, evidence_of_models, read_sweeps
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.calibration_results import Calibrations, as_json
from gfscore.audit.class_scores import class_pair_table, class_score_table, vulnerability_table
from gfscore.audit.classwise.confusion import confusion_tables, predictions_of
from gfscore.audit.classwise.corruptions import corruption_errors
from gfscore.audit.classwise.similarity import similarity_table
from gfscore.audit.classwise.targets import target_tables
from gfscore.audit.comparison import comparison_tables
from gfscore.audit.costs import cost_table
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import group_metric_table
from gfscore.audit.groups.scores import group_score_table
from gfscore.audit.judgement import verdicts_by_model
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.projections.summaries import projection_tables
from gfscore.audit.projections.tasks import (
    UNPERTURBED,
    Projections,
    differences_between_groups,
    read_projections,
    read_tasks,
)
from gfscore.audit.remedies.reading import read_remedies
from gfscore.audit.remedies.tables import MeasuredRemedy, remedy_tables
from gfscore.audit.step_params import TableSettings
from gfscore.audit.table_names import TABULATED
from gfscore.audit.tables import TABLES
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.core.dataset_manifest import DatasetManifest, resolve_label_error_rates
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName
from gfscore.statistics.curves import ScoreCurves
from gfscore.tables.parquet_tables import typed_frame


@dataclass(frozen=True)
class TableGroup:
    """Tables of an audit that are made together.

    Parameters
    ----------
    frames : dict
        Tables by name.
    documents : dict
        Contents of the JSON files beside them, by name: calibration, comparison.
    identities : dict
        Metadata in each table's file, by the table's name.
    """

    frames: dict[str, pd.DataFrame]
    documents: dict[str, Mapping[str, object]] = field(default_factory=dict)
    identities: dict[str, dict[str, object]] = field(default_factory=dict)


def tabulate(
    audit_values: AuditValues, files: AuditFiles, *, audit: str, settings: TableSettings
) -> Iterator[TableGroup]:
    """Make every table that TABULATED lists.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    files : AuditFiles
        All files except the verdict's.
    audit : str
        Name of the audit.
    settings : TableSettings

    Yields
    ------
    TableGroup
        Tables as soon as they are made. Last come the tables that the audit has no measure for: they have no rows, and
        their identity has `measured` False.
    """
    manifest = DatasetManifest.read(files.manifest)
    tabulation = Tabulation.read(audit_values, files, manifest.classes, settings)
    identity = {"audit": audit, "dataset_digest": manifest.digest, "measured": True}
    # Settings and files behind the numbers: two audits may be compared only where these agree.
    identities: dict[str, dict[str, object]] = {
        "class_scores": {"made_from": audit_values.sources()},
        "model_summary": {"measures": audit_values.subject.entries(), "fp_lambda": settings.disparity.fp_lambda},
    }

    measured_tables = set()
    for group in tabulation.tables(read_sweeps(cast(str, files.sweeps), audit=audit)):
        for name in group.frames:
            group.identities[name] = identity | identities.get(name, {})
        measured_tables |= set(group.frames)
        yield group

    unmeasured = TableGroup({})
    for name in TABULATED:
        if name not in measured_tables:
            unmeasured.frames[name] = typed_frame(TABLES[name], [])
            unmeasured.identities[name] = identity | {"measured": False} | identities.get(name, {})
    yield unmeasured


@dataclass(frozen=True, kw_only=True)
class Tabulation:
    """Everything that the tables of an audit are made of, read from its files, and the order in which they are made.

    Parameters
    ----------
    audit_values : AuditValues
    class_names : sequence of K str
    settings : TableSettings
    accuracies : mapping
        Accuracies of each model (see accuracies_of).
    label_error_rates : sequence of K float, or None
        Shares of wrong labels by class; None if labels are assumed right.
    grouping : Grouping or None
        Groups of the samples; None for an audit that compares no groups.
    projections : sequence of Projections
        Empty for an audit without mappers.
    remedies : sequence of MeasuredRemedy
        Empty for an audit without a remedy.
    """

    audit_values: AuditValues
    class_names: Sequence[str]
    settings: TableSettings
    accuracies: Mapping[ModelName, Mapping[str, Any]]
    label_error_rates: Sequence[float] | None = None
    grouping: Grouping | None = None
    projections: Sequence[Projections] = ()
    remedies: Sequence[MeasuredRemedy] = ()

    @classmethod
    def read(
        cls, audit_values: AuditValues, files: AuditFiles, class_names: Sequence[str], settings: TableSettings
    ) -> Tabulation:
        """Read all files but the values of samples.

        Parameters
        ----------
        audit_values : AuditValues
        files : AuditFiles
        class_names : sequence of K str
        settings : TableSettings
        """
        grouping = None
        if settings.groups:
            grouping = Grouping.read_chosen(
                cast(str, files.attributes),
                dataset=audit_values.subject.models[0].dataset,
                groups=settings.groups,
            )
        projections = []
        if files.mappers:
            tasks = read_tasks(audit_values, files, settings.tasks, confidence=settings.intervals.confidence)
            manifests = [read_json(path) for path in files.mappers]
            projections = read_projections(audit_values, files.projections, manifests, tasks)
        rates = resolve_label_error_rates(settings.label_error_rate, files.manifest, files.generator)
        return cls(
            audit_values=audit_values,
            class_names=class_names,
            settings=settings,
            accuracies=accuracies_of(audit_values.subject.models, settings.published, files.manifests),
            label_error_rates=rates,
            grouping=grouping,
            projections=projections,
            remedies=read_remedies(settings.remedies, files, audit_values, label_error_rates=rates),
        )

    def tables(self, curves: Mapping[str, ScoreCurves]) -> Iterator[TableGroup]:
        """Yield the tables that the audit has measures for, without identities.

        Parameters
        ----------
        curves : mapping
            Score of each model over the temperature, by the model's label.
        """
        search = self.settings.calibration
        evidence: list[ModelEvidence] = []
        if search is not None:
            evidence = evidence_of_models(
                self.audit_values,
                curves,
                self.accuracies,
                distances=search.distances,
                seed=self.settings.disparity.seed,
                split=search.split,
            )
        uncalibrated = list(self.audit_values.uncalibrated())
        yield from self._tables_without_temperature(uncalibrated)

        calibrations: Calibrations = {}
        calibration_tables = {}
        if search is not None:
            calibrations, calibration_tables["calibration"] = calibrate(
                evidence,
                search.objectives,
                measure=cast(str, self.audit_values.subject.calibrated_measure),
                settings=search.temperatures,
                stability_window=search.stability_window,
                permutations=search.permutations,
                seed=self.settings.disparity.seed,
                split=search.split,
            )
        yield TableGroup(calibration_tables, {"calibration": as_json(calibrations)})
        values = self.audit_values.with_calibrated(uncalibrated, calibrations)

        scores = class_score_table(
            values,
            self.class_names,
            intervals=self.settings.intervals,
            label_error_rates=self.label_error_rates,
        )
        yield TableGroup({"class_scores": scores})
        summary = model_summary_table(values, scores, self.accuracies, self.settings.disparity, self.settings.intervals)
        yield TableGroup({"model_summary": summary})
        yield TableGroup({"vulnerability": vulnerability_table(scores), "class_pairs": class_pair_table(scores)})
        yield self._group_tables(values)
        yield self._agreement(scores)
        falsification = falsification_table(
            self.audit_values,
            self.class_names,
            calibrations=calibrations,
            alpha=1 - self.settings.intervals.confidence,
        )
        if len(falsification):
            yield TableGroup({"falsification": falsification})
        if self.remedies:
            yield TableGroup(self._remedy_tables())
        yield TableGroup({"costs": cost_table(self.settings.costs, scores)})

    def _remedy_tables(self) -> dict[str, pd.DataFrame]:
        intervals = self.settings.intervals
        judged = []
        for remedy in self.remedies:
            judged += [remedy.original, remedy.judged]
        verdicts = verdicts_by_model(
            judged,
            self.class_names,
            rules=parsed_rules(self.settings.gate),
            # Two models of each remedy, original and adjusted, also of one that was excluded from the audit.
            models=2 * len(self.settings.remedies),
            intervals=intervals,
            label_error_rates=self.label_error_rates,
            fp_lambda=self.settings.disparity.fp_lambda,
        )
        return remedy_tables(
            self.remedies,
            self.class_names,
            verdicts=verdicts,
            intervals=intervals,
            family_size=len(self.settings.remedies),
        )

    def _tables_without_temperature(self, values: Sequence[SampleValues]) -> Iterator[TableGroup]:
        # Tables that do not depend on the temperature.
        settings = self.settings
        names = self.class_names
        comparisons, summary = comparison_tables(
            values,
            names,
            settings=settings.comparison,
            fp_lambda=settings.disparity.fp_lambda,
            family_models=len(self.audit_values.subject.models),
            label_error_rates=self.label_error_rates,
        )
        yield TableGroup(comparisons, {"comparison": summary})
        predictions = list(predictions_of(self.audit_values))
        confusions, class_errors = confusion_tables(predictions, names)
        similarities = similarity_table(predictions, names, settings.confusions)
        yield TableGroup({"confusions": confusions, "class_errors": class_errors, "similarities": similarities})
        if self.audit_values.subject.of_kind("corruption"):
            errors = corruption_errors(
                self.audit_values,
                len(names),
                intervals=settings.intervals,
                label_error_rates=self.label_error_rates,
                baseline=settings.corruption_baseline,
            )
            yield TableGroup({"corruption_errors": errors})
        confidence = settings.intervals.confidence
        rates = self.label_error_rates
        radii = radius_tables(self.audit_values, names, confidence=confidence, label_error_rates=rates)
        yield TableGroup(radii)
        if self.audit_values.subject.of_kind("probabilistic"):
            shares = class_share_table(self.audit_values, names, confidence=confidence, label_error_rates=rates)
            yield TableGroup({"class_shares": shares})
        yield TableGroup(target_tables(self.audit_values, names))

    def _agreement(self, scores: pd.DataFrame) -> TableGroup:
        # Tables that compare measures with each other, each where the audit has the measures for it.
        subject = self.audit_values.subject
        kinds = {measure.kind.name for measure in subject.measures.values()}
        methods = {model.method for model in self.settings.methods} - {None}
        tables = {}
        # A measure that is made of others agrees with these by definition.
        measured = [name for name, measure in subject.measures.items() if not measure.derived]
        if len(measured) > 1:
            tables["measure_agreement"] = measure_agreement(
                scores,
                measured,
                permutations=self.settings.disparity.permutations,
                seed=self.settings.disparity.seed,
                confidence=self.settings.intervals.confidence,
            )
        if kinds >= {"clean", "adversarial"} and len(methods) > 1:
            tables["training_methods"] = training_method_table(
                self.audit_values,
                training_method_names(self.settings.methods),
                self.settings.baselines,
                classes=len(self.class_names),
                confidence=self.settings.intervals.confidence,
                label_error_rates=self.label_error_rates,
            )
        if kinds & {"adversarial", "minimal"}:
            tables["masking_signs"] = masking_table(self.audit_values, len(self.class_names))
        return TableGroup(tables)

    def _group_tables(self, values: Sequence[SampleValues]) -> TableGroup:
        # Tables of groups, and of projections, whose effects stand beside the differences between groups.
        confidence = self.settings.intervals.confidence
        tables: dict[str, Any] = {}
        differences = {}
        groups = self.settings.groups
        if self.grouping and groups:
            tables["group_scores"] = group_score_table(
                values,
                self.grouping,
                self.class_names,
                intervals=self.settings.intervals,
                minimum_cell=groups.minimum_cell,
            )
            tables["group_metrics"] = group_metric_table(
                self.audit_values,
                self.grouping,
                self.class_names,
                settings=groups,
                confidence=confidence,
            )
            # Differences between groups by task; the first task is the audit's own, whose metrics were made just now.
            kinds = {UNPERTURBED: UNPERTURBED}
            for name, measure in self.audit_values.subject.measures.items():
                kinds[name] = measure.kind.name
            metrics_by_task = {projection.task.name: projection.task.metrics for projection in self.projections}
            if self.projections:
                metrics_by_task[self.projections[0].task.name] = tables["group_metrics"]
            for task, metrics in metrics_by_task.items():
                differences[task] = differences_between_groups(metrics, kinds=kinds)
        if self.projections:
            tables |= projection_tables(self.projections, differences, confidence=confidence)
        return TableGroup(tables)
