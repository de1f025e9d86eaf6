"""Draw a labelled data set from a generator: one that is fitted here, or a user's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import write_json
from gfscore.images.array_files import write_samples
from gfscore.workflow.jobs import logged_job


def draw_samples(
    path_to_images: Path | str,
    path_to_manifest: Path | str,
    *,
    drawn_by: str,
    dataset: str,
    classes: Sequence[str] | None,
    settings: Mapping[str, Any],
    path_to_train: Path | str | None = None,
) -> None:
    """Write drawn images (.npz with x and y) and their manifest (JSON), on the CPU the same bytes at every run.

    `drawn_by` names the function of the source that draws them (see gfscore.images.sources), which gets the other
    arguments.
    """
    draw = resolve_name(drawn_by)
    images, labels, manifest = draw(settings, dataset=dataset, classes=classes, path_to_train=path_to_train)
    write_samples(path_to_images, images, labels)
    write_json(path_to_manifest, {**manifest, "sha256": sha256_of_file(path_to_images), "settings": settings})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        draw_samples(
            snakemake.output.images,
            snakemake.output.manifest,
            dataset=snakemake.wildcards.dataset,
            path_to_train=snakemake.input.train or None,
            **{key: snakemake.params[key] for key in ("drawn_by", "classes", "settings")},
        )
