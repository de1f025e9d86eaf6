"""The figures of an audit, as SVG, PDF and PNG."""

from pathlib import Path

from gfscore.figures import figures_of_audit, save_figure
from gfscore.mappers.pictures import read_pictures
from gfscore.scores.measured import AuditInputs
from gfscore.tables.audit_tables import read_audit_tables
from gfscore.workflow.jobs import logged_job

DRAWN_FROM = "great"
"""Kind of measure whose samples figures draw from."""


def plot_figures(files, path_to_folder, *, audit, measures, fp_lambda, inputs=None, seed=0):
    """Write <folder>/<name>.svg, .pdf and .png for every figure.

    `files` maps what read_audit_tables takes, and pictures (those of the mapper), where there are any, to paths;
    `measures` maps each measure to its settings, `fp_lambda` is lambda of FP. `inputs` are AuditInputs for the figures
    that draw from samples, with the `seed` of the draws.
    """
    tables = read_audit_tables(files, audit=audit)
    measured = measured_by_measure(inputs) if inputs else None
    pictures = read_pictures(files["pictures"]) if files.get("pictures") else None
    drawn_from = {"measured": measured, "seed": seed, "pictures": pictures}
    for name, figure in figures_of_audit(tables, measures=measures, fp_lambda=fp_lambda, **drawn_from):
        save_figure(figure, Path(path_to_folder) / name)
        print(f"{name}: drawn")


def measured_by_measure(inputs):
    """Measured of every model at T = 1 by measure, for the attack-free scores of an audit (AuditInputs)."""
    found = {name: [] for name, settings in inputs.measures.items() if settings["kind"] == DRAWN_FROM}
    for item in inputs.uncalibrated(found):
        found[item.key["measure"]].append(item)
    return found


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        settings = snakemake.params
        plot_figures(
            dict(snakemake.input.items()),
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            measures=settings.subject["measures"],
            fp_lambda=settings.fp_lambda,
            inputs=AuditInputs.of(settings.subject, snakemake.input),
            seed=settings.seed,
        )
