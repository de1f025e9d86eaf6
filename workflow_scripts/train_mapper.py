"""Train a mapper, an encoder to latent dimensions that can be moved and a decoder back, and picture what each does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.files import write_json
from gfscore.measures.progress import forget
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.projection.boundaries import require_same_shape
from gfscore.projection.mappers.conditions import chosen_categories, names_of
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
    attributes, or nothing; at most MOST_DESCRIBED images of test are drawn, by the seed of `settings`, those of the
    mapper without its search. `outputs` maps weights, manifest and pictures to paths. An interrupted training goes on
    from the folder `path_to_progress`.
    """
    given, tested = files["train_attributes"] or None, files["test_attributes"] or None
    categories = chosen_categories(given, settings["attributes"]) if given else None
    images, conditions, train = conditioned_images(files["train"], given, categories)
    seed = settings["seed"]
    shown, of_shown, test = conditioned_images(files["test"], tested, categories, most=MOST_DESCRIBED, seed=seed)
    require_same_shape(train, test, source=f"mappers: {name}")
    progress: dict[str, Any] = {"path_to_progress": f"{path_to_progress}/epoch.pt", "version": version}
    network, losses = fit_mapper(images, settings, conditions=conditions, names=names_of(categories), **progress)
    # Where it was trained: at full size the CPU would take hours, and several times the memory of the images.
    with reproducible_arithmetic():
        mapper = of_network(network.to(settings["device"]), images, conditions)
        sha256 = save_mapper(outputs["weights"], mapper, metadata={"settings": settings, "trained_on": train["digest"]})
        described = describe_mapper(mapper, (images, conditions), (shown, of_shown))
        write_pictures(outputs["pictures"], mapper, shown, of_shown, of_images=settings["pictures"])
    manifest = {"mapper": name, "kind": settings["kind"], "sha256": sha256, "image_shape": train["image_shape"]}
    manifest |= {"trained_on": train["dataset"], "evaluated_on": test["dataset"], "categories": categories, **described}
    write_json(outputs["manifest"], manifest | {"losses": losses, "settings": settings})
    forget(path_to_progress)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = {key: snakemake.input.get(key) for key in ("train", "test", "train_attributes", "test_attributes")}
        how = {name: snakemake.params[name] for name in ("settings", "version")}
        train_mapper(files, snakemake.output, snakemake.params.progress, name=snakemake.wildcards.mapper, **how)
