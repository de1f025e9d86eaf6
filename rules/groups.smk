# From samples to groups: fairness between the groups that attributes of the samples make.
#
#   in   results/datasets/<dataset>.json, files of attributes; results/samples/<measure>/...
#   out  results/attributes/<dataset>.parquet               sample_id and one column per attribute
#
#        results/audits/<audit>/group_scores.{parquet,csv}    every measure by group, and by class within group
#        results/audits/<audit>/group_metrics.{parquet,csv}   DP, EOpp, EOdd, AOdd of every measure that predicts
#
#   read_attributes
#   compare_groups


rule read_attributes:
    input:
        code=code("read_attributes"),
        manifest="results/datasets/{dataset}.json",
        images=of_dataset(layout.stored_images),
        file=of_dataset(layout.attributes_file),
        reference=of_dataset(layout.attributes_reference),
    output:
        table="results/attributes/{dataset}.parquet",
    log:
        "results/logs/read_attributes/{dataset}.log",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(30),
    params:
        settings=of_dataset(plan.attributes_of),
        state=state_of(of_dataset(layout.attributes_file)),
    script:
        "../workflow_scripts/read_attributes.py"


rule compare_groups:
    input:
        code=code("compare_groups"),
        samples=of_audit(layout.sample_files),
        selection="results/audits/{audit}/models.json",
        manifest=of_audit(layout.dataset_manifest),
        attributes=of_audit(layout.attributes_table),
    output:
        **audit_tables("compare_groups"),
    log:
        "results/logs/compare_groups/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        subject=of_audit(plan.subject_of),
        groups=of_audit(plan.groups_of),
        intervals=config["intervals"],
    script:
        "../workflow_scripts/compare_groups.py"
