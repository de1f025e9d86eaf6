# What somebody already has, logits or values per sample, takes the form of what the workflow computes itself.
#
#   in   the file that a model's entry names (source logits or samples), results/datasets/<dataset>.json
#   out  results/logits/<dataset>/<threat>/<model>.parquet
#        results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   import_logits   in place of extract_logits, for models with source logits; no torch
#   import_samples  in place of score_logits and measure_model, for models with source samples


ruleorder: import_logits > extract_logits


rule import_logits:
    input:
        code=code("import_logits"),
        file=lambda wildcards: layout.imported_file(config, **model_of_subject(wildcards)),
        dataset=lambda wildcards: f"results/datasets/{model_of_subject(wildcards)['dataset']}.json",
    output:
        logits="results/logits/{subject}.parquet",
    log:
        "results/logs/import_logits/{subject}.log",
    wildcard_constraints:
        subject=plan.subjects_from(config, {"logits"}),
    group:
        submitted_with("model")
    conda:
        "../envs/torch.yaml"
    params:
        model=model_of_subject,
        path=of_subject("path"),
        allow_probabilities=of_subject("allow_probabilities"),
        state=state_of(of_subject("path")),
    script:
        "../workflow_scripts/import_logits.py"


rule import_samples:
    input:
        code=code("import_samples"),
        file=lambda wildcards: layout.imported_file(config, **model_of_subject(wildcards)),
        dataset=lambda wildcards: f"results/datasets/{model_of_subject(wildcards)['dataset']}.json",
    output:
        samples="results/samples/{measure}/{subject}.parquet",
    log:
        "results/logs/import_samples/{measure}/{subject}.log",
    wildcard_constraints:
        subject=plan.subjects_from(config, {"samples"}),
    group:
        submitted_with("model")
    conda:
        "../envs/torch.yaml"
    params:
        model=model_of_subject,
        path=of_subject("path"),
        measure=lambda wildcards: wildcards.measure,
        kind=lambda wildcards: config["measures"][wildcards.measure]["kind"],
        largest_radius=lambda wildcards: config["measures"][wildcards.measure].get("largest_radius"),
        state=state_of(of_subject("path")),
    script:
        "../workflow_scripts/import_samples.py"
