"""What the C library does with memory in the jobs of a run."""

import os

KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_MAX_": "0", "MALLOC_ARENA_MAX": "1"}
"""Variables by which glibc, where it is used, keeps what is freed, up to a gigabyte, in one heap for all threads."""


def keep_freed_memory():
    """Let every process started from here keep the memory that it frees, unless its user says otherwise.

    A network takes the same memory at every pass, and fresh pages from the system cost as much as the work on small
    images. Only speed changes.
    """
    for name, value in KEPT.items():
        os.environ.setdefault(name, value)
