"""The device of a job: which one, the share of a GPU that the job holds, and what happens when its memory runs out.

Each job takes a percentage of one GPU, so that several jobs share it. The locks are files that the operating system
releases when a process ends, however it ends.
"""

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.device_choice import CONTEXT_MB, WHOLE

POLL = 0.2
"""Seconds between two attempts to lock what other jobs hold."""

SLURM_JOB = "SLURM_JOB_ID"
"""Environment variable of a job of SLURM, which may share its GPU with others by SLURM's shards or MPS."""

OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "not enough memory",
    "Failed to allocate memory",
    "bad_alloc",
    "unable to find an engine to execute this computation",
)
"""Words in errors without a type of their own: of the CPU allocators of torch and onnxruntime, and of a convolution on
a GPU without an algorithm, mostly since none found the memory that it works in."""

OUT_OF_GPU_MEMORY = ("_ALLOC_FAILED", "_ALLOCATION_FAILED", "out of memory")
"""Such words of the libraries and the driver of a GPU, which say that its memory ran out."""

WEIGHTS = "the weights"
"""Of a network, where messages say that they do not fit into the memory of a GPU."""

ONE_IMAGE = "the passes of one image"
"""Smallest batch, where messages say that it does not fit into the memory of a GPU."""


# Choice of the device


def hold_device(device: str, *, gpu_percent: int | None = None) -> str:
    """Choose a device, and hold a share of it for the lifetime of the process where it is a GPU.

    Parameters
    ----------
    device : str
        "auto", "cpu" or "cuda"; "auto" is "cuda" where torch finds a GPU, else "cpu".
    gpu_percent : int, optional
        Percent of one GPU, on one that has as much free; without it, see `GpuShare.hold`.

    Returns
    -------
    str
        "cpu" or "cuda".

    Raises
    ------
    InputError
        For "cuda" if there is no CUDA device, and for a GPU that the installed torch has no programs for.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if gpu_percent and device == "cpu":
            print(f"a GPU was planned for, but torch {torch.__version__} finds none: on the CPU")
    if device != "cuda":
        return device
    if not torch.cuda.is_available():
        raise InputError(
            f"device is cuda, but torch {torch.__version__} finds no CUDA device; run this on a machine with a GPU and "
            "a CUDA build of torch (README.md), or set device: cpu where the configuration says cuda, which is much "
            "slower (inference: device; gfscore audit: --device cpu)"
        )
    GPU_SHARE.hold(gpu_percent)
    _require_programs()
    return device


def _require_programs() -> None:
    # What torch raises at the first operation on a GPU that is too old for its build names no remedy.
    major, minor = torch.cuda.get_device_capability()
    built_for = re.findall(r"\b(?:sm|compute)_(\d+)", " ".join(torch.cuda.get_arch_list()))
    oldest = min(map(int, built_for), default=0)
    if 10 * major + minor < oldest:
        raise InputError(
            f"{torch.cuda.get_device_name()} is too old for torch {torch.__version__}: its compute capability is "
            f"{major}.{minor}, and this build begins at {oldest // 10}.{oldest % 10}; install a build for it, or run "
            "on the CPU with inference: {device: cpu} in the configuration (gfscore audit: --device cpu)"
        )


def device_of(classifier: Classifier, device: str, *, gpu_percent: int | None = None) -> str:
    """Device that a classifier runs on: as `hold_device` chooses it, or "cpu" without a torch network.

    Raises InputError for "cuda" if there is no CUDA device.
    """
    if classifier.network is None:
        return "cpu"
    return hold_device(device, gpu_percent=gpu_percent)


def device_of_weights(network: nn.Module) -> torch.device:
    """Device of the weights or buffers of a network; the CPU for one without any."""
    weight = next(chain(network.parameters(), network.buffers()), None)
    return torch.device("cpu") if weight is None else weight.device


def move_to(classifier: Classifier, device: str, *, where: object) -> None:
    """Move the network of a classifier, if it has one, to a device in eval mode.

    Weights that exceed the share of a GPU may take all that is free. Raises InputError, naming the classifier as
    `where`, where they do not fit into that either.
    """
    if classifier.network is None:
        return
    try:
        classifier.network.to(device).eval()
    except RuntimeError as error:
        if device == "cpu" or not out_of_memory(error):
            raise
        if not GPU_SHARE.lift_limit(WEIGHTS):
            raise too_small_gpu(where, WEIGHTS) from error
        move_to(classifier, device, where=where)


# Memory


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the CPU or a GPU ran out of memory."""
    if isinstance(error, MemoryError) or _out_of_gpu_memory(error):
        return True
    text = str(error)
    return any(words in text for words in OUT_OF_MEMORY)


def _out_of_gpu_memory(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(words in text for words in OUT_OF_GPU_MEMORY)


def too_small_gpu(where: object, subject: str) -> InputError:
    """Error for a GPU whose memory does not hold `subject`, in the plural, of a classifier."""
    return InputError(
        f"{where}: {subject} take more memory than the GPU has free; end what else computes on it, or run on the CPU "
        "with inference: {device: cpu} in the configuration (gfscore audit: --device cpu)"
    )


def refuse_small_gpu(error: BaseException, *, where: object) -> None:
    """Raise InputError, naming the classifier as `where`, if it is the GPU's memory that ran out for a single image."""
    # Where CUDA was not used, it was the machine's memory.
    if _out_of_gpu_memory(error) and torch.cuda.is_initialized():
        raise too_small_gpu(where, ONE_IMAGE) from error


# Shares of a GPU


class GpuShare:
    """The share of a GPU that this process holds, for its lifetime.

    Attributes
    ----------
    requested : bool
        Whether `hold` was called, which has an effect once.
    part : float
        Part of one GPU, 0 before it is held.
    since : float
        When that began, by the monotonic clock.
    limited : bool
        Whether torch may take no more memory than the share.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        self.requested = False
        self.part = 0.0
        self.since = time.monotonic()
        self.limited = False

    def hold(self, percent: int | None = None) -> None:
        """Set torch's current device to a GPU with so many percent free, and hold them for the lifetime of the process.

        Waits until that much is free. Torch gets no more memory than the share, until `lift_limit`. Only the first call
        of a process has an effect.

        Parameters
        ----------
        percent : int, optional
            Without it the process takes a GPU for itself. It holds nothing where SLURM has chosen the only one.
        """
        if self.requested:
            return
        self.requested = True
        count = torch.cuda.device_count()
        if percent is None and count == 1 and SLURM_JOB in os.environ:
            self._begin(WHOLE)
            return

        names = [str(torch.cuda.get_device_properties(index).uuid) for index in range(count)]
        percent = min(percent or WHOLE, WHOLE)
        index = hold_percent(names, percent, folder=lock_folder())
        self._begin(percent)
        torch.cuda.set_device(index)
        if percent < WHOLE:
            total = torch.cuda.mem_get_info()[1]
            # Torch does not count what CUDA and its libraries take.
            fraction = max(percent / WHOLE - (CONTEXT_MB << 20) / total, 0.01)
            torch.cuda.set_per_process_memory_fraction(fraction)
            self.limited = True
            print(f"{percent}% of GPU {index}, {percent * total / WHOLE / 1e9:.1f} GB of {total / 1e9:.1f} GB")

    def _begin(self, percent: int) -> None:
        self.part = percent / WHOLE
        self.since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds that the share has been held, times the part that it is of one GPU."""
        return self.part * (time.monotonic() - self.since)

    def lift_limit(self, subject: str) -> bool:
        """Let torch take all memory of the GPU that is free, for a `subject` in the plural that exceeds the share.

        Returns whether memory was limited to a share.
        """
        if not self.limited:
            return False
        torch.cuda.set_per_process_memory_fraction(1.0)
        self.limited = False
        print(f"{subject} take more than this job's part of the GPU: they may take all that is free")
        return True


GPU_SHARE = GpuShare()
"""The share of this process."""


def lock_folder() -> Path:
    """Folder of this user's lock files, in the folder for temporary files.

    Jobs with different TMPDIR do not see each other's locks, and may take more than a GPU has.
    """
    return Path(tempfile.gettempdir()) / f"gfscore-gpus-{os.getuid()}"


def hold_percent(names: Sequence[str], percent: int, *, folder: Path) -> int:
    """Hold a percentage of a GPU, of those that have it free the one with most, until this process ends.

    Of the processes that wait, one has the lock of the queue and goes first, so that a large share is not kept waiting
    by small ones that come later. Which of the others gets that lock next is chance.

    Parameters
    ----------
    names : sequence of str
        Identifiers of the GPUs, names of lock files.
    percent : int
        1 to 100.
    folder : Path
        Folder of the lock files, made where it is missing.

    Returns
    -------
    int
        Position of the GPU in `names`.

    Raises
    ------
    InputError
        For a folder of another user, whose locks cannot be trusted.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder}: belongs to another user, so its locks cannot be trusted; have it removed")

    queue = _lock_file(folder / "queue")
    announced = False
    try:
        while True:
            if _lock(queue):
                index = _lock_least_held(folder, names, percent)
                if index is not None:
                    return index
            if not announced:
                print(f"waiting for {percent}% of a GPU ({len(names)} here): other jobs hold or wait for the rest")
                announced = True
            time.sleep(POLL)
    finally:
        os.close(queue)


def _lock_least_held(folder: Path, names: Sequence[str], percent: int) -> int | None:
    # Index of a GPU that has so much free, the emptiest first, which is held from here on; None without any.
    for name in sorted(names, key=lambda name: _percent_held(folder, name)):
        if _lock_percent(folder, name, percent):
            return names.index(name)
    return None


def _percent_held(folder: Path, name: str) -> int:
    # How many of the WHOLE locks of one GPU others hold.
    held = 0
    for number in range(WHOLE):
        lock = _lock_file(folder / f"{name}.{number}")
        held += not _lock(lock)
        os.close(lock)
    return held


def _lock_percent(folder: Path, name: str, percent: int) -> bool:
    # Holds so many of the WHOLE locks of one GPU, or none of them if fewer are free.
    locks: list[int] = []
    for number in range(WHOLE):
        lock = _lock_file(folder / f"{name}.{number}")
        if not _lock(lock):
            os.close(lock)
            continue
        locks.append(lock)
        if len(locks) == percent:
            # Never closed: the operating system releases a lock when the process ends.
            return True
    for lock in locks:
        os.close(lock)
    return False


def _lock(descriptor: int) -> bool:
    # Whether this process holds the lock now, which it may have held before.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_file(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
