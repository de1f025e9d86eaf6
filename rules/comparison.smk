# The models of an audit against each other, on the same samples.
#
#   in   results/samples/<measure>/..., results/audits/<audit>/models.json
#   out  results/audits/<audit>/comparisons.{parquet,csv}         differences of pairs of models, class by class
#        results/audits/<audit>/model_comparisons.{parquet,csv}   the same of their aggregates, and the win matrix
#        results/audits/<audit>/rank_intervals.{parquet,csv}      ranks that each model may truly have
#        results/audits/<audit>/lambda_swaps.{parquet,csv}        lambda of FP at which two models change places
#        results/audits/<audit>/metric_ranks.{parquet,csv}        place of each model by each disparity metric
#        results/audits/<audit>/comparison.json                   what was compared, and why not
#
#   compare_models


rule compare_models:
    input:
        code=code("compare_models"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
    output:
        **{name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.COMPARISONS},
        csv=[f"results/audits/{{audit}}/{name}.csv" for name in table_names.COMPARISONS],
        summary="results/audits/{audit}/comparison.json",
    log:
        "results/logs/compare_models/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        subject=of_audit(plan.subject_of),
        tables=table_names.COMPARISONS,
        comparison=config["comparison"],
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/compare_models.py"
