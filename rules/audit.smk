# From classes to models and to the verdict.
#
#   in   results/audits/<audit>/class_scores.parquet, the samples and logits behind it
#   out  results/audits/<audit>/models.json                   which models take part, and why others do not
#        results/audits/<audit>/model_summary.{parquet,csv}   aggregate, disparity with intervals and noise floor
#        results/audits/<audit>/vulnerability.{parquet,csv}   how often each class is the weakest
#        results/audits/<audit>/class_pairs.{parquet,csv}     difference between each pair of classes of a model
#        results/audits/<audit>/verdict.json                  PASS, FAIL or INCONCLUSIVE
#        results/audits/<audit>/config.yaml                   every value that it was asked for, and where that comes from
#
#   select_models     leaves out models that failed the gate on published accuracy, where config says so
#   summarise_models
#   judge_audit       bounds at the gate's own levels, of the measures of its rules alone; succeeds whatever the
#                     verdict, or it would lose its output
#   write_configuration
#   gate              stands apart from the targets; fails on FAIL, and on INCONCLUSIVE where the rule says stop


localrules:
    gate,
    write_configuration,


rule select_models:
    input:
        code=code("select_models"),
        checks=of_audit(layout.check_files),
    output:
        selection="results/audits/{audit}/models.json",
    log:
        "results/logs/select_models/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        models=of_audit(plan.models_of),
    script:
        "../workflow_scripts/select_models.py"


rule summarise_models:
    input:
        code=code("summarise_models"),
        class_scores="results/audits/{audit}/class_scores.parquet",
        samples=of_audit(layout.sample_files),
        logits=of_audit(layout.calibrated_logit_files),
        selection="results/audits/{audit}/models.json",
        calibration=of_audit(layout.calibration_json),
        manifests=of_audit(layout.trained_manifests),
    output:
        model_summary="results/audits/{audit}/model_summary.parquet",
        csv="results/audits/{audit}/model_summary.csv",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        vulnerability_csv="results/audits/{audit}/vulnerability.csv",
        class_pairs="results/audits/{audit}/class_pairs.parquet",
        class_pairs_csv="results/audits/{audit}/class_pairs.csv",
    log:
        "results/logs/summarise_models/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        subject=of_audit(plan.subject_of),
        published=of_audit(plan.published_accuracies),
        disparity=config["disparity"],
    script:
        "../workflow_scripts/summarise_models.py"


rule judge_audit:
    input:
        code=code("judge_audit"),
        samples=of_audit(layout.judged_sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
        generator=of_audit(layout.generator_manifest),
        attributes=of_audit(layout.gate_attributes),
    output:
        verdict="results/audits/{audit}/verdict.json",
    log:
        "results/logs/judge_audit/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.judged_subject_of),
        rules=lambda wildcards: config["audits"][wildcards.audit]["gate"],
        intervals=config["intervals"],
        label_error_rate=of_audit(plan.label_error_rate_of),
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/judge_audit.py"


rule write_configuration:
    input:
        code=code("write_configuration"),
    output:
        configuration="results/audits/{audit}/config.yaml",
    log:
        "results/logs/write_configuration/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        text=lambda wildcards: rendered(resolution, wildcards.audit),
    script:
        "../workflow_scripts/write_configuration.py"


rule gate:
    input:
        verdicts=results_of_run("verdict.json"),
        standing=of_run(layout.verdict_results),
    log:
        str(GATE_LOG),
    conda:
        "../envs/analysis.yaml"
    script:
        "../workflow_scripts/gate.py"
