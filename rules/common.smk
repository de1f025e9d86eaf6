# No rules: what the other files share. Imports nothing heavy, because every run and every job reads it.

import json
import os
import shutil
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.sourcecache import HostingProviderFile, LocalSourceFile


def clone_of(rules):
    """Folder of the Snakefile in a clone at the commit that github(...) or gitlab(...) names, made once in .snakemake.

    Of a workflow at such an address Snakemake itself reads rules and scripts, but not the package that both import.
    """
    if not isinstance(rules, HostingProviderFile):
        raise WorkflowError(f"{rules}: import gfscore from a path, github(...) or gitlab(...)")
    if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method:
        # Python finds the package beside a script, and Snakemake keeps scripts of an address elsewhere.
        raise WorkflowError(f"{rules}: steps in conda environments need gfscore imported from a path; clone it")
    repository = rules.hosted_repo.repo
    commit = repository.commit(rules.ref).hexsha
    clones = Path(".snakemake/gfscore").absolute()
    folder = clones / commit
    if not folder.is_dir():
        clones.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=clones) as unfinished:
            clone = repository.clone(f"{unfinished}/clone", no_checkout=True)
            clone.git.checkout("--quiet", "--detach", commit)
            try:
                Path(clone.working_dir).rename(folder)
            except OSError:
                # Another process was first.
                if not folder.is_dir():
                    raise
    return (folder / rules.path).parent


# The folder above that of this file: that of the Snakefile, also where another workflow imports it.
if isinstance(workflow.current_basedir, LocalSourceFile):
    ROOT = Path(workflow.current_basedir).parent
else:
    ROOT = clone_of(workflow.current_basedir)
SCRIPTS = ROOT / "workflow_scripts"
sys.path.insert(0, str(SCRIPTS))

from gfscore.audit import table_names
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.show import run_output
from gfscore.show.run_output import last_words
from gfscore.workflow import audit_steps, prepared, targets, user_files
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.entries import PlannedDataset, PlannedMapper, PlannedModel
from gfscore.workflow.jobs import prepend_to_python_path, set_job_variables
from gfscore.workflow.plan import PlannedAudit, Run, one_of
from gfscore.workflow.replaced_files import missing_files, other_than_pinned, replaced_files
from gfscore.workflow.resolved_file import holds_other_values, rendered
from gfscore.workflow.sources import declaring_modules, modules_of_measure, sources_of, workflow_files
from gfscore.core.errors import InputError
from gfscore.core.identity import MODEL
from gfscore.measures import entries_of

prepend_to_python_path(SCRIPTS)
set_job_variables()
if workflow.modifier.is_main_snakefile():
    config_files, overrides = workflow.config_settings.configfiles, workflow.config_settings.config
else:
    # A workflow that imports this one has a configuration of its own.
    overrides = dict(config)
    if "configfile" not in overrides:
        raise WorkflowError("module gfscore: name the file of its audits, config: {'configfile': 'audits.yaml'}")
    config_files = [overrides.pop("configfile")]
# Snakemake's own `config` would merge config.yaml into every other file; here it holds every value, those left out too.
try:
    resolution = resolved_configuration(config_files, overrides, thorough=workflow.is_main_process)
except InputError as error:
    raise WorkflowError(str(error)) from None
config.clear()
config.update(resolution.config)
plan = Run(config)
missing = missing_files(plan.selected) if workflow.is_main_process else []
for words in missing:
    logger.warning(words)
replaced = replaced_files(plan.selected) if workflow.is_main_process else {}
for manifest, words in replaced.items():
    logger.warning(f"{words}: not what {manifest} was made of; the steps that read it run again")


def in_workflow(path):
    """Path of a file of this workflow as a step's input: from the folder of the run, which may be another one."""
    return os.path.relpath(ROOT / path)


def reading(file_of, manifest):
    """Files of users that a step reads as its input; it runs again, as after -R, where its manifest is of others.

    Neither times nor parameters tell Snakemake of files that were replaced.
    """

    def files(wildcards):
        path = manifest.format(**wildcards)
        if path in replaced:
            workflow.dag.forcefiles.add(path)
        return file_of(wildcards)

    return files


ZOO_MODEL = "{zoo}/{threat}/{model}"


# No rule makes files of names that the configuration does not know.
wildcard_constraints:
    audit=one_of(config["audits"]),
    dataset=one_of(config["datasets"]),
    threat="[^/]+",
    model="[^/]+",
    measure=one_of(config["measures"]),
    mapper=one_of(config["mappers"]),


# ---- what a job asks of the machine ----


def all_local_cores(wildcards):
    """Threads of a job that should have the machine, or its GPU, for itself (see also max-threads in profiles/)."""
    return workflow.cores or 1


def half_of_the_cores(wildcards):
    """Threads of a job that shares the machine with one that takes as long, 4 at most."""
    return max(1, min(4, all_local_cores(wildcards) // 2))


def submitted_with(group):
    """Group of steps that one submitted job runs; none without a cluster, or in a dry run, where nothing is submitted.

    Snakemake's search for steps that can start grows with the square of a group: planning many models would be slow.
    """
    return lambda wildcards: None if workflow.nodes is None or workflow.dryrun else group


# Jobs of a cluster are on other machines; an environment of conda has another Python; other systems cannot fork safely
# what torch was imported in.
forks_steps = (
    workflow.is_main_process
    and workflow.nodes is None
    and not workflow.remote_exec
    and not workflow.deployment_settings.deployment_method
    and sys.platform == "linux"
)


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
