"""One measure of one model: every kind that shows images to a network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.measures import kind_of
from gfscore.measures.job import measure_in_batches, of_job
from gfscore.measures.samples import table_of
from gfscore.networks.precision import FULL
from gfscore.workflow.jobs import logged_job


def measure_model(
    files: Mapping[str, Any],
    path_to_samples: Path | str,
    path_to_progress: Path | str,
    *,
    settings: Mapping[str, Any],
    search: str = FULL,
    **how: Any,
) -> None:
    """Write the samples table of one model; files, `settings` and all else as `measure_in_batches` takes them.

    `search` is the setting `inference: search`, for kinds whose attacks follow it.
    """
    kind = kind_of(settings)
    if kind.fast_search:
        how["search"] = search
    how |= {"table": table_of(kind.name), "settings": settings, "with_copies": kind.copies}
    measure_in_batches(files, path_to_samples, path_to_progress, kind.load(), **how)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        measure_model(**of_job(snakemake), search=snakemake.resources.search)
