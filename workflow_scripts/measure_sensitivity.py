"""How score, disparity and ranks move when the logits are shifted or scaled, which changes no prediction."""

from gfscore.audit.comparison.sensitivity import sensitivity_table
from gfscore.audit.measured import included, label_of
from gfscore.audit.summary_tables import SENSITIVITY
from gfscore.tables.parquet_tables import read_logits, write_table_and_csv
from gfscore.workflow.jobs import logged_job


def measure_sensitivity(
    paths_to_logits, path_to_selection, path_to_table, *, audit, models, measures, shifts, scales, fp_lambda
):
    """Write the sensitivity table: every great variant under each of the `shifts` and `scales`, one at a time."""
    selected = included(path_to_selection)
    classifiers = (
        (model, *reversed(read_logits(path, expect=model)[1:]))
        for model, path in zip(models, paths_to_logits, strict=True)
        if label_of(model) in selected
    )
    frame = sensitivity_table(classifiers, measures, shifts=shifts, scales=scales, lam=fp_lambda)
    write_table_and_csv(path_to_table, SENSITIVITY, frame, identity={"audit": audit})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        audit = snakemake.wildcards.audit
        given = snakemake.input
        measure_sensitivity(given.logits, given.selection, snakemake.output.table, audit=audit, **snakemake.params)
