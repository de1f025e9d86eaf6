"""Turns at a file for jobs that know nothing of each other."""

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path

from gfscore.core.errors import InputError

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system that has no locks, such as some network drives."""


@contextmanager
def alone_at(path):
    """Hold the lock of a file, `<path>.lock`, against every other job; waits for it, and removes it at the end.

    The operating system takes the lock away with its process, however that ends. On a file system without locks it is
    given to everybody. Raises InputError where the folder cannot be written, or the lock not be had.
    """
    path = Path(path)
    handle = _held(path)
    try:
        yield
    finally:
        # Before the lock is given up: later, the file may be the lock of another job.
        with suppress(OSError):
            lock_of(path).unlink()
        os.close(handle)


def lock_of(path):
    """File that stands for the turn at another file."""
    return Path(f"{path}.lock")


def _held(path):
    while True:
        handle = _opened(path)
        try:
            _wait_for(handle, path)
            # Whoever had the lock before has removed the file: only the lock of the one that is there now counts.
            if _same_file(handle, lock_of(path)):
                return handle
        except OSError as error:
            os.close(handle)
            raise InputError(
                f"{lock_of(path)}: cannot be locked ({error.strerror}); run again, and if that does not help, put the "
                "file on a disk whose locks work"
            ) from error
        os.close(handle)


def _wait_for(handle, path):
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{path}: another job works on this file: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise


def _opened(path):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(lock_of(path), os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise InputError(
            f"{lock_of(path)}: cannot be written ({error.strerror}); check space and rights, or delete it if "
            "nothing runs"
        ) from error


def _same_file(handle, path):
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
