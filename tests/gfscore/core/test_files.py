import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gfscore
from gfscore import InputError
from gfscore.core.digests import sha256_of_file
from gfscore.core.files import atomic, read_json, write_json, write_text

PACKAGE_FOLDER = str(Path(gfscore.__file__).parents[1])


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_write_text_makes_folders_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "deep" / "down" / "note.txt"
    write_text(path, "Ω ≥ 0\n")
    assert path.read_bytes() == "Ω ≥ 0\n".encode()
    write_text(path, "new")
    assert path.read_text() == "new"
    assert names_in(path.parent) == ["note.txt"]


def test_the_file_is_not_there_before_it_is_whole(tmp_path):
    path = tmp_path / "note.txt"
    with atomic(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        assert temporary.parent == tmp_path
    assert path.read_text() == "half"


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_file_and_no_part_of_the_new_one(tmp_path, kind):
    path = tmp_path / "note.txt"
    write_text(path, "old")

    def write_half():
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise kind("disk on fire")

    with pytest.raises(kind, match="disk on fire"):
        write_half()
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["note.txt"]


def test_a_target_that_cannot_be_replaced_is_left_alone(tmp_path):
    folder = tmp_path / "note.txt"
    folder.mkdir()
    with pytest.raises(OSError, match=r"note\.txt"):
        write_text(folder, "text")
    assert folder.is_dir()
    assert names_in(tmp_path) == ["note.txt"]


def test_a_killed_process_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "note.txt"
    write_text(path, "old")
    code = (
        "import os, signal, sys\n"
        "from gfscore.core.files import atomic\n"
        "with atomic(sys.argv[1]) as temporary:\n"
        "    with temporary.open('w') as file:\n"
        "        file.write('half of the new text')\n"
        "        file.flush()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONPATH": PACKAGE_FOLDER}, check=False
    )
    assert result.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    # What remains is hidden and no glob for results takes it for one; the next write is not in its way.
    assert list(tmp_path.glob("*.txt")) == [path]
    write_text(path, "new")
    assert path.read_text() == "new"


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "note.txt", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "note.txt").stat().st_mode & 0o777 == 0o640


def test_json_keeps_the_order_of_keys_and_reads_back(tmp_path):
    data = {"z": 1, "a": [1.5, "ü", None, True], "m": {"x": (1, 2)}}
    write_json(tmp_path / "x.json", data)
    assert read_json(tmp_path / "x.json") == {"z": 1, "a": [1.5, "ü", None, True], "m": {"x": [1, 2]}}
    assert list(read_json(tmp_path / "x.json")) == ["z", "a", "m"]
    assert (tmp_path / "x.json").read_text().endswith("}\n")


@pytest.mark.parametrize("nan", [float("nan"), np.nan, np.float32("nan"), np.float64("nan")])
def test_nan_becomes_null(tmp_path, nan):
    write_json(tmp_path / "x.json", {"a": nan, "b": [nan, {"c": nan}], "d": (nan, 1.0)})
    assert "NaN" not in (tmp_path / "x.json").read_text()
    assert read_json(tmp_path / "x.json") == {"a": None, "b": [None, {"c": None}], "d": [None, 1.0]}


def test_numpy_numbers_and_arrays_become_plain_ones(tmp_path):
    data = {"i": np.int64(3), "f": np.float32(0.5), "b": np.bool_(True), "a": np.array([[1.0, np.nan]])}
    write_json(tmp_path / "x.json", data)
    assert read_json(tmp_path / "x.json") == {"i": 3, "f": 0.5, "b": True, "a": [[1.0, None]]}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_an_error_of_the_disk_names_the_file_that_was_to_be_written(tmp_path, number):
    with pytest.raises(OSError, match=r"x\.txt'$") as caught, atomic(tmp_path / "x.txt"):
        raise OSError(number, "whatever", ".x.txt.123.part")
    assert caught.value.errno == number
    assert names_in(tmp_path) == []


def test_json_that_was_changed_since_it_was_written_is_refused(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"samples": 900, 1: "a"})
    assert list(json.loads(path.read_text())) == ["samples", "1", "checksum"]
    for text in (path.read_text().replace("900", "980"), '{"samples": 900}', "{}"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"x\.json: damaged, or edited by hand.*delete it"):
            read_json(path)


def test_an_infinite_number_is_never_written_as_broken_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("inf")})
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        *((text, "holds a .*, not a mapping") for text in (b"[1]", b"1", b"null", b'"a"')),
        *((text, "not readable as JSON") for text in (b"", b"{", b'{"a": 1', b"[1, 2", b"\0", b"\xff\xfe\0", None)),
        (b"[" * 100_000, "not readable as JSON"),
        (b'{"a": 1, "a": 2}', r"not readable as JSON \(the key 'a' stands twice"),
        (b'{"a": NaN}', r"not readable as JSON \(NaN is no number of JSON"),
    ],
)
def test_json_that_is_missing_malformed_or_no_mapping_is_an_error_that_names_the_file(tmp_path, content, fault):
    path = tmp_path / "verdict.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"verdict\.json: {fault}"):
        read_json(path)


def test_sha256_of_a_file(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "blob").write_bytes(content)
    assert sha256_of_file(tmp_path / "blob") == hashlib.sha256(content).hexdigest()
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_of_file(tmp_path / "empty").startswith("e3b0c44298fc1c14")
