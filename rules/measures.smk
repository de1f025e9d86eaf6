# One number per sample and measure: from the logits of a model, or from images that are shown to its network.
#
#   in   results/logits/<dataset>/<threat>/<model>.parquet, gated by results/checks/...   kinds that need logits
#        results/datasets/<dataset>.json, checkpoint and manifest of the model            kinds that need a network
#   out  results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   score_logits    every kind of measure that needs logits alone: clean, great
#   measure_model   every kind that shows images to a network: one job per (model, dataset, measure)
#
# What a kind takes stands in its declaration, gfscore/measures/<kind>: memory, time, GPUs, and the version that is
# raised when its values change. Values per sample that somebody brings are imported instead: see imports.smk.
#
# A killed job goes on with the batch that it was in: finished ones wait in results/progress/.
#
# The check of the logits is no input of measure_model, nor of other steps that show images to a classifier: an edit of
# cheap code would run them all again (as `ancient` it would hide from Snakemake that a checkpoint has changed). It goes
# first by its priority, and an audit without it ends before anything is summarised.


ruleorder: import_samples > score_logits
ruleorder: import_samples > measure_model


rule score_logits:
    input:
        code=code("score_logits"),
        logits=f"results/logits/{MODEL}.parquet",
        check=f"results/checks/{MODEL}.json",
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/score_logits/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_needing(config, "logits"),
    group:
        submitted_with("model")
    conda:
        "../envs/analysis.yaml"
    params:
        settings=of_measure,
    script:
        "../workflow_scripts/score_logits.py"


rule measure_model:
    input:
        unpack(classifier_files),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/measure_model/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_needing(config, "network"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=of_kind("gpu"),
        mem_mb=by_attempt(of_kind("mem_mb")),
        runtime=by_attempt(of_kind("runtime")),
    params:
        version=version_of_measure,
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/measure_model/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/measure_model.py"
