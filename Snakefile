"""Audits image classifiers for class-wise robustness and fairness.

Table of contents; each file in rules/ opens with what it reads, what it writes and its steps in order.
"""

from snakemake.utils import min_version

min_version("9.27")


include: "rules/common.smk"
include: "rules/earlier_runs.smk"
include: "rules/lookups.smk"
include: "rules/devices.smk"
include: "rules/inputs.smk"
include: "rules/training.smk"
include: "rules/measures.smk"
include: "rules/projection.smk"
include: "rules/audit.smk"
include: "rules/report.smk"
include: "rules/exports.smk"


rule all:
    default_target: True
    input:
        of_run(targets.report_results),
        "results/index.html",
    localrule: True


# Everything that may need a network: run it on the login node, then the rest runs offline.
rule inputs:
    input:
        of_run(targets.input_results),
    localrule: True


rule logits:
    input:
        of_run(targets.logit_results),
    localrule: True


rule audit:
    input:
        of_run(targets.verdict_results),
    localrule: True


rule report:
    input:
        of_run(targets.report_results),
    localrule: True


# Tables in LaTeX, model cards and a research object to deposit; `all` does not make them.
rule exports:
    input:
        of_run(targets.export_results),
        of_run(targets.report_results),
    localrule: True


onstart:
    # Before the first job, so that no attack runs in vain. A dry run lists the steps all the same.
    if missing and set(workflow.dag_settings.targets) <= {"all", "audit", "report", "gate"}:
        raise WorkflowError("files are missing, see above; put them there, or correct `path`")
    if gpu_mistakes and set(workflow.dag_settings.targets) != {"inputs"}:
        raise WorkflowError("\n".join(gpu_mistakes))
    require_known_settings()
    require_pinned_data()
    if gpus.usable:
        logger.warning(job_devices.words_of(gpus, config["inference"]["device"]))
    # Not where the signal is ignored, as under nohup.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note_interruption)
    for name in plan.uncompared_datasets():
        logger.warning(f"{name}: published accuracies are compared with nothing (published_accuracy: null)")
    # Of another run: this one may not ask, or end before it does.
    GATE_LOG.unlink(missing_ok=True)
    set_aside_judgements()
    keep_manifests()
    if forks_steps:
        prepared.start_servers(tracing=plan.searches_proofs and not gpus.usable)


onsuccess:
    settings = workflow.dag_settings
    targets = set(settings.targets)
    # A run that was to leave something out may have judged nothing.
    if targets <= {"all", "report", "audit", "gate"} and not settings.until and not settings.omit_from:
        for name in config["run"]:
            verdict = read_verdict(f"results/audits/{name}/verdict.json")
            page = f"results/audits/{name}/report.html" if targets <= {"all", "report"} else None
            print("", *last_words(name, verdict, page=page), sep="\n")
        if "gate" in targets:
            print("\nThe gate is open.")
        else:
            named = config["run"][0] if len(config["run"]) == 1 else "NAME"
            print(f"\nThis run reports and stops nothing; what stops a pipeline: .venv/bin/gfscore gate {named}")
    elif targets == {"exports"}:
        print("", *(f"results/audits/{name}/exports: written" for name in config["run"]), sep="\n")
    elif targets == {"inputs"}:
        print("\nAll that a network is needed for is there; the rest runs offline.")


onerror:
    restore_manifests()
    # A killed step says nothing itself.
    killed = any("died with <Signals.SIGKILL" in Path(file).read_text(errors="replace") for file in log)
    if interruptions:
        print("\nInterrupted; run the same command again to go on.")
    elif GATE_LOG.is_file() and "the gate stays closed" in GATE_LOG.read_text():
        print(f"\nThe gate is closed: the verdicts stand above and in {GATE_LOG}.")
    else:
        print("\nA step failed: what it says stands above and in its log. Mend it and run the same command again.")
        if killed:
            print(
                "A step was killed (SIGKILL): usually by the system, because memory ran out. Set a smaller batch_size in "
                "the configuration where the step has one, run fewer steps at once (--cores 1), or on a cluster ask for more "
                "mem_mb."
            )
