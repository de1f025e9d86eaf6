"""Train a mapper, an encoder to latent dimensions that can be moved and a decoder back, and picture what each does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.measures.progress import remove_progress
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.projection.boundaries import require_same_shape
from gfscore.projection.mappers.conditions import chosen_categories, condition_names
from gfscore.projection.mappers.declared import mapper_settings
from gfscore.projection.mappers.description import MOST_DESCRIBED, describe_mapper
from gfscore.projection.mappers.fitting import conditioned_images, fit_mapper, of_network, save_mapper
from gfscore.projection.mappers.pictures import write_pictures
from gfscore.workflow.jobs import logged_job


def train_mapper(
    files: Mapping[str, Any],
    outputs: Mapping[str, Path | str],
    path_to_progress: Path | str,
    *,
    name: str,
    settings: Mapping[str, Any],
    version: str,
) -> None:
    """Write a mapper (safetensors), its manifest (JSON) and its pictures (.npz), on the CPU the same bytes always.

    `files` maps train and test to manifests of fetch_dataset, train_attributes and test_attributes to tables of
    attributes, or nothing; at most MOST_DESCRIBED images of test are drawn. `settings` are the mapper's, without its
    search. `outputs` maps weights, manifest and pictures to paths. Training goes on from `path_to_progress`.
    """
    training = mapper_settings(settings)
    train_attributes = files["train_attributes"] or None
    test_attributes = files["test_attributes"] or None
    categories = chosen_categories(train_attributes, settings["attributes"]) if train_attributes else None
    images, conditions, train = conditioned_images(files["train"], train_attributes, categories)
    test_images, test_conditions, test = conditioned_images(
        files["test"], test_attributes, categories, most=MOST_DESCRIBED, seed=training.seed
    )
    require_same_shape(train, test, source=f"mappers: {name}")

    try:
        network, losses = fit_mapper(
            images,
            training,
            path_to_progress=f"{path_to_progress}/epoch.pt",
            version=version,
            conditions=conditions,
            names=condition_names(categories) if categories is not None else None,
        )
        # Where it was trained: at full size the CPU would take hours, and several times the memory of the images.
        with reproducible_arithmetic():
            mapper = of_network(network.to(training.device), images, conditions)
            described = describe_mapper(mapper, (images, conditions), (test_images, test_conditions))
            write_pictures(outputs["pictures"], mapper, test_images, test_conditions, of_images=training.pictures)
    except InputError as error:
        raise InputError(f"mappers: {name}: {error}") from error
    sha256 = save_mapper(outputs["weights"], mapper, metadata={"settings": settings, "trained_on": train["digest"]})

    manifest = {
        "mapper": name,
        "kind": training.kind,
        "sha256": sha256,
        "image_shape": train["image_shape"],
        "trained_on": train["dataset"],
        "evaluated_on": test["dataset"],
        "categories": categories,
        **described,
        "losses": losses,
        "settings": settings,
    }
    write_json(outputs["manifest"], manifest)
    remove_progress(path_to_progress)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = {key: snakemake.input.get(key) for key in ("train", "test", "train_attributes", "test_attributes")}
        job = {name: snakemake.params[name] for name in ("settings", "version")}
        train_mapper(files, snakemake.output, snakemake.params.progress, name=snakemake.wildcards.mapper, **job)
