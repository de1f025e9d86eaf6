import fcntl
import threading

import pytest

from gfscore.errors import InputError
from gfscore.models import locks
from gfscore.models.locks import alone_at


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


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"m\.lock: cannot be written \("), alone_at(tmp_path / "file" / "m"):
        pass
