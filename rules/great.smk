# The attack-free margin score (GREAT) as a function of temperature, and under a shift of the logits.
#
#   in   results/logits/<dataset>/<threat>/<model>.parquet, gated by results/checks/...
#   out  results/sweeps/<measure>/<dataset>/<threat>/<model>.parquet    class scores at Chebyshev points in log T
#        results/audits/<audit>/calibration.{parquet,csv,json}          temperatures chosen by each named objective
#        results/audits/<audit>/sensitivity.{parquet,csv}               score and disparity when logits are shifted or scaled
#
#   sweep_temperatures   all temperatures at once, so that no per-model file depends on the one chosen later
#   choose_temperature   per audit, because the objectives compare its models
#   measure_sensitivity  per audit


rule sweep_temperatures:
    input:
        code=code("sweep_temperatures"),
        logits=f"results/logits/{MODEL}.parquet",
        check=f"results/checks/{MODEL}.json",
        manifest="results/datasets/{dataset}.json",
    output:
        sweep=f"results/sweeps/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/sweep_temperatures/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "great"),
    group:
        submitted_with("model")
    conda:
        "../envs/analysis.yaml"
    params:
        activation=lambda wildcards: config["measures"][wildcards.measure]["activation"],
        low=config["great"]["temperatures"]["low"],
        high=config["great"]["temperatures"]["high"],
    script:
        "../workflow_scripts/sweep_temperatures.py"


rule choose_temperature:
    input:
        code=code("choose_temperature"),
        selection="results/audits/{audit}/models.json",
        sweeps=of_audit(layout.sweep_files),
        logits=of_audit(layout.calibrated_logit_files),
        manifests=of_audit(layout.trained_manifests),
        distances=of_audit(layout.distance_files),
    output:
        table="results/audits/{audit}/calibration.parquet",
        csv="results/audits/{audit}/calibration.csv",
        summary="results/audits/{audit}/calibration.json",
    log:
        "results/logs/choose_temperature/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        models=of_audit(plan.models_of),
        measure=of_audit(plan.calibrated_measure),
        objectives=lambda wildcards: config["audits"][wildcards.audit]["calibration"]["objectives"],
        search=config["great"]["temperatures"],
        published=of_audit(plan.published_accuracies),
        stability_window=config["great"]["stability_window"],
        resampling=config["great"]["resampling"],
        split=lambda wildcards: config["audits"][wildcards.audit]["calibration"]["split"],
        seed=config["disparity"]["seed"],
    script:
        "../workflow_scripts/choose_temperature.py"


rule measure_sensitivity:
    input:
        code=code("measure_sensitivity"),
        selection="results/audits/{audit}/models.json",
        logits=of_audit(layout.logit_files),
    output:
        table="results/audits/{audit}/sensitivity.parquet",
        csv="results/audits/{audit}/sensitivity.csv",
    log:
        "results/logs/measure_sensitivity/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        models=of_audit(plan.models_of),
        measures=of_audit(plan.measures_of),
        shifts=config["great"]["shifts"],
        scales=config["great"]["scales"],
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/measure_sensitivity.py"
