import errno
import fcntl
import os
import threading

import pytest

from gfscore.core.errors import InputError
from gfscore.networks import locks
from gfscore.networks.locks import alone_at


def test_turns_never_overlap(tmp_path):
    """Each job removes the lock that the next ones may already wait for."""
    inside, most = [], []

    def work(number):
        for _ in range(20):
            with alone_at(tmp_path / "m"):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 120
    assert max(most) == 1
    assert not [*tmp_path.iterdir()]


def test_a_disk_without_locks_gives_everybody_a_turn(tmp_path, monkeypatch):
    def without(*_):
        raise OSError(locks.WITHOUT_LOCKS[0], "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with alone_at(tmp_path / "m"), alone_at(tmp_path / "m"):
        pass


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO])
def test_a_lock_that_a_network_drive_refuses_is_named_with_a_remedy(tmp_path, monkeypatch, held, number):
    opened, closed = [], []
    real_open, real_close = os.open, os.close

    def refused(_, how):
        if held and how & fcntl.LOCK_NB:
            raise BlockingIOError
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    monkeypatch.setattr(os, "open", lambda *given: opened.append(real_open(*given)) or opened[-1])
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or real_close(handle))
    expected = rf"m\.lock: cannot be locked \({os.strerror(number)}\); run again, and .* on a disk whose locks work"
    with pytest.raises(InputError, match=expected), alone_at(tmp_path / "m"):
        raise AssertionError("a turn without the lock")
    assert opened and opened == closed


def test_a_disk_that_loses_its_locks_while_a_job_waits_gives_it_a_turn(tmp_path, monkeypatch):
    def without(_, how):
        raise BlockingIOError if how & fcntl.LOCK_NB else OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with alone_at(tmp_path / "m"):
        pass


def test_a_lock_that_cannot_be_removed_hides_no_error_of_the_work(tmp_path):
    with pytest.raises(InputError, match="the work"), alone_at(tmp_path / "m"):
        (tmp_path / "m.lock").unlink()
        (tmp_path / "m.lock").mkdir()
        raise InputError("the work")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"m\.lock: cannot be written \("), alone_at(tmp_path / "file" / "m"):
        pass
