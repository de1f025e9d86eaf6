"""The verdict on an audit."""

from gfscore.audit.inputs import AuditInputs
from gfscore.audit.judgement import judgement
from gfscore.audit.summaries import resolve_label_error_rates
from gfscore.core.files import write_json
from gfscore.workflow.jobs import logged_job


def judge_audit(inputs, given, path_to_verdict, **settings):
    """Write verdict.json: what judgement says of AuditInputs, the paths `given`, and its settings.

    Succeeds whatever the verdict, which the rule `gate` turns into an exit status.
    """
    write_json(path_to_verdict, judgement(inputs, given, **settings))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        judge_audit(
            # Without calibrations: no rule judges a temperature that was chosen on the same samples.
            AuditInputs.of(settings.subject, given),
            given,
            snakemake.output.verdict,
            rules=settings.rules,
            intervals=settings.intervals,
            label_error_rates=resolve_label_error_rates(settings.label_error_rate, given.manifest, given.generator),
            fp_lambda=settings.fp_lambda,
        )
