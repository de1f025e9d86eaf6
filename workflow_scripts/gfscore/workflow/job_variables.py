"""Environment variables of the jobs of a run, which change nothing but their speed."""

import os

VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_ARENA_MAX": "1",
    "OMP_WAIT_POLICY": "passive",
}
"""glibc, where it is used, keeps what is freed, up to a gigabyte, in one heap for all threads: a network takes the same
memory at every pass, and fresh pages from the system cost as much as the work on small images. A thread that waits for
others sleeps: beside other work, one that spins slows them down up to ten times."""


def set_job_variables() -> None:
    """Set them for every process started from here, unless its user says otherwise."""
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
