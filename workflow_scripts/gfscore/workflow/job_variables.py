"""Environment of jobs: variables that affect only their speed, and Python's search path."""

import os
from pathlib import Path

VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_ARENA_MAX": "1",
    "OMP_WAIT_POLICY": "passive",
}
"""glibc keeps up to a gigabyte of freed memory in one heap for all threads, since a network allocates the same memory
at every pass, and on small images new pages cost as much as the computation. Waiting OpenMP threads sleep, since
spinning ones slow down concurrent jobs up to ten times."""


def set_job_variables() -> None:
    """Set VARIABLES for all child processes, unless the user has set them."""
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)


def prepend_to_python_path(folder: Path | str) -> None:
    """Prepend a folder to PYTHONPATH, for all child processes.

    A gfscore that is installed or on the user's PYTHONPATH may be another version than the workflow's. Snakemake
    removes the variable in conda environments, which contain no gfscore.
    """
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([str(folder), *others])))
