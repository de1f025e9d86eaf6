"""Compute the logits of one classifier on one dataset."""

from gfscore import inference
from gfscore.datasets import open_described
from gfscore.files import read_json
from gfscore.jobs import logged_job
from gfscore.tables import write_logits
from gfscore.zoo.trained import load_classifier


def extract_logits(path_to_dataset, path_to_model, path_to_checkpoint, path_to_logits, *, batch_size, threads):
    """Write sample_id, label and logits as Parquet, with the identity of data, model and arithmetic.

    `path_to_dataset` and `path_to_model` are the manifests of fetch_dataset and train_model; a GPU is used
    where there is one. Raises InputError when data or checkpoint are not those of the manifests, or do not
    fit each other.
    """
    images, dataset = open_described(path_to_dataset)
    model = read_json(path_to_model)
    network = load_classifier(path_to_checkpoint, sha256=model["sha256"])
    inference.require_fit(network, dataset, source=path_to_checkpoint)
    how = {"batch_size": batch_size, "device": "auto", "threads": threads}
    sample_id, label, logits = inference.extract_logits(network, images, **how)
    identity = inference.identity_of(dataset, model, device="auto")
    write_logits(path_to_logits, sample_id=sample_id, label=label, logits=logits, identity=identity)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        extract_logits(
            snakemake.input.dataset,
            snakemake.input.model,
            snakemake.input.checkpoint,
            snakemake.output.logits,
            batch_size=snakemake.params.batch_size,
            threads=snakemake.threads,
        )
