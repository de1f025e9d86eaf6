"""Digests of files are computed again after every change of a file, and not without one."""

import os
import time
from pathlib import Path

import pytest

from gfscore.core import digests
from gfscore.core.digests import sha256_of_file


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"before")


def later(monkeypatch):
    """A time at which files that were written now count as settled."""
    now = time.time()
    monkeypatch.setattr(digests.time, "time", lambda: now + 10)


def test_an_unchanged_file_is_not_read_again(monkeypatch):
    later(monkeypatch)
    digest = digests.cached_sha256("file")
    assert digest == sha256_of_file("file")
    monkeypatch.setattr(digests.hashlib, "file_digest", None)
    assert digests.cached_sha256("file") == digest


@pytest.mark.parametrize("replaced", ["in place", "by another file", "by a link"])
def test_a_file_of_the_same_size_and_time_is_read_again(monkeypatch, replaced):
    later(monkeypatch)
    digests.cached_sha256("file")
    before = Path("file").stat()
    time.sleep(0.02)
    if replaced == "in place":
        Path("file").write_bytes(b"behind")
    else:
        Path("other").write_bytes(b"behind")
        Path("file").unlink()
        Path("other").rename("file") if replaced == "by another file" else Path("file").symlink_to("other")
    os.utime("file", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Path("file").stat().st_mtime_ns == before.st_mtime_ns
    assert digests.cached_sha256("file") == sha256_of_file("file")


def test_a_file_that_changed_a_moment_ago_is_not_stored():
    digests.cached_sha256("file")
    assert digests.recall("file") is None


def test_a_damaged_record_and_a_lost_file_are_as_none(monkeypatch):
    later(monkeypatch)
    digest = digests.cached_sha256("file")
    (record,) = digests.CACHE_FOLDER.iterdir()
    record.write_text("[1")
    assert digests.cached_sha256("file") == digest
    Path("file").unlink()
    assert digests.recall("file") is None


def test_a_folder_tells_of_files_that_are_added(monkeypatch):
    later(monkeypatch)
    Path("folder").mkdir()
    digests.store("set", "d", paths=["file", "folder"], started=time.time())
    assert digests.recall("set").digest == "d"
    time.sleep(0.02)
    Path("folder/more").touch()
    assert digests.recall("set") is None
