"""The verdict on an audit, with its findings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.class_scores import resolve_label_error_rates
from gfscore.audit.judgement import judgement
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.tables import AuditTables, read_audit_tables
from gfscore.audit.values import AuditValues
from gfscore.audit.verdicts.findings import with_findings
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.workflow.jobs import logged_job


def judge_audit(
    audit_values: AuditValues,
    files: Mapping[str, Any],
    path_to_verdict: Path | str,
    *,
    tables: AuditTables,
    measures: Mapping[str, Mapping[str, Any]],
    **settings: Any,
) -> None:
    """Write verdict.json: the judgement of AuditValues by the paths `files` and its settings, and the findings.

    `tables` are AuditTables of all `measures`, whose settings these are. Succeeds whatever the verdict, which the rule
    `gate` turns into an exit status.
    """
    verdict = judgement(audit_values, files, **settings)
    with_findings(verdict, tables, measures).write(path_to_verdict)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        rates = resolve_label_error_rates(params.label_error_rate, inputs.manifest, inputs.generator)
        judge_audit(
            # Without calibrations: no rule judges a temperature that was chosen on the same samples.
            AuditValues.from_params(params.subject, inputs),
            inputs,
            snakemake.output.verdict,
            tables=read_audit_tables(dict(inputs.items()), audit=snakemake.wildcards.audit),
            measures=params.measures,
            rules=parsed_rules(params.rules),
            intervals=IntervalSettings(**params.intervals),
            label_error_rates=rates,
            fp_lambda=params.fp_lambda,
        )
