"""The figures of an audit, as SVG and PNG."""

from pathlib import Path

from gfscore.audit_tables import read_audit_tables
from gfscore.figures import figures_of_audit, save_figure
from gfscore.jobs import logged_job


def plot_figures(files, path_to_folder, *, audit, measures, fp_lambda):
    """Write <folder>/<name>.svg and .png for every figure.

    `files` maps class_scores, model_summary, vulnerability, calibration, calibration_json and sensitivity to paths,
    the last three empty in an audit without a temperature search; `measures` maps each measure to its settings,
    `fp_lambda` is lambda of FP.
    """
    tables = read_audit_tables(files, audit=audit)
    for name, figure in figures_of_audit(tables, measures=measures, fp_lambda=fp_lambda):
        save_figure(figure, Path(path_to_folder) / name)
        print(f"{name}: drawn")


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        plot_figures(
            dict(snakemake.input.items()),
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
