"""The figures of an audit, as SVG, PDF and PNG."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.digests import write_digests
from gfscore.show.charts.declaration import SCORE
from gfscore.show.figure_files import draw_by_processes
from gfscore.workflow.jobs import logged_job


def plot_figures(
    files: Mapping[str, Any],
    path_to_folder: Path | str,
    *,
    audit: str,
    measures: Mapping[str, Mapping[str, Any]],
    fp_lambda: float,
    sampled: Mapping[str, Any] | None = None,
    seed: int = 0,
    threads: int = 1,
) -> None:
    """Write <folder>/<name>.svg, .pdf and .png for every figure, and their digests into checksums.json.

    See gfscore.show.figure_files for what it takes.
    """
    settings = {"audit": audit, "measures": measures, "fp_lambda": fp_lambda, "sampled": sampled, "seed": seed}
    draw_by_processes(files, path_to_folder, threads=threads, **settings)
    write_digests(path_to_folder)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        settings, measures = snakemake.params, snakemake.params.subject["measures"]
        drawn_from = {name: entry for name, entry in measures.items() if entry["kind"] == SCORE}
        plot_figures(
            dict(snakemake.input.items()),
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            measures=measures,
            fp_lambda=settings.fp_lambda,
            sampled=settings.subject | {"measures": drawn_from},
            seed=settings.seed,
            threads=snakemake.threads,
        )
