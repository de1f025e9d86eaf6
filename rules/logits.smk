# Classifiers meet data: one cached file of logits per (model, dataset), gated before anything is computed from it.
#
#   in   results/datasets/<dataset>.json, results/trained/<zoo>/<threat>/<model>.{safetensors,json}
#   out  results/logits/<dataset>/<threat>/<model>.parquet          sample_id, label, logits
#        results/checks/<dataset>/<threat>/<model>.json             what the gate measured
#
#   extract_logits  forward passes, on the GPU where there is one
#   check_logits    refuses logits that cannot be audited


rule extract_logits:
    input:
        unpack(classifier_files),
    output:
        logits=f"results/logits/{MODEL}.parquet",
    log:
        f"results/logs/extract_logits/{MODEL}.log",
    # Before any attack: the check of the logits may stop the run.
    priority: 1
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        version=version("extract_logits"),
        precision=config["inference"]["precision"],
        compiled=config["inference"]["compiled"],
    script:
        "../workflow_scripts/extract_logits.py"


rule check_logits:
    input:
        code=code("check_logits"),
        logits=f"results/logits/{MODEL}.parquet",
        manifest="results/datasets/{dataset}.json",
    output:
        check=f"results/checks/{MODEL}.json",
    log:
        f"results/logs/check_logits/{MODEL}.log",
    priority: 1
    group:
        submitted_with("model")
    conda:
        "../envs/analysis.yaml"
    params:
        gate=of_model(plan.accuracy_gate),
        allow_probabilities=lambda wildcards: plan.entry_of(config, **wildcards).get("allow_probabilities", False),
    script:
        "../workflow_scripts/check_logits.py"
