"""Class values of every measure of an audit, with simultaneous intervals."""

from gfscore.audit.measured import AuditInputs
from gfscore.audit.summaries import class_rows, resolve_label_error_rates
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.tables.parquet_tables import frame_of, write_table_and_csv
from gfscore.workflow.jobs import logged_job


def summarise_classes(inputs, path_to_manifest, path_to_table, *, audit, intervals, label_error_rates):
    """Write class_scores from AuditInputs and the manifest of the dataset.

    `intervals` is that section of config.yaml, `label_error_rates` one number per class, or None: labels assumed right.
    """
    manifest = read_json(path_to_manifest)
    rows = []
    for measured in inputs.measured():
        rows += class_rows(
            measured,
            manifest["classes"],
            settings=inputs.measures[measured.key["measure"]],
            intervals=intervals,
            label_error_rates=label_error_rates,
        )
    frame = frame_of(TABLES["class_scores"], rows)
    write_table_and_csv(
        path_to_table, TABLES["class_scores"], frame, identity={"audit": audit, "dataset_digest": manifest["digest"]}
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        summarise_classes(
            AuditInputs.of(settings.subject, given),
            given.manifest,
            snakemake.output.table,
            audit=snakemake.wildcards.audit,
            intervals=settings.intervals,
            label_error_rates=resolve_label_error_rates(settings.label_error_rate, given.manifest, given.generator),
        )
