"""How long the fault suite is: a few minutes in CI, or as many trials as somebody has patience for."""

import shutil
import time

import pytest

from faults.audits import OPTIONS, TARGETS, configure
from workflow.conftest import fresh_copy, made_once  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def trials(request):
    """Function from the number of trials in CI to the number asked for."""
    return lambda number: 10 * number if request.config.getoption("--torture") else number


@pytest.fixture(scope="session")
def configured(fresh_copy):  # noqa: F811
    """Function that makes a copy of the repository in which the cheap audit can run."""
    return lambda: configure(fresh_copy())


@pytest.fixture(scope="session")
def undisturbed(configured, made_once):  # noqa: F811
    """The cheap audit made without disturbance, and its `seconds`; tests do not change this copy."""

    def make(repository):
        shutil.move(configured().path, repository.path)
        started = time.monotonic()
        repository.snakemake(*OPTIONS, "--", *TARGETS)
        return str(time.monotonic() - started)

    repository = made_once("undisturbed", make)
    repository.seconds = float(repository.first_output)
    return repository
