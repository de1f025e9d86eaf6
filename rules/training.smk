# The embedded zoo and generator: classifiers and samples that the workflow makes itself, so that it needs no download.
#
#   in   results/datasets/<train_on>.json, results/datasets/<evaluate_on>.json
#   out  results/trained/<zoo>/<threat>/<model>.safetensors   weights
#        results/trained/<zoo>/<threat>/<model>.json          digest, architecture, clean and PGD accuracy
#        results/generated/<dataset>.npz, .json               samples, and the generator's label-error rates
#
#   train_model      one classifier by one training method, one thread: more threads change the weights
#   train_generator  fits a class-conditional generator and draws from it


rule train_model:
    input:
        train=lambda wildcards: f"results/datasets/{of_zoo('train_on')(wildcards)}.json",
        test=lambda wildcards: f"results/datasets/{of_zoo('evaluate_on')(wildcards)}.json",
    output:
        checkpoint=f"results/trained/{ZOO_MODEL}.safetensors",
        manifest=f"results/trained/{ZOO_MODEL}.json",
    log:
        f"results/logs/train_model/{ZOO_MODEL}.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        version=version("train_model"),
        identity=lambda wildcards: {"dataset": wildcards.zoo, "threat": wildcards.threat, "model": wildcards.model},
        settings=of_zoo("training"),
        attack=of_zoo("attack"),
    script:
        "../workflow_scripts/train_model.py"


rule train_generator:
    input:
        train=lambda wildcards: f"results/datasets/{config['datasets'][wildcards.dataset]['fitted_on']}.json",
    output:
        images="results/generated/{dataset}.npz",
        manifest="results/generated/{dataset}.json",
    log:
        "results/logs/train_generator/{dataset}.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    params:
        version=version("train_generator"),
        settings=lambda wildcards: config["datasets"][wildcards.dataset]["generator"],
    script:
        "../workflow_scripts/train_generator.py"
