# From values per sample to classes, models and the verdict: all models of an audit at once.
#
#   in   results/logits/..., files of logits; results/samples/<measure>/..., results/projections/<mapper>/...
#        results/datasets/<dataset>.{json,parquet}, results/attributes/<dataset>.parquet
#   out  results/audits/<audit>/models.json        which models take part, and why others do not
#        results/scores/<audit>.parquet            values per sample of the measures from logits
#        results/sweeps/<audit>.parquet            class scores at Chebyshev points in log T
#        results/releases/<audit>.parquet          values per sample of the last release, if a rule compares with it
#        results/audits/<audit>/<table>.{parquet,csv}                every table of TABLES_OF_AUDIT; see docs/tables.md
#        results/audits/<audit>/{calibration,comparison}.json        chosen temperatures; what was compared
#        results/audits/<audit>/verdict.json       PASS, FAIL or INCONCLUSIVE
#        results/audits/<audit>/config.yaml        every value that it was asked for, and where that comes from
#
#   score_models     checks the logits of every model, and scores those that pass
#   import_release   verifies the bundle of the last release, and takes its values per sample
#   tabulate_audit   reads all samples, and writes every table
#   judge_audit      reads those that a rule judges again: bounds at the gate's levels; succeeds whatever the verdict
#   gate             stands apart from the targets; fails on FAIL, and on INCONCLUSIVE where the rule says stop


rule score_models:
    input:
        code=code("score_models"),
        logits=of_audit(PlannedAudit.logit_files),
        manifest=of_audit(lambda audit: audit.dataset.manifest),
        dataset=of_audit(lambda audit: audit.dataset.samples),
    output:
        selection="results/audits/{audit}/models.json",
        scores="results/scores/{audit}.parquet",
        sweeps="results/sweeps/{audit}.parquet",
        sensitivity="results/audits/{audit}/sensitivity.parquet",
        sensitivity_csv="results/audits/{audit}/sensitivity.csv",
    log:
        "results/logs/score_models/{audit}.log",
    priority: 1  # before any attack, and not submitted with what waits for these: the check may stop the run
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        subject=of_audit(audit_steps.subject),
        checks=of_audit(audit_steps.logit_checks),
        temperatures={end: config["great"]["temperatures"][end] for end in ("low", "high")},
        changes=plan.logit_changes.model_dump(),
        state=of_audit(audit_steps.user_logit_digests),
    script:
        "../workflow_scripts/score_models.py"


rule tabulate_audit:
    input:
        unpack(of_audit(audit_steps.table_inputs)),
        code=code("tabulate_audit"),
        logits=of_audit(PlannedAudit.logit_files),
        samples=of_audit(lambda audit: audit.sample_files(audit.measures)),
    output:
        **{name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.TABULATED},
        **{f"{name}_csv": f"results/audits/{{audit}}/{name}.csv" for name in table_names.TABULATED},
        **{f"{name}_json": f"results/audits/{{audit}}/{name}.json" for name in ("calibration", "comparison")},
    log:
        "results/logs/tabulate_audit/{audit}.log",
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=by_attempt(8000),
        runtime=by_attempt(120),
    params:
        subject=of_audit(audit_steps.subject),
        settings=of_audit(lambda audit: audit_steps.table_settings(audit).model_dump()),
    script:
        "../workflow_scripts/tabulate_audit.py"


rule import_release:
    input:
        code=code("import_release"),
        statement=of_audit(audit_steps.release_statement),
        manifest=of_audit(lambda audit: audit.dataset.manifest),
    output:
        values="results/releases/{audit}.parquet",
    log:
        "results/logs/import_release/{audit}.log",
    priority: 1  # before any attack: a release that cannot be compared with stops the run
    group:
        submitted_with("audit")
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        release=of_audit(audit_steps.release_params),
    script:
        "../workflow_scripts/import_release.py"


rule judge_audit:
    input:
        unpack(of_audit(audit_steps.verdict_inputs)),
        **AUDIT_FILES,
        code=code("judge_audit"),
        samples=of_audit(lambda audit: audit.sample_files(audit.judged_measures)),
    output:
        verdict="results/audits/{audit}/verdict.json",
    log:
        "results/logs/judge_audit/{audit}.log",
    priority: 1  # the page waits for it, and nothing for the figures
    group:
        submitted_with("audit")
    conda:
        "../envs/analysis.yaml"
    params:
        subject=of_audit(lambda audit: audit_steps.subject(audit, audit.judged_measures)),
        measures=of_audit(lambda audit: entries_of(audit.measures)),
        rules=of_audit(lambda audit: audit.entry["gate"]),
        intervals=config["intervals"],
        label_error_rate=of_audit(lambda audit: audit.dataset.entry["label_error_rate"]),
        fp_lambda=config["disparity"]["fp_lambda"],
    script:
        "../workflow_scripts/judge_audit.py"


rule write_configuration:
    input:
        asked_for_anew,
        code=code("write_configuration"),
    output:
        configuration="results/audits/{audit}/config.yaml",
    log:
        "results/logs/write_configuration/{audit}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        text=lambda wildcards: rendered(resolution, wildcards.audit),
    script:
        "../workflow_scripts/write_configuration.py"


rule gate:
    input:
        verdicts=[f"{audit.folder}/verdict.json" for audit in plan.selected],
        standing=of_run(targets.verdict_results),
    log:
        str(GATE_LOG),
    localrule: True
    conda:
        "../envs/torch.yaml"
    script:
        "../workflow_scripts/gate.py"
