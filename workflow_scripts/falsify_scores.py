"""Attack-free scores held against the distances that attacks found."""

from gfscore.audit.agreement.falsification_rows import falsification_rows
from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def falsify_scores(inputs, path_to_manifest, paths, *, audit, confidence):
    """Write the table falsification, whose path `paths` holds, from AuditInputs and the manifest of the dataset.

    `confidence` is that of each row's interval.
    """
    class_names = read_json(path_to_manifest)["classes"]
    rows = {"falsification": falsification_rows(inputs, class_names, alpha=1 - confidence)}
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        falsify_scores(
            AuditInputs.of(settings.subject, given),
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            confidence=settings.confidence,
        )
