# No rules: what the other files share. Imports nothing heavy, because every run and every job reads it.

import json
import os
import signal
import sys
from functools import cache
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "workflow_scripts"
sys.path.insert(0, str(SCRIPTS))

from gfscore.audit import table_names
from gfscore.show import figure_names
from gfscore.show.last_words import last_words
from gfscore.networks.device_choice import WHOLE, Network
from gfscore.networks.installed_gpus import InstalledGpus, installed_gpus
from gfscore.workflow import export_layout
from gfscore.workflow import job_devices
from gfscore.workflow import layout
from gfscore.workflow import plan
from gfscore.workflow import projection_layout
from gfscore.workflow import user_files
from gfscore.workflow.configuration import configured
from gfscore.workflow.job_variables import prepend_to_python_path, set_job_variables
from gfscore.workflow.resolved_file import rendered
from gfscore.core.errors import InputError
from gfscore.measures import kind_of
from gfscore.workflow.sources import modules_of_kinds, sources_of

prepend_to_python_path(SCRIPTS)
set_job_variables()
# Snakemake's own `config` would merge config.yaml into every other file; here it holds every value, those left out too.
try:
    resolution = configured(
        workflow.config_settings.configfiles, workflow.config_settings.config, thorough=workflow.is_main_process
    )
except InputError as error:
    raise WorkflowError(str(error)) from None
config.clear()
config.update(resolution.config)
missing = user_files.missing_files(config, config["run"]) if workflow.is_main_process else []
for words in missing:
    logger.warning(words)

MODEL = layout.MODEL
ZOO_MODEL = "{zoo}/{threat}/{model}"


# No rule makes files of names that the configuration does not know.
wildcard_constraints:
    audit=plan.one_of(config["audits"]),
    dataset=plan.one_of(config["datasets"]),
    threat="[^/]+",
    model="[^/]+",
    measure=plan.one_of(config["measures"]),
    mapper=plan.one_of(config["mappers"]),


# ---- what a job asks of the machine ----


def all_local_cores(wildcards):
    """Threads of a job that should have the machine, or its GPU, for itself (see also max-threads in profiles/)."""
    return workflow.cores or 1


def half_of_the_cores(wildcards):
    """Threads of a job that shares the machine with one that takes as long, 4 at most."""
    return max(1, min(4, all_local_cores(wildcards) // 2))


# A login node knows nothing of the GPUs of the nodes, and a node must ask for what the login node asked for.
on_cluster = workflow.nodes is not None or workflow.remote_exec
gpus = InstalledGpus() if on_cluster or not workflow.is_main_process else installed_gpus()
gpu_mistakes = [] if on_cluster or not workflow.is_main_process else job_devices.gpu_mistakes(config, gpus)
for words in gpu_mistakes or filter(None, [gpus.reason]):
    logger.warning(words)
if gpus.usable and "gpu_percent" not in workflow.global_resources:
    workflow.register_resource("gpu_percent", WHOLE * len(gpus.usable))


def job_device(wildcards, input):
    """Device of a job that shows images to a classifier, and its part of a GPU; FileNotFoundError before its inputs."""
    asked = config["inference"]["device"]
    if asked == "cpu" or not gpus.usable:
        return job_devices.JobDevice(asked)
    entry = plan.entry_of(config, wildcards.dataset, wildcards.threat, wildcards.model)
    if entry.get("gradients") is False:
        # Such a file runs outside of torch, which has the GPU.
        return job_devices.JobDevice("cpu")
    return device_of_files(
        input.dataset,
        input.model,
        input.get("checkpoint") or None,
        wildcards.get("measure"),
        wildcards.get("mapper"),
    )


@cache
def device_of_files(path_to_dataset, path_to_model, path_to_checkpoint, measure, mapper):
    """The same by the files of its dataset and model, and by what is computed: a measure, a projection, or logits."""
    dataset = job_devices.RecordedDataset.read(path_to_dataset)
    network = Network(job_devices.recorded_size(path_to_model, path_to_checkpoint), dataset.image_shape)
    batch_size, counts = config["inference"]["batch_size"], (dataset.samples, dataset.classes)
    if measure:
        planned = job_devices.planned_measure(config["measures"][measure], *counts, batch_size)
    elif mapper:
        planned = job_devices.planned_projection(config["mappers"][mapper], *counts)
    else:
        planned = job_devices.planned_logits(dataset.samples)
    return job_devices.choose(network, planned, device=config["inference"]["device"], installed=gpus)


def device_of_model(wildcards, input):
    """Device of a job, for its script."""
    return job_device(wildcards, input).device


def percent_of_gpu(wildcards, input):
    """Percentage of one GPU of this machine that a job takes, 0 for none; a cluster gives a job a whole one."""
    return job_device(wildcards, input).gpu_percent


def gpus_of_model(wildcards, input):
    """GPUs that a job asks a cluster for; none where it runs on the CPU."""
    if job_device(wildcards, input).device == "cpu":
        return 0
    return of_kind("gpu")(wildcards) if wildcards.get("measure") else 1


def cores_beside_gpu(wildcards):
    """Threads of a job that computes on a GPU: a few that feed it; on a cluster those that go with a GPU."""
    cores = all_local_cores(wildcards)
    return cores if on_cluster else min(job_devices.FEEDING_CORES, cores)


def cores_of_model(wildcards, input):
    """Threads of a job that shows images to a classifier: what its arithmetic takes, or those beside a GPU."""
    if on_cluster:
        return all_local_cores(wildcards)
    try:
        if job_device(wildcards, input).gpu_percent:
            return cores_beside_gpu(wildcards)
    except FileNotFoundError:
        # Asked again when the inputs are there.
        pass
    threads = layout.threads_of_model(config, wildcards.dataset, wildcards.threat, wildcards.model)
    return min(threads, all_local_cores(wildcards))


def whole_gpu(wildcards):
    """Percentage of one GPU of this machine that a training takes: all of it."""
    return WHOLE if gpus.usable else 0


def submitted_with(group):
    """Group of steps that one submitted job runs; none without a cluster, or in a dry run, where nothing is submitted.

    Snakemake's search for steps that can start grows with the square of a group: planning many models would be slow.
    """
    return lambda wildcards: None if workflow.nodes is None or workflow.dryrun else group


def by_attempt(amount):
    """A resource that grows: the amount (or what it says of the wildcards), twice as much at the second attempt, ..."""
    return lambda wildcards, attempt: attempt * (amount(wildcards) if callable(amount) else amount)


# ---- what a run says ----


GATE_LOG = Path("results/logs/gate.log")
interruptions = []


def note_interruption(number, frame):
    """Handler of Ctrl-C: as without one, but noted for what the run says at its end."""
    interruptions.append(number)
    signal.default_int_handler(number, frame)
