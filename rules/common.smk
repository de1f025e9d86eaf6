# No rules: what the other files share. Imports nothing heavy, because every run and every job reads it.

import json
import sys
from functools import cache
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "workflow_scripts"
sys.path.insert(0, str(SCRIPTS))

from gfscore import plan
from gfscore.configuration import require_valid
from gfscore.errors import InputError
from gfscore.sources import sources_of

try:
    require_valid(config, yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text()))
except InputError as error:
    raise WorkflowError(str(error)) from None

MODEL = "{dataset}/{threat}/{model}"
ZOO_MODEL = "{zoo}/{threat}/{model}"


wildcard_constraints:
    audit="[^/]+",
    dataset="[^/]+",
    threat="[^/]+",
    model="[^/]+",
    measure="[^/]+",


# ---- what the steps depend on besides their data ----


@cache
def code(rule_name):
    """Script of a cheap step and the modules it imports; an edit of one re-runs what uses it, no more."""
    return [str(path.relative_to(ROOT)) for path in sources_of(SCRIPTS / f"{rule_name}.py")]


@cache
def version(rule_name):
    """Version of an expensive rule, which does not re-run on every edit of its code, and of torch."""
    own = yaml.safe_load((SCRIPTS / "versions.yaml").read_text())[rule_name]
    torch = next(line for line in (ROOT / "requirements.lock").read_text().split() if line.startswith("torch=="))
    return f"{own}, {torch}"


def all_local_cores(wildcards):
    """Threads of a job that should have the machine, or its GPU, for itself unless a profile says otherwise."""
    return workflow.cores or 1


# ---- files of datasets and models ----


def stored_images(wildcards):
    """File that holds the samples of a dataset, or nothing where they ship with a package."""
    entry = config["datasets"][wildcards.dataset]
    generated = f"results/generated/{wildcards.dataset}.npz"
    return generated if entry["source"] == "generated" else entry.get("path", [])


def generator_manifest(wildcards):
    """Manifest of the generator that measured an audit's label-error rates, or nothing when config states them."""
    measured = plan.label_error_rate_of(config, wildcards.audit) == "from_generator"
    return f"results/generated/{plan.dataset_of(config, wildcards.audit)}.json" if measured else []


def checkpoint(extension):
    """Function from a (model, dataset) to the model's checkpoint, or its manifest: one for all data of its zoo."""
    return lambda wildcards: (
        f"results/trained/{plan.zoo_of(config, wildcards.dataset)}/{wildcards.threat}/{wildcards.model}.{extension}"
    )


def trained(key):
    """Function from a classifier that the workflow trains to one of its settings."""
    return lambda wildcards: config["models"][wildcards.zoo][wildcards.threat][wildcards.model][key]


def model_files(stage, extension="parquet"):
    """Function from an audit to one file per model of a stage, in the order of config."""
    return lambda wildcards: [
        f"results/{stage}/{MODEL.format(**model)}.{extension}" for model in plan.models_of(config, wildcards.audit)
    ]


def checkpoint_manifests(wildcards):
    """Manifests of the checkpoints of an audit: they record the measured robust accuracy."""
    dataset = config["audits"][wildcards.audit]["dataset"]
    return [
        f"results/trained/{plan.zoo_of(config, dataset)}/{model['threat']}/{model['model']}.json"
        for model in plan.models_of(config, wildcards.audit)
    ]


def sample_files(wildcards):
    """Sample tables of an audit: one per model and measure, the measures of the first model first."""
    return [
        f"results/samples/{measure}/{MODEL.format(**model)}.parquet"
        for model in plan.models_of(config, wildcards.audit)
        for measure in plan.measures_of(config, wildcards.audit)
    ]


def sweep_files(wildcards):
    """Temperature sweeps of an audit's calibrated measure, one per model."""
    return model_files(f"sweeps/{plan.calibrated_measure(config, wildcards.audit)}")(wildcards)


def calibration_file(extension):
    """Function from an audit to a file of its chosen temperatures, or to nothing when it searches none."""
    return lambda wildcards: (
        f"results/audits/{wildcards.audit}/calibration.{extension}"
        if plan.calibrated_measure(config, wildcards.audit)
        else []
    )


def of_audit(lookup):
    """Function from an audit to what a lookup of gfscore.plan says about it."""
    return lambda wildcards: lookup(config, wildcards.audit)


def of_dataset(lookup):
    """Function from a dataset to what a lookup of gfscore.plan says about it."""
    return lambda wildcards: lookup(config, wildcards.dataset)


def results_of_run(name):
    """One result file of every audit named in `run`."""
    return [f"results/audits/{audit}/{name}" for audit in config["run"]]
