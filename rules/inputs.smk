# Data come in: the only stage that may touch a network.
#
#   in   whatever a dataset's source needs (nothing, a file of the user, a file that train_generator wrote)
#   out  results/datasets/<dataset>.json   manifest: digest, samples per class, image shape
#
#   fetch_dataset   makes sure that the samples are there and are what config says


localrules:
    fetch_dataset,


rule fetch_dataset:
    input:
        images=stored_images,
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
    script:
        "../workflow_scripts/fetch_dataset.py"
