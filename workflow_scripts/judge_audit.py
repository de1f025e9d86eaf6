"""The verdict on an audit, with its findings."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Mapping, Sequence
from pathlib import Path

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.judgement import verdict_on_audit
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.tables import AuditTables
from gfscore.audit.values import AuditValues
from gfscore.audit.verdicts.findings import with_findings
from gfscore.audit.verdicts.gate_rules import RuleSettings, parsed_rules
from gfscore.core.dataset_manifest import resolve_label_error_rates
from gfscore.measures import NamedMeasure, named_measures
from gfscore.workflow.jobs import logged_job


def judge_audit(
    audit_values: AuditValues,
    files: AuditFiles,
    path_to_verdict: Path | str,
    *,
    tables: AuditTables,
    measures: Mapping[str, NamedMeasure],
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
    label_error_rates: Sequence[float] | None,
    fp_lambda: float,
) -> None:
    """Write verdict.json: the judgement of an audit, and its findings.

    Succeeds whatever the verdict, which the rule `gate` turns into an exit status.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the measures that the rules judge.
    files : AuditFiles
    path_to_verdict : path
        File to write.
    tables : AuditTables
        Tables of all measures.
    measures : mapping of str to NamedMeasure
        All measures by name.
    rules : sequence of RuleSettings
    intervals : IntervalSettings
    label_error_rates : sequence of K float, or None
        Shares of wrong labels; None if labels are assumed right.
    fp_lambda : float
        Lambda of FP.
    """
    verdict = verdict_on_audit(
        audit_values,
        files,
        rules=rules,
        intervals=intervals,
        label_error_rates=label_error_rates,
        fp_lambda=fp_lambda,
    )
    with_findings(verdict, tables, measures).write(path_to_verdict)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        rates = resolve_label_error_rates(params.label_error_rate, inputs.manifest, inputs.generator)
        judge_audit(
            # Without calibrations: no rule judges a temperature that was chosen on the same samples.
            AuditValues.from_params(params.subject, inputs),
            AuditFiles.from_inputs(inputs),
            snakemake.output.verdict,
            tables=AuditFolder(Path(inputs.selection).parent, snakemake.wildcards.audit).tables(),
            measures=named_measures(params.measures),
            rules=parsed_rules(params.rules),
            intervals=IntervalSettings(**params.intervals),
            label_error_rates=rates,
            fp_lambda=params.fp_lambda,
        )
