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
