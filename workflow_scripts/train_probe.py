"""Fit a linear classifier on the features of a frozen backbone."""

from pathlib import Path

from gfscore.core.files import read_json, write_json
from gfscore.images.manifests import open_described
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.device_choice import threads_for
from gfscore.networks.probe import fit_probe, name_of, open_backbone
from gfscore.networks.trained import save_classifier
from gfscore.workflow.jobs import logged_job


def train_probe(
    path_to_train: Path | str,
    path_to_test: Path | str,
    path_to_backbone: Path | str,
    path_to_head: Path | str,
    path_to_manifest: Path | str,
    *,
    device: str = "auto",
) -> None:
    """Write the head (safetensors) and the manifest (JSON) of backbone and head together.

    The first two paths are manifests of fetch_dataset, `path_to_backbone` that of fetch_checkpoint; `device` "auto" is
    a GPU where there is one. Raises InputError when data or backbone are not those of the manifests, or do not fit each
    other.
    """
    train, described = open_described(path_to_train)
    test, _ = open_described(path_to_test)
    backbone = read_json(path_to_backbone)
    require_digest(backbone["path"], backbone["sha256"])
    settings, identity = backbone["settings"], {key: backbone[key] for key in ("dataset", "threat", "model")}
    features = open_backbone(settings, backbone["path"], image_shape=described["image_shape"])
    how = {key: settings[key] for key in ("penalty", "iterations")} | {
        "threads": threads_for(backbone),
        "device": device,
    }
    head, summary = fit_probe(features, train, test, classes=len(described["classes"]), **how)
    metadata = {**identity, "backbone": backbone["sha256"], "settings": settings, "trained_on": train.digest}
    sha256 = save_classifier(path_to_head, head, metadata=metadata)
    of_backbone = {key: backbone[key] for key in ("source", "settings", "files", "pinned")}
    manifest = {**identity, **of_backbone, "sha256": sha256, "architecture": name_of(settings), **summary}
    write_json(path_to_manifest, manifest)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = snakemake.input.train, snakemake.input.test, snakemake.input.backbone, *snakemake.output
        train_probe(*files, device=snakemake.resources.device)
