"""Context of every job: environment, log file, a record of its cost, and one-line messages for input errors."""

import io
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import TextIO

from gfscore.core.errors import InputError
from gfscore.core.files import NO_ROOM, write_json
from gfscore.core.names import harmless
from gfscore.networks import passes

LOGS, COSTS = "results/logs", "results/costs"

DISPLAYED = "GFSCORE_DISPLAYED"
"""Environment variable that tells a job of a run with a display of its own."""

VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_ARENA_MAX": "1",
    "OMP_WAIT_POLICY": "passive",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
}
"""glibc keeps up to a gigabyte of freed memory in one heap for all threads, since a network allocates the same memory
at every pass, and on small images new pages cost as much as the computation. Waiting OpenMP threads sleep, since
spinning ones slow down concurrent jobs up to ten times. GPUs have the numbers of nvidia-smi, which a run is planned by:
of its own accord CUDA counts from the fastest one, and CUDA_VISIBLE_DEVICES would name another."""


# ---- environment ----


def set_job_variables() -> None:
    """Set VARIABLES for all child processes, unless the user has set them, and let them keep what they compile.

    Images of containers often ask Python to keep no compiled modules; every step would then compile its own again,
    which takes longer than importing them.
    """
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def prepend_to_python_path(folder: Path | str) -> None:
    """Prepend a folder to PYTHONPATH, for all child processes.

    A gfscore that is installed or on the user's PYTHONPATH may be another version than the workflow's. Snakemake
    removes the variable in conda environments, which contain no gfscore.
    """
    folders = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(folders)))


# ---- log and errors ----


@contextmanager
def logged_job(path_to_log: Path | str) -> Iterator[None]:
    """Redirect output of the step to its log file; on an error, print a message and exit with status 1.

    For an InputError or a full disk (NO_ROOM), which the user can correct, the log and stderr get the message alone;
    for any other exception, a bug, also the traceback. An interruption (Ctrl-C) is reported in one line, and the
    process ends by the signal. The cost of a successful step is recorded, see recorded_cost.

    Parameters
    ----------
    path_to_log : path
        Log file of the job, `snakemake.log[0]`; its folder is made.
    """
    path = Path(path_to_log)
    interruptions = _record_interruptions()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = _Log(path.open("wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    except OSError as error:
        _report(_described(error, path), None)
        raise SystemExit(1) from None

    # Not `with`: closing a log on a full disk raises, which would hide the original error.
    try:
        with redirect_stdout(log), redirect_stderr(log), recorded_cost(cost_file(path)):
            yield
    except (Exception, KeyboardInterrupt) as error:
        # Any exception after an interruption: interrupted libraries may raise their own.
        if not (interruptions or isinstance(error, KeyboardInterrupt)):
            _report(_described(error, path), log)
            raise SystemExit(1) from None
        _report(f"interrupted, see {path}; run the same command again to go on", log)
        # Shells expect an end by the signal. Python does so itself, but prints a traceback and runs exit handlers.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    with suppress(OSError):
        log.close()


def _record_interruptions() -> list[int]:
    # List to which every SIGINT is appended; stays empty if the signal is ignored, as under nohup.
    numbers: list[int] = []

    def record(number: int, frame: FrameType | None) -> None:
        numbers.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, record)
    return numbers


class _Log(io.TextIOWrapper):
    """Text file with terminal control sequences escaped, since names from outside may contain them."""

    def write(self, text: str) -> int:
        """Write the escaped text."""
        super().write(harmless(text))
        return len(text)


def _described(error: BaseException, path: Path) -> str:
    if isinstance(error, InputError):
        return f"error: {error}"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error)):
        return (
            f"error: {path}: out of memory ({str(error) or 'no amount stated'}); run with fewer --cores, give the "
            "measure a smaller batch_size, or the job more mem_mb in the profile, and run the same command again"
        )
    # Named, as a step without torch does not import it.
    if type(error).__name__ == "OutOfMemoryError":
        amount = str(error).partition(". GPU")[0]
        return (
            f"error: {path}: the memory of the GPU ran out ({amount}); end what else computes on it, set a smaller "
            "batch_size or device: cpu in the configuration, and run the same command again"
        )
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return (
            f"error: {error.filename or path}: {os.strerror(error.errno)}; free space or make the folder writable, "
            "and run the same command again"
        )
    return traceback.format_exc()


def _report(message: str, log: TextIO | None) -> None:
    # stderr first, since a full disk may prevent writing the log. On a line of its own, below the line of a display.
    line_break = "\n" if os.environ.get(DISPLAYED) else ""
    print(f"{line_break}{harmless(message)}", file=sys.stderr, flush=True)
    if log is not None:
        with suppress(OSError):
            print(message, file=log)
        with suppress(OSError):
            log.close()


# ---- wall time, CPU time, peak memory and GPU time ----


@contextmanager
def recorded_cost(path: Path | str | None) -> Iterator[None]:
    """Write the cost of the block to a JSON file if it succeeds.

    Parameters
    ----------
    path : path or None
        File with wall_s, cpu_s (all threads and finished child processes) and gpu_s (time that a GPU was held,
        times the part of it) in seconds, without the start of Python; peak_memory_mib of the
        whole process; forwards and backwards as counted by gfscore.networks.passes, if any. None: no file.
    """
    started = time.monotonic()
    cpu_before = _cpu_seconds()
    passes_before = passes.counts()
    yield
    if path is None:
        return
    wall = time.monotonic() - started
    # Imported only by steps that use a device. The name in quotes would make its code a source of every step.
    devices = sys.modules.get(f"{passes.__package__}.devices")
    gpu_seconds = devices.GPU_SHARE.seconds if devices is not None else 0.0
    cost = {
        "wall_s": wall,
        "cpu_s": _cpu_seconds() - cpu_before,
        "gpu_s": gpu_seconds,
        "peak_memory_mib": _peak_memory_mib(),
        **passes.counts_since(passes_before),
    }
    write_json(path, cost)


def cost_file(path_to_log: Path | str) -> Path | None:
    """Path of a job's cost record, which corresponds to the path of its log; None for a log outside results/logs."""
    path = Path(path_to_log)
    if not path.is_relative_to(LOGS):
        return None
    return (Path(COSTS) / path.relative_to(LOGS)).with_suffix(".json")


def _cpu_seconds() -> float:
    seconds = 0.0
    for processes in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(processes)
        seconds += usage.ru_utime + usage.ru_stime
    return seconds


def _peak_memory_mib() -> float:
    status = Path("/proc/self/status")
    if status.is_file():
        # On Linux the value of getrusage includes the parent process.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    # In bytes on macOS, in KiB on other systems.
    units_per_mib = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / units_per_mib
