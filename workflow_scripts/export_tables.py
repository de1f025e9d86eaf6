"""The tables of an audit as LaTeX."""

from pathlib import Path

from gfscore.audit.summary_tables import MODEL_SUMMARY
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json, write_text
from gfscore.measures import measure_of
from gfscore.show.exports.latex import calibration_table, class_table, model_table
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def export_tables(path_to_scores, path_to_summary, path_to_calibrations, path_to_folder, *, audit, measures, fp_lambda):
    """Write <folder>/<measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one."""
    calibrations = read_json(path_to_calibrations)
    scores = read_table(path_to_scores, TABLES["class_scores"], expect={"audit": audit})
    summary = read_table(path_to_summary, MODEL_SUMMARY, expect={"audit": audit})
    for name, settings in measures.items():
        meaning = measure_of(settings)
        models, classes = (table[table["measure"] == name] for table in (summary, scores))
        folder = Path(path_to_folder)
        how = {"name": name, "fp_lambda": fp_lambda, "calibrations": calibrations}
        write_text(folder / f"{name}-models.tex", model_table(models, meaning, **how))
        write_text(folder / f"{name}-classes.tex", class_table(classes, meaning, name=name))
        if name in {result["measure"] for result in calibrations.values()}:
            write_text(folder / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_tables(
            snakemake.input.class_scores,
            snakemake.input.model_summary,
            snakemake.input.calibrations,
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
