"""Compute the logits of one classifier on one dataset."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from pathlib import Path

from gfscore.images.manifests import open_described
from gfscore.networks import devices, inference
from gfscore.networks.adjusted import open_model
from gfscore.networks.offset_files import Adjustment
from gfscore.networks.passes import counted
from gfscore.tables.parquet_tables import write_logits
from gfscore.workflow.jobs import logged_job


def extract_logits(
    path_to_dataset: Path | str,
    path_to_model: Path | str,
    path_to_checkpoint: Path | str | None,
    path_to_logits: Path | str,
    *,
    precision: str = "float32",
    device: str = "auto",
    gpu_percent: int | None = None,
    adjustment: Adjustment | None = None,
) -> None:
    """Write sample_id, label and logits as Parquet, with the identity of data, model and arithmetic.

    `path_to_dataset` is the manifest of fetch_dataset, `path_to_model` the manifest of train_model or fetch_checkpoint;
    `path_to_checkpoint` may be None where the manifest names the file. `device` "auto" is a GPU if there is one, of
    which `gpu_percent` are held. `adjustment` are the offsets of a model that has some. With another `precision` than
    float32 the identity says how far logits and scores are from float32 (see gfscore.networks.precision). Raises
    InputError when data or checkpoint are not those of the manifests, do not fit each other, or give logits that depend
    on chance or on the batch, or not those of the file converted from.
    """
    images, dataset = open_described(path_to_dataset)
    classifier, model = open_model(path_to_model, path_to_checkpoint, dataset, adjustment=adjustment)
    where = str(path_to_checkpoint or model["path"])
    device = devices.device_of(classifier, device, gpu_percent=gpu_percent)
    if classifier.is_compared:
        images = images.kept_in_memory()

    identity = inference.identity_of(dataset, model, device=device, **classifier.in_words)
    with counted(classifier) as running:
        sample_id, label, logits = inference.extract_logits(
            running, images, device=device, where=where, precision=precision
        )
        identity |= inference.measured_drift(running, images, logits, device=device, where=where, precision=precision)
    identity |= inference.require_agreement(classifier, images, logits, where=where)

    write_logits(path_to_logits, sample_id=sample_id, label=label, logits=logits, identity=identity)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        extract_logits(
            snakemake.input.dataset,
            snakemake.input.model,
            snakemake.input.get("checkpoint") or None,
            snakemake.output.logits,
            precision=snakemake.params.precision,
            device=snakemake.resources.device,
            gpu_percent=snakemake.resources.gpu_percent or None,
            adjustment=Adjustment.from_snakemake(snakemake),
        )
