"""Decisions about probabilistic robustness, counted per class, with bounds of the share truly robust."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.measured import AuditInputs, read_samples
from gfscore.audit.probabilistic_rows import share_rows
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def count_decisions(inputs, path_to_manifest, paths, *, audit, confidence):
    """Write the table class_shares, whose path `paths` holds, from AuditInputs and the manifest of the dataset.

    `confidence` is that of the corrected bounds.
    """
    names = read_json(path_to_manifest)["classes"]
    rows = []
    for model, own in inputs.paths():
        for measure, settings in inputs.measures.items():
            if settings["kind"] == "probabilistic":
                samples = read_samples(own[measure], model, measure, "probabilistic")
                key = {**model, "measure": measure}
                rows += share_rows(key, samples, names, settings=settings, confidence=confidence)
    write_audit_tables(paths, {"class_shares": rows}, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        count_decisions(
            AuditInputs.of(settings.subject, given),
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            confidence=settings.confidence,
        )
