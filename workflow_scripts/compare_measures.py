"""What the measures of an audit say of each other: agreement of rankings, training methods, signs of masking."""

from gfscore.audit.agreement.rows import agreement_rows, masking_rows, training_rows
from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.measured import AuditInputs
from gfscore.audit.table_names import MEASURE_TABLES
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def compare_measures(inputs, path_to_scores, path_to_manifest, paths, *, audit, wanted, methods, ranking):
    """Write measure_agreement, training_methods and masking_signs, whose paths `paths` holds by these names.

    Takes AuditInputs, the table class_scores and the manifest of the dataset; `wanted` names the tables that the audit
    measures enough for, the others stay empty; `methods` are mappings with threat, model and method, the training
    method or None; `ranking` holds confidence, permutations and seed of the rank correlations.
    """
    classes = len(read_json(path_to_manifest)["classes"])
    trained = {(model["threat"], model["model"]): model["method"] for model in methods}
    rows = {table: [] for table in MEASURE_TABLES["compare_measures"]}
    if "measure_agreement" in wanted:
        scores = read_table(path_to_scores, TABLES["class_scores"], expect={"audit": audit})
        rows["measure_agreement"] = agreement_rows(scores, list(inputs.measures), **ranking)
    if "training_methods" in wanted:
        rows["training_methods"] = training_rows(inputs, trained, confidence=ranking["confidence"])
    if "masking_signs" in wanted:
        rows["masking_signs"] = masking_rows(inputs, classes)
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        compare_measures(
            AuditInputs.of(settings.subject, given),
            given.class_scores,
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            wanted=settings.wanted,
            methods=settings.methods,
            ranking=settings.ranking,
        )
