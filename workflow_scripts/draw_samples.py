"""Draw a labelled data set from a user's generator of images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.core.files import write_json
from gfscore.images.array_files import write_samples
from gfscore.images.sources.generator_file import NetworkGenerator
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.checkpoint_files import prepare_checkpoint
from gfscore.networks.conditional_generators import open_generator
from gfscore.training.drawing import draw_images
from gfscore.workflow.jobs import logged_job


def draw_samples(
    path_to_images: Path | str,
    path_to_manifest: Path | str,
    *,
    dataset: str,
    classes: Sequence[str],
    settings: Mapping[str, Any],
) -> None:
    """Write drawn images (.npz with x and y) and their manifest (JSON), on the CPU the same bytes at every run.

    `classes` are the K class names; `settings` those of the source generator_file, with the path of the generator.
    Raises InputError, naming that file, when it is missing, has another digest, or cannot be used.
    """
    path = settings["path"]
    sha256 = prepare_checkpoint(path, sha256=settings["sha256"])
    generator = NetworkGenerator.model_validate(settings)
    images, labels = draw_images(open_generator(settings, path), generator, classes=len(classes), where=path)
    write_samples(path_to_images, images, labels)
    of_generator = {"path": path, "sha256": sha256, **describe_network(settings["architecture"] or "")}
    write_json(
        path_to_manifest, {"dataset": dataset, "classes": classes, "generator": of_generator, "settings": settings}
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        draw_samples(
            snakemake.output.images,
            snakemake.output.manifest,
            dataset=snakemake.wildcards.dataset,
            **{key: snakemake.params[key] for key in ("classes", "settings")},
        )
