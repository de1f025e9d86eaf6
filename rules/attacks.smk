# What an adversary achieves: survival within a ball, distance to the boundary, reach of every target class.
#
#   in   results/datasets/<dataset>.json, checkpoint and manifest of the model
#   out  results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   attack_model        kind adversarial: the worst of several attacks, sample by sample
#   measure_distances   kind minimal: the nearest adversarial example found
#   target_model        kind targeted: one row per sample and target class
#
# A killed job goes on with the batch that it was in: finished ones wait in results/progress/.
#
# The check of the logits is no input of these steps, nor of others that show images to a classifier: an edit of cheap code
# would run them all again (as `ancient` it would hide from Snakemake that a checkpoint has changed). It goes first by
# its priority, and an audit without it ends before anything is summarised.


rule attack_model:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/attack_model/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "adversarial"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(480),
    params:
        version=version("attack_model"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/attack_model/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/attack_model.py"


rule measure_distances:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/measure_distances/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "minimal"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(480),
    params:
        version=version("measure_distances"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/measure_distances/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/measure_distances.py"


rule target_model:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/target_model/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "targeted"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(480),
    params:
        version=version("target_model"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/target_model/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/target_model.py"
