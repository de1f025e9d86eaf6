"""Aggregate, disparity and noise floor of every model, and the ranking of the classes."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.calibration.evidence import accuracies_of
from gfscore.audit.measured import AuditInputs
from gfscore.audit.model_rows import model_rows
from gfscore.audit.summaries import class_pair_rows, vulnerability_rows
from gfscore.audit.summary_tables import MODEL_SUMMARY
from gfscore.audit.tables import TABLES
from gfscore.tables.parquet_tables import frame_of, read_identity, read_table, write_table_and_csv
from gfscore.workflow.jobs import logged_job


def summarise_models(inputs, path_to_class_scores, paths_to_manifests, paths, *, audit, published, disparity):
    """Write the tables model_summary, vulnerability and class_pairs, whose paths `paths` holds by these names.

    Takes AuditInputs, the table class_scores and the checkpoints' manifests; `published` holds the published accuracies
    of each model, `disparity` fp_lambda, permutations and seed.
    """
    class_scores = read_table(path_to_class_scores, TABLES["class_scores"], expect={"audit": audit})
    accuracies = accuracies_of(inputs.models, published, paths_to_manifests)
    summary = frame_of(MODEL_SUMMARY, model_rows(inputs, class_scores, accuracies, disparity))
    rows = {"vulnerability": vulnerability_rows(class_scores), "class_pairs": class_pair_rows(class_scores)}
    # What another audit must share for its numbers to be compared with these.
    about = {"measures": inputs.measures, "fp_lambda": disparity["fp_lambda"]}
    digest = read_identity(path_to_class_scores)["dataset_digest"]
    identity = {"dataset_digest": digest, **about}
    write_table_and_csv(paths["model_summary"], MODEL_SUMMARY, summary, identity={"audit": audit, **identity})
    write_audit_tables(paths, rows, audit=audit, identity=identity)


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
