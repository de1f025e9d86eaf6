"""Aggregate, disparity and noise floor of every model, and the ranking of the classes."""

from gfscore.calibration.evidence import accuracies_of
from gfscore.scores.measured import AuditInputs
from gfscore.scores.summaries import model_rows, vulnerability_rows
from gfscore.tables import frame_of, read_table, write_csv_beside, write_table
from gfscore.workflow.jobs import logged_job


def summarise_models(
    inputs,
    path_to_class_scores,
    paths_to_manifests,
    path_to_table,
    path_to_vulnerability,
    *,
    audit,
    published,
    disparity,
):
    """Write model_summary and vulnerability from AuditInputs, class_scores and the checkpoints' manifests.

    `published` holds the published accuracies of each model, `disparity` fp_lambda, permutations and seed.
    """
    class_scores = read_table(path_to_class_scores, "class_scores", expect={"audit": audit})
    accuracies = accuracies_of(inputs.models, published, paths_to_manifests)
    tables = {
        path_to_table: ("model_summary", model_rows(inputs, class_scores, accuracies, disparity)),
        path_to_vulnerability: ("vulnerability", vulnerability_rows(class_scores)),
    }
    for path, (table, rows) in tables.items():
        frame = frame_of(table, rows)
        write_table(path, table, frame, identity={"audit": audit})
        write_csv_beside(path, frame)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        summarise_models(
            AuditInputs.of(settings.subject, given),
            given.class_scores,
            given.manifests,
            snakemake.output.table,
            snakemake.output.vulnerability,
            audit=snakemake.wildcards.audit,
            published=settings.published,
            disparity=settings.disparity,
        )
