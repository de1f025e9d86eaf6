# What a person looks at.
#
#   in   results/audits/<audit>/*.parquet, verdict.json, config.yaml; figures draw from the scores, pages from sweeps
#   out  results/audits/<audit>/figures/*.{svg,pdf,png}
#        results/audits/<audit>/report.html        one self-contained page
#        results/audits/<audit>/dashboard.html     one self-contained page that recomputes while its reader looks
#        results/index.html                        the audits of this run, their verdicts and pages
#        results/dashboard_parts.json              what all dashboards have in common: library, charts
#
#   plot_figures, build_report
#   prepare_dashboards, build_dashboard
#   build_index


PAGE = SCRIPTS / "gfscore/show/dashboard/page"
# Costs are other ones at every run: only the page that shows them reads them.
TABLES = [name for name in table_names.TABLES_OF_AUDIT if name != "costs"]
AUDIT_FILES = {name: f"results/audits/{{audit}}/{name}.parquet" for name in TABLES}
AUDIT_FILES |= {f"{name}_json": f"results/audits/{{audit}}/{name}.json" for name in ("calibration", "comparison")}
AUDIT_FILES |= {"selection": "results/audits/{audit}/models.json"}


localrules:
    prepare_dashboards,
    build_index,


rule plot_figures:
    input:
        **AUDIT_FILES,
        code=code("plot_figures"),
        scores="results/scores/{audit}.parquet",
        dataset=of_audit(layout.dataset_file, extension="parquet"),
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
        **AUDIT_FILES,
        code=code("build_report"),
        template=sorted(str(path.relative_to(ROOT)) for path in (SCRIPTS / "gfscore/show/report/templates").iterdir()),
        verdict="results/audits/{audit}/verdict.json",
        figures="results/audits/{audit}/figures",
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
        **AUDIT_FILES,
        code=code("build_dashboard"),
        page=sorted(str(path.relative_to(ROOT)) for path in PAGE.iterdir()),
        parts="results/dashboard_parts.json",
        verdict="results/audits/{audit}/verdict.json",
        sweeps="results/sweeps/{audit}.parquet",
        costs="results/audits/{audit}/costs.parquet",
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
