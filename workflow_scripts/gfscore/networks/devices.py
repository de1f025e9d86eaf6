"""Parts of a GPU: each job takes a percentage of one GPU, and several jobs share it.

The locks are files that the operating system releases when a process ends, however it ends. Imports nothing heavy.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.device_choice import CONTEXT_MB, WHOLE

POLL = 0.2
"""Seconds between two looks at parts that other jobs hold."""


class HeldGpu:
    """The part of a GPU that this process holds, for its lifetime."""

    held = False
    limited = False
    """Whether torch may take no more than the part."""


def hold_gpu(percent: int | None = None) -> None:
    """Set torch's current device to a GPU with so many percent free, and hold them for the lifetime of the process.

    Waits until that much is free. Without `percent` the process takes one of several GPUs for itself, and nothing is
    held where only one is visible, as in SLURM jobs. Torch gets no more than the part, until `lift_limit`. Only the
    first call of a process has an effect.
    """
    if HeldGpu.held:
        return
    HeldGpu.held = True
    import torch

    count = torch.cuda.device_count()
    if percent is None and count == 1:
        return
    names = [str(torch.cuda.get_device_properties(index).uuid) for index in range(count)]
    parts = min(percent or WHOLE, WHOLE)
    index = hold_parts(names, parts, folder=lock_folder())
    torch.cuda.set_device(index)
    if parts < WHOLE:
        total = torch.cuda.mem_get_info()[1]
        # Torch does not count what CUDA and its libraries take.
        share = max(parts / WHOLE - (CONTEXT_MB << 20) / total, 0.01)
        torch.cuda.set_per_process_memory_fraction(share)
        HeldGpu.limited = True
        print(f"{parts}% of GPU {index}, {parts * total / WHOLE / 1e9:.1f} GB of {total / 1e9:.1f} GB")


def lift_limit() -> bool:
    """Let torch take all memory of the GPU that is free; whether it was limited to a part."""
    if not HeldGpu.limited:
        return False
    import torch

    torch.cuda.set_per_process_memory_fraction(1.0)
    HeldGpu.limited = False
    print("one image takes more than this job's part of the GPU: it may take all that is free")
    return True


def lock_folder() -> Path:
    """Folder of the lock files of this user on this machine."""
    return Path(tempfile.gettempdir()) / f"gfscore-gpus-{os.getuid()}"


def hold_parts(names: Sequence[str], parts: int, *, folder: Path) -> int:
    """Index of the first GPU that so many percent of are free; they are held until this process ends.

    Parameters
    ----------
    names : sequence of str
        Identifiers of the GPUs, names of lock files.
    parts : int
        Percent of one GPU.
    folder : Path
        Folder of the lock files, made where it is missing.

    Returns
    -------
    int
        Position in `names`. Processes that wait are served in turn, so that a large part is not kept waiting by small
        ones that come later.

    Raises
    ------
    InputError
        For a folder of another user, whose locks cannot be trusted.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder}: belongs to another user, so its locks cannot be trusted; have it removed")

    queue = _opened(folder / "queue")
    announced = False
    try:
        while True:
            if _locked(queue):
                for index, name in enumerate(names):
                    if _try_parts(folder, name, parts):
                        return index
            if not announced:
                print(f"waiting for {parts}% of a GPU ({len(names)} here): other jobs hold or wait for the rest")
                announced = True
            time.sleep(POLL)
    finally:
        os.close(queue)


def _locked(lock: int) -> bool:
    # Whether this process holds a lock now, which it may have held before.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_parts(folder: Path, name: str, parts: int) -> bool:
    # Whether so many parts of one GPU were free: they are held then, and none of them otherwise.
    locks: list[int] = []
    for number in range(WHOLE):
        lock = _opened(folder / f"{name}.{number}")
        if not _locked(lock):
            os.close(lock)
            continue
        locks.append(lock)
        if len(locks) == parts:
            # Never closed: the operating system releases a lock when the process ends.
            return True
    for lock in locks:
        os.close(lock)
    return False


def _opened(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def resolve_device(device: str, *, gpu_percent: int | None = None) -> str:
    """Device to use: "auto" is "cuda" if available, else "cpu"; other names are returned unchanged.

    `gpu_percent` of one GPU are held for the lifetime of the process, of several GPUs on one that has as much free;
    None for the whole (see gfscore.networks.devices).
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if gpu_percent and device == "cpu":
            print(f"a GPU was planned for, but torch {torch.__version__} finds none: on the CPU")
    if device == "cuda":
        hold_gpu(gpu_percent)
    return device


def require_device(device: str, *, gpu_percent: int | None = None) -> None:
    """Raise InputError for "cuda" if there is no CUDA device; a part of one is held as by `resolve_device`."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device is cuda, but torch {torch.__version__} finds no CUDA device; run this on a machine with a GPU and "
            "a CUDA build of torch (README.md), or set device: cpu where the configuration says cuda, which is much "
            "slower (inference: device; gfscore audit: --device cpu)"
        )
    if device == "cuda":
        hold_gpu(gpu_percent)


def device_of(classifier: Classifier, device: str, *, gpu_percent: int | None = None) -> str:
    """Device that a classifier runs on: the resolved one, or "cpu" without a torch network.

    Raises InputError for "cuda" if there is no CUDA device.
    """
    if classifier.network is None:
        return "cpu"
    require_device(device, gpu_percent=gpu_percent)
    return resolve_device(device, gpu_percent=gpu_percent)


def move_to(classifier: Classifier, device: str, *, where: object) -> None:
    """Move the network of a classifier to a device, in eval mode; without a network nothing is done.

    Raises InputError, naming the classifier as `where`, where the weights do not fit into the memory of the GPU.
    """
    if classifier.network is None:
        return
    try:
        classifier.network.to(device).eval()
    except RuntimeError as error:
        if device == "cpu" or not out_of_memory(error):
            raise
        if not lift_limit():
            raise too_small_gpu(where, "the weights") from error
        move_to(classifier, device, where=where)


def too_small_gpu(where: object, what: str) -> InputError:
    """Error for a GPU whose memory does not hold `what` of a classifier."""
    return InputError(
        f"{where}: {what} take more memory than the GPU has free; end what else computes on it, or run on the CPU with "
        "inference: {device: cpu} in the configuration (gfscore audit: --device cpu)"
    )


def refuse_small_gpu(error: BaseException, *, where: object) -> None:
    """Raise InputError, naming the classifier as `where`, if it is the GPU's memory that ran out for a single image."""
    import torch

    # Where CUDA was not used, it was the machine's memory.
    if out_of_memory(error) and torch.cuda.is_initialized():
        raise too_small_gpu(where, "the passes of one image") from error


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the CPU or a GPU ran out of memory."""
    import torch

    # The CPU allocators of torch and onnxruntime, and the libraries and driver of a GPU, raise untyped errors.
    words = (
        "DefaultCPUAllocator",
        "not enough memory",
        "Failed to allocate memory",
        "bad_alloc",
        "_ALLOC_FAILED",
        "out of memory",
    )
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in str(error) for word in words)
