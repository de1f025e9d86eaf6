"""Audits image classifiers for class-wise robustness and fairness.

Table of contents; each file in rules/ opens with what it reads, what it writes and its steps in order.
"""

from snakemake.utils import min_version

min_version("9.27")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/inputs.smk"
include: "rules/training.smk"
include: "rules/logits.smk"
include: "rules/great.smk"
include: "rules/classes.smk"
include: "rules/audit.smk"
include: "rules/report.smk"


localrules:
    all,
    inputs,
    logits,
    audit,
    report,


rule all:
    default_target: True
    input:
        results_of_run("report.html"),


# Everything that may need a network: run it on the login node, then the rest runs offline.
rule inputs:
    input:
        [f"results/datasets/{dataset}.json" for name in config["run"] for dataset in plan.datasets_of(config, name)],


rule logits:
    input:
        [
            f"results/checks/{MODEL.format(**model)}.json"
            for name in config["run"]
            for model in plan.models_of(config, name)
        ],


rule audit:
    input:
        results_of_run("verdict.json"),


rule report:
    input:
        results_of_run("report.html"),


onsuccess:
    for name in config["run"]:
        if (Path("results/audits") / name / "report.html").is_file():
            verdict = json.loads(Path(f"results/audits/{name}/verdict.json").read_text())
            print(f"\n{name}: {verdict['sentence']}\nOpen results/audits/{name}/report.html")


onerror:
    print("\nA step failed: what it says stands above and in its log. Mend it and run the same command again.")
