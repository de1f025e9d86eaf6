# What a person looks at.
#
#   in   results/audits/<audit>/{class_scores,model_summary,vulnerability,calibration,sensitivity}.parquet, verdict.json
#   out  results/audits/<audit>/figures/*.{svg,png}
#        results/audits/<audit>/report.html           one self-contained page
#
#   plot_figures
#   build_report


rule plot_figures:
    input:
        code=code("plot_figures"),
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        sensitivity=of_audit(layout.sensitivity_table),
        calibration=of_audit(layout.calibration_table),
        calibration_json=of_audit(layout.calibration_json),
    output:
        folder=report(
            directory("results/audits/{audit}/figures"),
            patterns=["{figure}.png"],
            caption="captions/figures.rst",
            category="{audit}",
            labels={"figure": "{figure}"},
        ),
    log:
        "results/logs/plot_figures/{audit}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        measures=of_audit(plan.measures_of),
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/plot_figures.py"


rule build_report:
    input:
        code=code("build_report"),
        template=sorted(str(path.relative_to(ROOT)) for path in (SCRIPTS / "gfscore/templates").iterdir()),
        class_scores="results/audits/{audit}/class_scores.parquet",
        model_summary="results/audits/{audit}/model_summary.parquet",
        vulnerability="results/audits/{audit}/vulnerability.parquet",
        sensitivity=of_audit(layout.sensitivity_table),
        calibration=of_audit(layout.calibration_table),
        calibration_json=of_audit(layout.calibration_json),
        verdict="results/audits/{audit}/verdict.json",
        figures="results/audits/{audit}/figures",
        selection="results/audits/{audit}/models.json",
        samples=of_audit(layout.sample_files),
    output:
        page=report(
            "results/audits/{audit}/report.html",
            caption="captions/report.rst",
            category="{audit}",
            labels={"figure": "report"},
        ),
    log:
        "results/logs/build_report/{audit}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        title=lambda wildcards: config["audits"][wildcards.audit]["title"],
        measures=of_audit(plan.measures_of),
        models=of_audit(plan.described_models),
        fp_lambda=config["disparity"]["fp_lambda"],
        contact=config["report"]["contact"],
    script:
        "../workflow_scripts/build_report.py"
