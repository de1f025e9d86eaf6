"""Which classes targeted attacks reach, from where, and what predicts it."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.classwise.target_rows import target_tables
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def analyse_targets(inputs, path_to_manifest, paths, *, audit):
    """Write target_success, target_matrix and target_predictors, whose paths `paths` holds by these names.

    Takes AuditInputs and the manifest of the dataset.
    """
    write_audit_tables(paths, target_tables(inputs, read_json(path_to_manifest)["classes"]), audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given = snakemake.input
        analyse_targets(
            AuditInputs.of(snakemake.params.subject, given),
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
        )
