# Common corruptions: noise, blur, weather, digital.
#
#   in   results/datasets/<dataset>.json, checkpoint and manifest of the model
#   out  results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   score_corruptions   kind corruption: one job for all kinds and severities, applied on the fly


rule score_corruptions:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/score_corruptions/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "corruption"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(240),
    params:
        version=version("score_corruptions"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/score_corruptions/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/score_corruptions.py"
