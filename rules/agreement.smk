# What the measures of an audit say of each other, and of classes beyond a mean.
#
#   in   results/samples/<measure>/..., results/logits/..., results/audits/<audit>/{models,calibration}.json, class_scores
#   out  results/audits/<audit>/<table>.{parquet,csv}, the tables of MEASURE_TABLES that an audit measures enough for
#
#   falsify_scores     attack-free scores held against attack distances
#   trace_radii        robustness as a function of the radius, by attacks and certificates; certificates refuted
#   count_decisions    robust, not robust, undecided, with bounds of the share truly robust
#   analyse_targets    which classes targeted attacks reach, and what predicts it
#   compare_measures   rank agreement, training methods side by side, signs of gradient masking


rule falsify_scores:
    input:
        code=code("falsify_scores"),
        samples=of_audit(layout.sample_files),
        logits=of_audit(layout.logit_files),
        selection="results/audits/{audit}/models.json",
        calibration=of_audit(layout.calibration_json),
        manifest=of_audit(layout.dataset_manifest),
    output:
        **audit_tables("falsify_scores"),
    log:
        "results/logs/falsify_scores/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        subject=of_audit(plan.subject_of),
        confidence=config["intervals"]["confidence"],
    script:
        "../workflow_scripts/falsify_scores.py"


rule trace_radii:
    input:
        code=code("trace_radii"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **audit_tables("trace_radii"),
    log:
        "results/logs/trace_radii/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.subject_of),
        confidence=config["intervals"]["confidence"],
        permutations=config["disparity"]["permutations"],
        seed=config["disparity"]["seed"],
    script:
        "../workflow_scripts/trace_radii.py"


rule count_decisions:
    input:
        code=code("count_decisions"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **audit_tables("count_decisions"),
    log:
        "results/logs/count_decisions/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.subject_of),
        confidence=config["intervals"]["confidence"],
    script:
        "../workflow_scripts/count_decisions.py"


rule analyse_targets:
    input:
        code=code("analyse_targets"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **audit_tables("analyse_targets"),
    log:
        "results/logs/analyse_targets/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.subject_of),
    script:
        "../workflow_scripts/analyse_targets.py"


rule compare_measures:
    input:
        code=code("compare_measures"),
        samples=of_audit(layout.sample_files),
        class_scores="results/audits/{audit}/class_scores.parquet",
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **audit_tables("compare_measures"),
    log:
        "results/logs/compare_measures/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(plan.subject_of),
        wanted=of_audit(measure_layout.measure_tables),
        methods=of_audit(plan.described_models),
        ranking={
            "confidence": config["intervals"]["confidence"],
            "permutations": config["disparity"]["permutations"],
            "seed": config["disparity"]["seed"],
        },
    script:
        "../workflow_scripts/compare_measures.py"
