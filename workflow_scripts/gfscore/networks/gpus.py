"""Assignment of one GPU per job on a machine with several GPUs and no scheduler."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gfscore.core.errors import InputError


@cache
def hold_gpu() -> None:
    """Set torch's current device to a GPU that no other job holds, for the lifetime of the process.

    Does nothing if only one GPU is visible, as in SLURM jobs. Waits if all are held.
    """
    import torch

    count = torch.cuda.device_count()
    if count > 1:
        names = [str(torch.cuda.get_device_properties(index).uuid) for index in range(count)]
        torch.cuda.set_device(hold_one_of(names, folder=Path(tempfile.gettempdir()) / f"gfscore-gpus-{os.getuid()}"))


def hold_one_of(names: Sequence[str], *, folder: Path) -> int:
    """Index of the first name that no other process holds; it is held until this process ends.

    `folder` holds the lock files of this machine. Waits if all names are held. Raises InputError for a folder of
    another user.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder}: belongs to another user, so its locks cannot be trusted; have it removed")
    # Never closed: the operating system releases a lock when the process ends.
    locks = [os.open(folder / name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600) for name in names]
    for index, lock in enumerate(locks):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return index
    index = os.getpid() % len(names)
    print(f"all {len(names)} GPUs are held by other jobs: waiting for {names[index]}")
    fcntl.flock(locks[index], fcntl.LOCK_EX)
    return index
