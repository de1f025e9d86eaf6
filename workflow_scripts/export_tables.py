"""The tables of an audit as LaTeX."""

from pathlib import Path

from gfscore.audit.summary_tables import MODEL_SUMMARY
from gfscore.audit.tables import TABLES
from gfscore.core.files import write_text
from gfscore.measures import measure_of
from gfscore.show.exports.latex import class_table, model_table
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def export_tables(path_to_scores, path_to_summary, path_to_folder, *, audit, measures, fp_lambda):
    """Write <folder>/<measure>-models.tex and -classes.tex for every measure."""
    scores = read_table(path_to_scores, TABLES["class_scores"], expect={"audit": audit})
    summary = read_table(path_to_summary, MODEL_SUMMARY, expect={"audit": audit})
    for name, settings in measures.items():
        meaning = measure_of(settings)
        models, classes = (table[table["measure"] == name] for table in (summary, scores))
        folder = Path(path_to_folder)
        write_text(folder / f"{name}-models.tex", model_table(models, meaning, name=name, fp_lambda=fp_lambda))
        write_text(folder / f"{name}-classes.tex", class_table(classes, meaning, name=name))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_tables(
            snakemake.input.class_scores,
            snakemake.input.model_summary,
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
