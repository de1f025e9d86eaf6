"""The tables of an audit as LaTeX."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json, write_text
from gfscore.measures import measure_of
from gfscore.show.exports.latex import calibration_table, class_table, coupling_table, model_table, projection_table
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def export_tables(
    files: Mapping[str, Any],
    path_to_folder: Path | str,
    *,
    audit: str,
    measures: Mapping[str, Mapping[str, Any]],
    fp_lambda: float,
) -> None:
    """Write <folder>/<measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one,
    and <mapper>-projection.tex and -coupling.tex of every mapper.

    `files` maps class_scores, model_summary, projection_models and calibrations to paths.
    """
    calibrations, folder = read_json(files["calibrations"]), Path(path_to_folder)
    scores, projected = (
        read_table(files[name], TABLES[name], expect={"audit": audit}) for name in ("class_scores", "projection_models")
    )
    summary = read_table(files["model_summary"], TABLES["model_summary"], expect={"audit": audit})
    for mapper, rows in projected.groupby("mapper", sort=False):
        write_text(folder / f"{mapper}-projection.tex", projection_table(rows))
        write_text(folder / f"{mapper}-coupling.tex", coupling_table(rows))
    for name, settings in measures.items():
        meaning = measure_of(settings)
        models, classes = (table[table["measure"] == name] for table in (summary, scores))
        how: dict[str, Any] = {"name": name, "fp_lambda": fp_lambda, "calibrations": calibrations}
        write_text(folder / f"{name}-models.tex", model_table(models, meaning, **how))
        write_text(folder / f"{name}-classes.tex", class_table(classes, meaning, name=name))
        if name in {result["measure"] for result in calibrations.values()}:
            write_text(folder / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_tables(snakemake.input, snakemake.output.folder, audit=snakemake.wildcards.audit, **snakemake.params)
