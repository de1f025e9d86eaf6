# Data come in: the only stage that may touch a network.
#
#   in   whatever a dataset's source needs (nothing, a file of the user, a file that draw_samples wrote),
#        a checkpoint of the user, the code of its network in architectures/
#   out  results/datasets/<dataset>.json   manifest: digest, samples per class, image shape
#        results/datasets/<dataset>.parquet   samples: names and labels
#        results/attributes/<dataset>.parquet   names of the samples and one column per attribute
#
#        results/checkpoints/<zoo>/<threat>/<model>.json   manifest: file, architecture, their digests, settings
#
#   fetch_dataset     makes sure that the samples are there and are what config says; a digest that is pinned later is
#                     compared before the first job (see earlier_runs.smk), because nothing has to run again then
#   read_attributes   of the samples, from the dataset, a file of the user or the images
#   fetch_checkpoint  makes sure that a classifier of somebody else is there, downloads it when it is not


rule fetch_dataset:
    input:
        images=reading(of_dataset(PlannedDataset.stored_images), "results/datasets/{dataset}.json"),
    output:
        manifest="results/datasets/{dataset}.json",
        samples="results/datasets/{dataset}.parquet",
    log:
        "results/logs/fetch_dataset/{dataset}.log",
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        version=version("fetch_dataset"),
        settings=of_dataset(PlannedDataset.image_settings),
        classes=of_dataset(lambda dataset: dataset.entry["classes"]),
        path=of_dataset(lambda dataset: dataset.images),
        # A function of the inputs, because Snakemake runs nothing again where such a parameter has changed.
        pinned=lambda wildcards, input: plan.datasets[wildcards.dataset].entry["digest"],
        state=of_dataset(lambda dataset: user_files.state(dataset.stored_images())),
    script:
        "../workflow_scripts/fetch_dataset.py"


rule read_attributes:
    input:
        code=code("read_attributes"),
        manifest="results/datasets/{dataset}.json",
        images=of_dataset(PlannedDataset.stored_images),
        file=of_dataset(PlannedDataset.attributes_file),
        reference=of_dataset(PlannedDataset.attributes_reference),
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
        settings=of_dataset(lambda dataset: dataset.entry["attributes"]),
        state=of_dataset(PlannedDataset.attributes_state),
    script:
        "../workflow_scripts/read_attributes.py"


rule fetch_checkpoint:
    input:
        placed=reading(
            of_zoo_model(PlannedModel.placed_files),
            f"results/checkpoints/{ZOO_MODEL}.json",
        ),
        architecture=of_zoo_model(PlannedModel.architecture_files),
    output:
        manifest=f"results/checkpoints/{ZOO_MODEL}.json",
    log:
        f"results/logs/fetch_checkpoint/{ZOO_MODEL}.log",
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        version=version("fetch_checkpoint"),
        identity=of_zoo_model(lambda model: model.name.columns()),
        settings=of_zoo_model(PlannedModel.checkpoint_settings),
        state=of_zoo_model(PlannedModel.checkpoint_state),
    script:
        "../workflow_scripts/fetch_checkpoint.py"
