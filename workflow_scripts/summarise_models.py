"""Aggregate, disparity and noise floor of every model, and the ranking of the classes."""

from gfscore.audit.audit_tables import write_audit_tables
from gfscore.audit.calibration.evidence import accuracies_of
from gfscore.audit.measured import AuditInputs
from gfscore.audit.summaries import class_pair_rows, model_rows, vulnerability_rows
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.jobs import logged_job


def summarise_models(inputs, path_to_class_scores, paths_to_manifests, paths, *, audit, published, disparity):
    """Write the tables model_summary, vulnerability and class_pairs, whose paths `paths` holds by these names.

    Takes AuditInputs, the table class_scores and the checkpoints' manifests; `published` holds the published accuracies
    of each model, `disparity` fp_lambda, permutations and seed.
    """
    class_scores = read_table(path_to_class_scores, "class_scores", expect={"audit": audit})
    accuracies = accuracies_of(inputs.models, published, paths_to_manifests)
    rows = {
        "model_summary": model_rows(inputs, class_scores, accuracies, disparity),
        "vulnerability": vulnerability_rows(class_scores),
        "class_pairs": class_pair_rows(class_scores),
    }
    # What another audit must share for its numbers to be compared with these.
    about = {"measures": inputs.measures, "fp_lambda": disparity["fp_lambda"]}
    digest = read_identity(path_to_class_scores)["dataset_digest"]
    write_audit_tables(paths, rows, audit=audit, identity={"dataset_digest": digest, **about})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        summarise_models(
            AuditInputs.of(settings.subject, given),
            given.class_scores,
            given.manifests,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            published=settings.published,
            disparity=settings.disparity,
        )
