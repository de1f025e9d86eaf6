"""Fit one classifier, all of its weights or the last layer, and record how accurate it became."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images.manifests import open_described
from gfscore.measures.progress import remove_progress
from gfscore.networks.trained import TrainingProgress, save_classifier
from gfscore.workflow.jobs import logged_job


def train_model(
    files: Mapping[str, Path | str],
    path_to_checkpoint: Path | str,
    path_to_manifest: Path | str,
    path_to_progress: Path | str,
    *,
    fitted_by: str,
    version: str,
    identity: Mapping[str, str],
    settings: Mapping[str, Any] | None,
    attack: Mapping[str, Any] | None,
    device: str = "auto",
) -> None:
    """Write a checkpoint (safetensors) and its manifest (JSON), on the CPU the same bytes at every run.

    `files` maps train and test to manifests of fetch_dataset, and backbone, of a probe, to that of fetch_checkpoint.
    `fitted_by` names the function of the source that fits it (see gfscore.networks.sources). `identity` holds dataset
    (the zoo), threat and model, `settings` those of the training, `attack` the PGD that measures robust accuracy on
    test images, both None for a probe; `device` is that of its backbone, "auto" for a GPU where there is one. An
    interrupted training goes on from what is kept in the folder `path_to_progress`.
    """
    train, described = open_described(files["train"])
    test, _ = open_described(files["test"])
    try:
        network, metadata, manifest = resolve_name(fitted_by)(
            train,
            test,
            classes=len(described["classes"]),
            settings=settings,
            attack=attack,
            backbone=files.get("backbone"),
            device=device,
            progress=TrainingProgress(f"{path_to_progress}/epoch.pt", [settings, train.digest, version]),
        )
    except InputError as error:
        raise InputError(f"models: {identity['dataset']}/{identity['threat']}/{identity['model']}: {error}") from error
    metadata = {**identity, **metadata, "trained_on": train.digest}
    sha256 = save_classifier(path_to_checkpoint, network, metadata=metadata)
    write_json(path_to_manifest, {**identity, "sha256": sha256, **manifest})
    remove_progress(path_to_progress)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        train_model(
            dict(snakemake.input.items()),
            snakemake.output.checkpoint,
            snakemake.output.manifest,
            snakemake.params.progress,
            device=snakemake.resources.device,
            **{key: snakemake.params[key] for key in ("fitted_by", "version", "identity", "settings", "attack")},
        )
