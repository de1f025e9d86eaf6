"""Which classes are taken for which, by every model, undisturbed, attacked and corrupted."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.classwise.confusion_rows import confusion_rows, error_rows, predictions_of, similarity_rows
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def analyse_confusions(inputs, path_to_manifest, paths, *, audit, comparison):
    """Write the tables confusions, class_errors and similarities, whose paths `paths` holds by these names.

    Takes AuditInputs and the manifest of the dataset; `comparison` holds shuffles, models and seed of the similarities.
    """
    names = read_json(path_to_manifest)["classes"]
    predicted = list(predictions_of(inputs))
    rows = {
        "confusions": [row for item in predicted for row in confusion_rows(item, len(names))],
        "class_errors": [row for item in predicted for row in error_rows(item, names)],
        "similarities": similarity_rows(predicted, names, **comparison),
    }
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        analyse_confusions(
            AuditInputs.of(settings.subject, given),
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            comparison=settings.comparison,
        )
