# What a person looks at.
#
#   in   results/audits/<audit>/*.parquet, verdict.json; figures draw from the samples as well
#   out  results/audits/<audit>/figures/*.{svg,pdf,png}
#        results/audits/<audit>/report.html           one self-contained page
#
#        results/audits/<audit>/costs.{parquet,csv}   seconds and memory of every job behind the values
#
#   collect_costs   reads what jobs recorded in results/costs/; a missing record re-runs nothing
#   plot_figures
#   build_report


rule collect_costs:
    input:
        code=code("collect_costs"),
        class_scores="results/audits/{audit}/class_scores.parquet",
        # not read: by then their cost is recorded
        projections=of_audit(projection_layout.projection_files),
    output:
        table="results/audits/{audit}/costs.parquet",
        csv="results/audits/{audit}/costs.csv",
    log:
        "results/logs/collect_costs/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        records=of_audit(layout.cost_records),
    script:
        "../workflow_scripts/collect_costs.py"


rule plot_figures:
    input:
        **{name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.COMPARISONS},
        **{
            name: of_audit(measure_layout.measure_table, table=name)
            for names in table_names.MEASURE_TABLES.values()
            for name in names
        },
        code=code("plot_figures"),
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        confusions="results/audits/{audit}/confusions.parquet",
        class_errors="results/audits/{audit}/class_errors.parquet",
        similarities="results/audits/{audit}/similarities.parquet",
        sensitivity=of_audit(layout.sensitivity_table),
        calibration=of_audit(layout.calibration_table),
        calibration_json=of_audit(layout.calibration_json),
        selection="results/audits/{audit}/models.json",
        samples=of_audit(layout.sample_files),
        pictures=of_audit(projection_layout.mapper_file, extension="npz"),
    output:
        folder=report(
            directory("results/audits/{audit}/figures"),
            patterns=["{figure}.png"],
            caption="captions/figures.rst",
            category="{audit}",
            subcategory=of_figure(figure_names.measure_of_figure),
            labels=of_figure(figure_names.labels_of),
        ),
    log:
        "results/logs/plot_figures/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    # Everything else waits for them at the end of a run.
    threads: 4
    params:
        subject=of_audit(plan.subject_of),
        fp_lambda=config["disparity"]["fp_lambda"],
        seed=config["intervals"]["seed"],
    script:
        "../workflow_scripts/plot_figures.py"


rule build_report:
    input:
        **{name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.COMPARISONS},
        **{
            name: of_audit(measure_layout.measure_table, table=name)
            for names in table_names.MEASURE_TABLES.values()
            for name in names
        },
        code=code("build_report"),
        template=sorted(str(path.relative_to(ROOT)) for path in (SCRIPTS / "gfscore/show/report/templates").iterdir()),
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        confusions="results/audits/{audit}/confusions.parquet",
        class_errors="results/audits/{audit}/class_errors.parquet",
        similarities="results/audits/{audit}/similarities.parquet",
        sensitivity=of_audit(layout.sensitivity_table),
        calibration=of_audit(layout.calibration_table),
        calibration_json=of_audit(layout.calibration_json),
        comparison_json="results/audits/{audit}/comparison.json",
        verdict="results/audits/{audit}/verdict.json",
        figures="results/audits/{audit}/figures",
        selection="results/audits/{audit}/models.json",
        samples=of_audit(layout.sample_files),
    output:
        page=report(
            "results/audits/{audit}/report.html",
            caption="captions/report.rst",
            category="{audit}",
            labels={"figure": "Report"},
        ),
    log:
        "results/logs/build_report/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        title=lambda wildcards: config["audits"][wildcards.audit]["title"],
        measures=of_audit(plan.measures_of),
        models=of_audit(plan.described_models),
        published_samples=of_audit(plan.published_samples),
        fp_lambda=config["disparity"]["fp_lambda"],
        contact=config["report"]["contact"],
    script:
        "../workflow_scripts/build_report.py"
