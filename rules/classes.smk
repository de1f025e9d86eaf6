# From samples to classes, the same way for every measure.
#
#   in   results/samples/<measure>/..., results/logits/..., results/audits/<audit>/calibration.json
#   out  results/audits/<audit>/class_scores.{parquet,csv}   class values with simultaneous intervals
#
#        results/audits/<audit>/{confusions,class_errors,similarities}.{parquet,csv}   which class is taken for which
#
#   summarise_classes
#   analyse_confusions   from predictions: undisturbed, attacked, corrupted


rule summarise_classes:
    input:
        code=code("summarise_classes"),
        samples=of_audit(layout.sample_files),
        logits=of_audit(layout.calibrated_logit_files),
        selection="results/audits/{audit}/models.json",
        calibration=of_audit(layout.calibration_json),
        manifest=of_audit(layout.dataset_manifest),
        generator=of_audit(layout.generator_manifest),
    output:
        table="results/audits/{audit}/class_scores.parquet",
        csv="results/audits/{audit}/class_scores.csv",
    log:
        "results/logs/summarise_classes/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        subject=of_audit(plan.subject_of),
        intervals=config["intervals"],
        label_error_rate=of_audit(plan.label_error_rate_of),
    script:
        "../workflow_scripts/summarise_classes.py"


rule analyse_confusions:
    input:
        code=code("analyse_confusions"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **{
            f"{table}{suffix}": f"results/audits/{{audit}}/{table}.{extension}"
            for table in ("confusions", "class_errors", "similarities")
            for suffix, extension in (("", "parquet"), ("_csv", "csv"))
        },
    log:
        "results/logs/analyse_confusions/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.subject_of),
        comparison=config["confusions"],
    script:
        "../workflow_scripts/analyse_confusions.py"
