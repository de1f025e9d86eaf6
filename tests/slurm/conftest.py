"""A cluster, and copies of the repository that are audited on it."""

import subprocess
import sys
from pathlib import Path

import pytest

from slurm.cluster import cluster, why_not
from slurm.runs import PROFILE, TWO_MODELS, Run, documented
from workflow.conftest import fresh_copy  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True, scope="session")
def slurm_can_start():
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def slurm():
    with cluster():
        yield


@pytest.fixture(scope="module")
def site(fresh_copy, slurm):  # noqa: F811
    """A copy of the repository as somebody has it who followed docs/cluster.md up to the run itself.

    It looks at its jobs after 2 s already, and audits two models.
    """
    repository = fresh_copy()
    (repository.path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    first_look = "slurm-init-seconds-before-status-checks: "
    repository.edit(PROFILE, f"{first_look}40", f"{first_look}2")
    *command, target = documented("ARGS=inputs")
    subprocess.run([*command, f"{target} --configfile config.yaml {TWO_MODELS}"], cwd=repository.path, check=True)
    return repository


@pytest.fixture(scope="module")
def start(slurm):
    """Function that starts a Run; what still runs after the tests is killed."""
    runs = []

    def started(repository, *options):
        runs.append(Run(repository, *options))
        return runs[-1]

    yield started
    for run in runs:
        run.kill()
