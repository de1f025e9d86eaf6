"""The figures of an audit, as SVG, PDF and PNG."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from pathlib import Path

from gfscore.audit.audit_folder import AuditFolder
from gfscore.core.digests import write_digests
from gfscore.show.figure_files import DrawnAudit, draw_by_processes
from gfscore.workflow.jobs import logged_job


def plot_figures(audit: DrawnAudit, path_to_folder: Path | str, *, threads: int = 1) -> None:
    """Write <folder>/<name>.svg, .pdf and .png for every figure, and their digests into checksums.json."""
    draw_by_processes(audit, path_to_folder, threads=threads)
    write_digests(path_to_folder)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        audit = DrawnAudit(
            folder=AuditFolder(Path(inputs.selection).parent, snakemake.wildcards.audit),
            subject=params.subject,
            fp_lambda=params.fp_lambda,
            scores=inputs.scores,
            dataset=inputs.dataset,
            pictures=list(inputs.pictures),
            seed=params.seed,
        )
        plot_figures(audit, snakemake.output.folder, threads=snakemake.threads)
