"""Train one classifier of the zoo and record how accurate and how robust it became."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.files import write_json
from gfscore.images.manifests import open_described
from gfscore.measures.progress import forget
from gfscore.networks.trained import TrainingProgress, save_classifier
from gfscore.networks.training_settings import Attack
from gfscore.training.loop import describe_training, train_classifier, training_images, training_settings
from gfscore.workflow.jobs import logged_job


def train_model(
    files: Mapping[str, Path | str],
    path_to_checkpoint: Path | str,
    path_to_manifest: Path | str,
    path_to_progress: Path | str,
    *,
    version: str,
    identity: Mapping[str, str],
    settings: Mapping[str, Any],
    attack: Mapping[str, Any],
) -> None:
    """Write a checkpoint (safetensors) and its manifest (JSON), on the CPU the same bytes at every run.

    `files` maps train and test to manifests of fetch_dataset. `identity` holds dataset (the zoo), threat and model,
    `settings` those of the training, `attack` the PGD that measures robust accuracy on test images. An
    interrupted training goes on from what is kept in the folder `path_to_progress`.
    """
    train, described = open_described(files["train"])
    test, _ = open_described(files["test"])
    progress = TrainingProgress(f"{path_to_progress}/epoch.pt", [settings, train.digest, version])
    training = training_settings(settings)
    network = train_classifier(
        training_images(train), train.labels, training, classes=len(described["classes"]), progress=progress
    )
    metadata = {**identity, "settings": settings, "trained_on": train.digest}
    sha256 = save_classifier(path_to_checkpoint, network, metadata=metadata)
    summary = describe_training(network, train, test, settings=training, attack=Attack.model_validate(attack))
    write_json(path_to_manifest, {**identity, "sha256": sha256, **summary})
    forget(path_to_progress)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        train_model(
            {"train": snakemake.input.train, "test": snakemake.input.test},
            snakemake.output.checkpoint,
            snakemake.output.manifest,
            snakemake.params.progress,
            **{key: snakemake.params[key] for key in ("version", "identity", "settings", "attack")},
        )
