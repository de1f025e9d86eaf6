"""One GPU per job on a machine that has several and no scheduler to hand them out."""

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
    """Make a GPU that no other job holds torch's current device, for the life of the process.

    Does nothing where a job sees one GPU only, as SLURM arranges it. Where all are held, waits for one.
    """
    import torch

    count = torch.cuda.device_count()
    if count > 1:
        names = [str(torch.cuda.get_device_properties(index).uuid) for index in range(count)]
        torch.cuda.set_device(hold_one_of(names, folder=Path(tempfile.gettempdir()) / f"gfscore-gpus-{os.getuid()}"))


def hold_one_of(names: Sequence[str], *, folder: Path) -> int:
    """Index of the first name that no other process holds, held until this process ends, however it ends.

    `folder` is where processes of this machine leave their locks; where all names are held, waits for one of them.
    Raises InputError for a folder that another user could steer.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder}: made by another user, so that GPUs cannot be shared out by it; have it removed")
    # Never closed: the operating system takes a lock away with the last process that has its file open.
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
