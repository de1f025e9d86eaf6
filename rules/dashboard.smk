# One page that answers questions while its reader asks them, and the page that links the audits of a run.
#
#   in   results/audits/<audit>/*.parquet, verdict.json; temperature sweeps of its models
#   out  results/audits/<audit>/dashboard.html   one self-contained page, no server and no network
#        results/index.html                      the audits of this run, their verdicts and pages
#        results/dashboard_parts.json            what all dashboards have in common: library, charts
#
#   prepare_dashboards
#   build_dashboard
#   build_index


PAGE = SCRIPTS / "gfscore/show/dashboard/page"


localrules:
    prepare_dashboards,
    build_index,


rule prepare_dashboards:
    input:
        code=code("prepare_dashboards"),
    output:
        parts="results/dashboard_parts.json",
    log:
        "results/logs/prepare_dashboards.log",
    conda:
        "../envs/analysis.yaml"
    script:
        "../workflow_scripts/prepare_dashboards.py"


rule build_dashboard:
    input:
        **{name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.COMPARISONS},
        **{
            name: of_audit(measure_layout.measure_table, table=name)
            for step in ("compare_groups", "summarise_projections")
            for name in table_names.MEASURE_TABLES[step]
        },
        code=code("build_dashboard"),
        page=sorted(str(path.relative_to(ROOT)) for path in PAGE.iterdir()),
        parts="results/dashboard_parts.json",
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        sensitivity=of_audit(layout.sensitivity_table),
        calibration=of_audit(layout.calibration_table),
        calibration_json=of_audit(layout.calibration_json),
        comparison_json="results/audits/{audit}/comparison.json",
        confusions="results/audits/{audit}/confusions.parquet",
        falsification=of_audit(measure_layout.measure_table, table="falsification"),
        costs="results/audits/{audit}/costs.parquet",
        verdict="results/audits/{audit}/verdict.json",
        samples=of_audit(layout.sample_files),
        sweeps=of_audit(layout.sweep_files),
    output:
        page=report(
            "results/audits/{audit}/dashboard.html",
            caption="captions/dashboard.rst",
            category="{audit}",
            labels={"figure": "dashboard"},
        ),
    log:
        "results/logs/build_dashboard/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        title=lambda wildcards: config["audits"][wildcards.audit]["title"],
        measures=of_audit(plan.measures_of),
        models=of_audit(plan.described_models),
        fp_lambda=config["disparity"]["fp_lambda"],
        contact=config["report"]["contact"],
    script:
        "../workflow_scripts/build_dashboard.py"


rule build_index:
    input:
        code=code("build_index"),
        page=str((PAGE / "index.html").relative_to(ROOT)),
        verdicts=results_of_run("verdict.json"),
    output:
        page="results/index.html",
    log:
        "results/logs/build_index.log",
    conda:
        "../envs/analysis.yaml"
    params:
        titles={audit: config["audits"][audit]["title"] for audit in config["run"]},
    script:
        "../workflow_scripts/build_index.py"
