# What a person looks at.
#
#   in   results/audits/<audit>/*.parquet, verdict.json, config.yaml; figures draw from the scores, the page from sweeps
#   out  results/audits/<audit>/figures/*.{svg,pdf,png}
#        results/audits/<audit>/report.html        one self-contained page, which recomputes while its reader looks
#        results/index.html                        the audits of this run, their verdicts and pages
#
#   plot_figures, build_report
#   build_index


PAGE = SCRIPTS / "gfscore/show/page/templates"


rule plot_figures:
    input:
        **AUDIT_FILES,
        code=code("plot_figures"),
        scores="results/scores/{audit}.parquet",
        dataset=of_audit(lambda audit: audit.dataset.samples),
        pictures=of_audit(lambda audit: [mapper.pictures for mapper in audit.mappers]),
    output:
        folder=report(
            directory("results/audits/{audit}/figures"),
            patterns=["{figure}.png"],
            caption="captions/figures.rst",
            category="{audit}",
            subcategory=of_figure(run_output.measure_of_figure),
            labels=of_figure(run_output.labels_of),
        ),
    log:
        "results/logs/plot_figures/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    # The page is made beside them.
    threads: half_of_the_cores
    params:
        subject=of_audit(audit_steps.subject),
        fp_lambda=config["disparity"]["fp_lambda"],
        seed=config["intervals"]["seed"],
    script:
        "../workflow_scripts/plot_figures.py"


rule build_report:
    input:
        **AUDIT_FILES,
        code=code("build_report"),
        template=sorted(in_workflow(path) for path in PAGE.iterdir()),
        verdict="results/audits/{audit}/verdict.json",
        sweeps="results/sweeps/{audit}.parquet",
        costs="results/audits/{audit}/costs.parquet",
        pictures=of_audit(lambda audit: [mapper.pictures for mapper in audit.mappers]),
    output:
        page=report(
            "results/audits/{audit}/report.html",
            caption="captions/report.rst",
            category="{audit}",
            labels={"figure": "Report"},
        ),
    log:
        "results/logs/build_report/{audit}.log",
    # Before the figures, which nothing waits for.
    priority: 1
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        title=of_audit(lambda audit: audit.title),
        measures=of_audit(lambda audit: entries_of(audit.measures)),
        models=of_audit(lambda audit: [model.model_dump() for model in audit_steps.described_models(audit)]),
        published_samples=of_audit(lambda audit: audit.dataset.entry["published_accuracy"]),
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/build_report.py"


rule build_index:
    input:
        code=code("build_index"),
        template=[in_workflow(PAGE / name) for name in ("index.html", "page.css")],
        verdicts=[f"{audit.folder}/verdict.json" for audit in plan.selected],
    output:
        page="results/index.html",
    log:
        "results/logs/build_index.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        titles={audit.name: audit.title for audit in plan.selected},
    script:
        "../workflow_scripts/build_index.py"
