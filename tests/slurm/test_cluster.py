"""The cluster of the tests leaves nothing behind."""

import subprocess
import time
from pathlib import Path

from slurm.cluster import CONFIGURATION, cluster

# A job that nobody else on this machine has.
SLEEP = "sleep 613.25"


def processes():
    """Number and command of what belongs to a cluster, SLEEP included."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,comm=,args="], capture_output=True, text=True, check=True).stdout
    found = (line.split(maxsplit=2) for line in listed.splitlines())
    return {
        (pid, name)
        for pid, name, *words in found
        if name.startswith(("slurm", "srun", "munge")) or words[0].endswith(SLEEP)
    }


def files():
    return sorted(CONFIGURATION.rglob("*")), sorted(Path("/tmp").glob("slurm-test-*"))


def test_a_cluster_with_a_running_job_ends_without_leaving_a_process_or_a_file():
    before = processes(), files()
    with cluster():
        # one sleep as a step, and one that SLURM loses sight of
        wrapped = f"--wrap=(setsid {SLEEP} &); srun {SLEEP}"
        subprocess.run(["sbatch", wrapped, "--output=/dev/null"], check=True, capture_output=True)
        deadline = time.monotonic() + 30
        while [name for _, name in processes()].count("sleep") < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert {"munged", "slurmctld", "slurmd", "slurmstepd", "srun"} <= {name for _, name in processes()}
    assert (processes(), files()) == before
