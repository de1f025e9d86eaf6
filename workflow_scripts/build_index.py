"""The page that links the audits of a run."""

from gfscore.core.files import read_json, write_text
from gfscore.show.page.index import render_index
from gfscore.workflow.jobs import logged_job


def build_index(paths_to_verdicts, path_to_page, *, titles):
    """Write index.html from the verdict.json of each audit; `titles` by audit, in the same order."""
    verdicts = [read_json(path) for path in paths_to_verdicts]
    write_text(path_to_page, render_index(dict(zip(titles, verdicts, strict=True)), titles=titles))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        build_index(snakemake.input.verdicts, snakemake.output.page, **snakemake.params)
