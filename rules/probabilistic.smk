# How likely a random perturbation changes the prediction, tested sequentially.
#
#   in   results/datasets/<dataset>.json, checkpoint and manifest of the model
#   out  results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   test_neighbourhoods   kind probabilistic


rule test_neighbourhoods:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/test_neighbourhoods/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "probabilistic"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(480),
    params:
        version=version("test_neighbourhoods"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/test_neighbourhoods/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/test_neighbourhoods.py"
