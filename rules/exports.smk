# An audit in the forms that others read; nothing else stands on these files.
#
#   in   results/audits/<audit>/: its tables, verdict, figures and report
#   out  results/audits/<audit>/exports/latex/<measure>-{models,classes}.tex   Tables 3 to 5 of the GF-Score paper
#        results/audits/<audit>/exports/latex/<mapper>-{projection,coupling}.tex   Tables 1 to 3 of the projection paper
#        results/audits/<audit>/exports/model-cards/<threat>__<model>.md       evaluation block of a Hugging Face card
#        results/audits/<audit>/exports/model-cards/<threat>__<model>.eval_results.yaml   results on a benchmark of the Hub
#        results/audits/<audit>/exports/croissant/<dataset>/                   description of the data
#        results/audits/<audit>/exports/ro-crate/                              Provenance Run Crate, to deposit and cite
#
#   export_audit


rule export_audit:
    input:
        code=code("export_audit"),
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        projection_models="results/audits/{audit}/projection_models.parquet",
        calibrations="results/audits/{audit}/calibration.json",
        verdict="results/audits/{audit}/verdict.json",
        datasets=of_audit(lambda audit: [dataset.manifest for dataset in audit.datasets]),
        samples=of_audit(lambda audit: [dataset.samples for dataset in audit.datasets]),
        workflow=lambda wildcards: [in_workflow(path) for path in workflow_files(ROOT)],
        manifests=of_audit(audit_steps.deposited_inputs),
        results=of_audit(audit_steps.deposited_results),
    output:
        latex=directory("results/audits/{audit}/exports/latex"),
        cards=directory("results/audits/{audit}/exports/model-cards"),
        croissant=directory("results/audits/{audit}/exports/croissant"),
        crate=directory("results/audits/{audit}/exports/ro-crate"),
    # Of no group: Snakemake records the steps of one, which the crate is made of, after all of them.
    log:
        "results/logs/exports/{audit}/export_audit.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        title=of_audit(lambda audit: audit.title),
        measures=of_audit(lambda audit: entries_of(audit.measures)),
        fp_lambda=config["disparity"]["fp_lambda"],
        config=config,
        workflow_folder=in_workflow("."),
    script:
        "../workflow_scripts/export_audit.py"
