# Data come in: the only stage that may touch a network.
#
#   in   whatever a dataset's source needs (nothing, a file of the user, a file that train_generator wrote)
#   out  results/datasets/<dataset>.json   manifest: digest, samples per class, image shape
#
#        results/checkpoints/<zoo>/<threat>/<model>.json   manifest: file, digest, architecture, settings
#
#   fetch_dataset     makes sure that the samples are there and are what config says
#   fetch_checkpoint  makes sure that a classifier of somebody else is there, downloads it when it is not


localrules:
    fetch_dataset,
    fetch_checkpoint,


rule fetch_dataset:
    input:
        images=of_dataset(layout.stored_images),
    output:
        manifest="results/datasets/{dataset}.json",
    log:
        "results/logs/fetch_dataset/{dataset}.log",
    conda:
        "../envs/torch.yaml"
    params:
        version=version("fetch_dataset"),
        settings=of_dataset(plan.image_settings_of),
        classes=of_dataset(plan.classes_of),
        path=of_dataset(layout.path_of_images),
        state=state_of(of_dataset(layout.stored_images)),
    script:
        "../workflow_scripts/fetch_dataset.py"


rule fetch_checkpoint:
    input:
        placed=lambda wildcards: layout.placed_checkpoint(config, **wildcards),
    output:
        manifest=f"results/checkpoints/{ZOO_MODEL}.json",
    log:
        f"results/logs/fetch_checkpoint/{ZOO_MODEL}.log",
    conda:
        "../envs/torch.yaml"
    params:
        version=version("fetch_checkpoint"),
        identity=lambda wildcards: {"dataset": wildcards.zoo, "threat": wildcards.threat, "model": wildcards.model},
        settings=lambda wildcards: plan.checkpoint_settings_of(config, **wildcards),
        state=state_of(lambda wildcards: layout.placed_checkpoint(config, **wildcards)),
    script:
        "../workflow_scripts/fetch_checkpoint.py"
