"""Cost of a job: wall time, CPU time, peak memory and GPU time."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gfscore.core.files import write_json
from gfscore.networks import passes

LOGS, COSTS = "results/logs", "results/costs"


@contextmanager
def recorded_cost(path: Path | str | None) -> Iterator[None]:
    """Write the cost of the block to a JSON file if it succeeds; nothing if `path` is None.

    wall_s, cpu_s (all threads and finished child processes) and gpu_s (wall time times the number of GPUs, which is one
    for a job that used CUDA) in seconds, without the start of Python; peak_memory_mib of the whole process; forwards
    and backwards as counted by gfscore.networks.passes, if any.
    """
    started, before = (time.monotonic(), _cpu_seconds()), passes.made()
    yield
    if path is not None:
        wall = time.monotonic() - started[0]
        record = {"wall_s": wall, "cpu_s": _cpu_seconds() - started[1], "gpu_s": wall * _gpus()}
        write_json(path, record | {"peak_memory_mib": _peak_memory_mib(), **passes.made_since(before)})


def cost_file(path_to_log: Path | str) -> Path | None:
    """Path of a job's cost record, which corresponds to that of its log; None for a log outside results/logs."""
    path = Path(path_to_log)
    if not path.is_relative_to(LOGS):
        return None
    return (Path(COSTS) / path.relative_to(LOGS)).with_suffix(".json")


def _cpu_seconds() -> float:
    import resource

    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def _peak_memory_mib() -> float:
    status = Path("/proc/self/status")
    if status.is_file():
        # On Linux the value of getrusage includes the parent process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    import resource

    # In bytes on macOS, in KiB on other systems.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _gpus() -> int:
    torch = sys.modules.get("torch")
    return int(torch is not None and torch.cuda.is_initialized())
