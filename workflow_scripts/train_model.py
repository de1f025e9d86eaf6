"""Train one classifier of the zoo and record how accurate and how robust it became."""

from gfscore.datasets import load_all, open_described
from gfscore.files import write_json
from gfscore.jobs import logged_job
from gfscore.training import describe_training, train_classifier
from gfscore.zoo.trained import save_classifier


def train_model(path_to_train, path_to_test, path_to_checkpoint, path_to_manifest, *, identity, settings, attack):
    """Write a checkpoint (safetensors) and its manifest (JSON), on the CPU the same bytes at every run.

    The first two paths are manifests of fetch_dataset. `identity` holds dataset (the zoo), threat and model,
    `settings` the arguments of `train_classifier`, `attack` the PGD that measures robust accuracy on test
    images.
    """
    train, described = open_described(path_to_train)
    test, _ = open_described(path_to_test)
    network = train_classifier(*load_all(train), classes=len(described["classes"]), **settings)
    metadata = {**identity, "settings": settings, "trained_on": train.digest}
    sha256 = save_classifier(path_to_checkpoint, network, metadata=metadata)
    summary = describe_training(network, train, test, settings=settings, attack=attack)
    write_json(path_to_manifest, {**identity, "sha256": sha256, **summary})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        train_model(
            snakemake.input.train,
            snakemake.input.test,
            snakemake.output.checkpoint,
            snakemake.output.manifest,
            identity=snakemake.params.identity,
            settings=snakemake.params.settings,
            attack=snakemake.params.attack,
        )
