# Data come in: the only stage that may touch a network.
#
#   in   whatever a dataset's source needs (nothing, a file of the user, a file that train_generator wrote),
#        a checkpoint of the user, the code of its network in architectures/
#   out  results/datasets/<dataset>.json   manifest: digest, samples per class, image shape
#        results/datasets/<dataset>.parquet   samples: names and labels
#        results/attributes/<dataset>.parquet   names of the samples and one column per attribute
#        results/checks/<dataset>.json     where config pins a digest: the digest, which is that one
#
#        results/checkpoints/<zoo>/<threat>/<model>.json   manifest: file, architecture, their digests, settings
#
#   fetch_dataset     makes sure that the samples are there and are what config says
#   check_digest      the same for a digest that is pinned later; apart, because nothing else has to run again then
#   read_attributes   of the samples, from the dataset, a file of the user or the images
#   fetch_checkpoint  makes sure that a classifier of somebody else is there, downloads it when it is not


localrules:
    fetch_dataset,
    check_digest,
    fetch_checkpoint,


rule fetch_dataset:
    input:
        images=reading(of_dataset(layout.stored_images), "results/datasets/{dataset}.json"),
    output:
        manifest="results/datasets/{dataset}.json",
        samples="results/datasets/{dataset}.parquet",
    log:
        "results/logs/fetch_dataset/{dataset}.log",
    conda:
        "../envs/torch.yaml"
    params:
        version=version("fetch_dataset"),
        settings=of_dataset(plan.image_settings_of),
        classes=of_entry("classes"),
        path=of_dataset(layout.path_of_images),
        # A function of the inputs, because Snakemake runs nothing again where such a parameter has changed.
        pinned=lambda wildcards, input: of_entry("digest")(wildcards),
        state=state_of(of_dataset(layout.stored_images)),
    script:
        "../workflow_scripts/fetch_dataset.py"


rule check_digest:
    input:
        code=code("check_digest"),
        manifest="results/datasets/{dataset}.json",
    output:
        check="results/checks/{dataset}.json",
    log:
        "results/logs/check_digest/{dataset}.log",
    # Before anything is computed from other data.
    priority: 1
    conda:
        "../envs/analysis.yaml"
    params:
        pinned=of_entry("digest"),
    script:
        "../workflow_scripts/check_digest.py"


rule read_attributes:
    input:
        code=code("read_attributes"),
        manifest="results/datasets/{dataset}.json",
        images=of_dataset(layout.stored_images),
        file=of_dataset(layout.attributes_file),
        reference=of_dataset(layout.attributes_reference),
    output:
        table="results/attributes/{dataset}.parquet",
    log:
        "results/logs/read_attributes/{dataset}.log",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        settings=of_entry("attributes"),
        state=state_of(of_dataset(layout.attributes_file), user_files.digest),
    script:
        "../workflow_scripts/read_attributes.py"


rule fetch_checkpoint:
    input:
        placed=reading(
            lambda wildcards: user_files.placed_checkpoint(config, **wildcards),
            f"results/checkpoints/{ZOO_MODEL}.json",
        ),
        architecture=lambda wildcards: user_files.architecture_files(config, **wildcards),
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
        state=lambda wildcards: user_files.checkpoint_state(config, **wildcards),
    script:
        "../workflow_scripts/fetch_checkpoint.py"
