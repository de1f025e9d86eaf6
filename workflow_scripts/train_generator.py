"""Fit the class-conditional generator and draw a labelled data set from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import write_json
from gfscore.images.array_files import write_samples
from gfscore.images.datasets import load_all
from gfscore.images.manifests import open_described
from gfscore.images.sources.generated import Generator
from gfscore.training.generators import fit_mixtures, label_error_rates, sample_images
from gfscore.workflow.jobs import logged_job


def train_generator(
    path_to_train: Path | str, path_to_images: Path | str, path_to_manifest: Path | str, *, settings: Mapping[str, Any]
) -> None:
    """Write generated images (.npz with x and y) and their manifest (JSON), the same bytes at every run.

    `path_to_train` is a manifest of fetch_dataset; `settings` those of the model Generator of the source generated.
    `label_error_rate` in the manifest is in label order.
    """
    generator = Generator.model_validate(settings)
    train, described = open_described(path_to_train)
    images, labels = load_all(train)
    mixtures = fit_mixtures(
        images,
        labels,
        classes=len(described["classes"]),
        dimensions=generator.dimensions,
        mixture_components=generator.mixture_components,
        regularisation=generator.regularisation,
        seed=generator.seed,
    )
    drawn, intended = sample_images(mixtures, generator.samples_per_class, seed=generator.seed)
    write_samples(path_to_images, drawn, intended)
    # Another stream than that of the samples, so that the estimate does not lean on them.
    seed = [generator.seed, 1]
    rates = label_error_rates(mixtures, images, labels, draws=generator.label_error_draws, seed=seed)
    manifest = {key: described[key] for key in ("dataset", "digest", "classes")}
    manifest |= {"sha256": sha256_of_file(path_to_images), "settings": settings}
    write_json(path_to_manifest, {**manifest, "label_error_rate": rates.tolist()})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        output = snakemake.output
        train_generator(snakemake.input.train, output.images, output.manifest, settings=snakemake.params.settings)
