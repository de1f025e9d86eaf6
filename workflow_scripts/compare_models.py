"""Paired comparison of the models of an audit: differences per class and on the whole, ranks, and what they hang on."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.comparison.rows import tables_of
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import read_json, write_json
from gfscore.workflow.jobs import logged_job


def compare_models(inputs, path_to_manifest, paths, path_to_summary, *, audit, comparison, fp_lambda):
    """Write the tables that gfscore.audit.comparison.rows.tables_of makes, by name in `paths`, and comparison.json.

    Takes AuditInputs without a calibrated measure, since a temperature chosen on these samples voids the tests, the
    manifest of the dataset, the settings of the comparison and lambda of FP.
    """
    class_names = read_json(path_to_manifest)["classes"]
    rows, about = {name: [] for name in paths}, {}
    by_measure = {}
    for measured in inputs.measured():
        by_measure.setdefault(measured.key["measure"], []).append(measured)
    for name, measured in by_measure.items():
        own, about[name] = tables_of(
            measured, class_names, measure_settings=inputs.measures[name], settings=comparison, fp_lambda=fp_lambda
        )
        print(f"{name}: {about[name]}")
        for table in rows:
            rows[table] += own[table]
    write_audit_tables(paths, rows, audit=audit)
    write_json(path_to_summary, about)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings, made = snakemake.input, snakemake.params, snakemake.output
        files = {"samples": given.samples, "selection": given.selection, "logits": [], "calibration": None}
        compare_models(
            AuditInputs.of(settings.subject | {"calibrated_measure": None}, files),
            given.manifest,
            {name: made[name] for name in settings.tables},
            made.summary,
            audit=snakemake.wildcards.audit,
            comparison=settings.comparison,
            fp_lambda=settings.fp_lambda,
        )
