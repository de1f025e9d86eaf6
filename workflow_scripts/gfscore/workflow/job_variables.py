"""Environment variables of jobs, which affect only their speed."""

import os

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
