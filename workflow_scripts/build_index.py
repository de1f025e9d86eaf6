"""The page that links the audits of a run."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Mapping, Sequence
from pathlib import Path

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.files import write_text
from gfscore.show.page.index import render_index
from gfscore.workflow.jobs import logged_job


def build_index(
    paths_to_verdicts: Sequence[Path | str], path_to_page: Path | str, *, titles: Mapping[str, str]
) -> None:
    """Write index.html from the verdict.json of each audit; `titles` by audit, in the same order.

    Raises InputError for a verdict on other files than there are now.
    """
    verdicts = {}
    for audit, path in zip(titles, paths_to_verdicts, strict=True):
        verdicts[audit] = read_verdict(path)
        verdicts[audit].require_current(path)
    write_text(path_to_page, render_index(verdicts, titles=titles))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        build_index(snakemake.input.verdicts, snakemake.output.page, **snakemake.params)
