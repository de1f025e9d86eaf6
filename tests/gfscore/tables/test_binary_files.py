""".npz and Parquet files, whose headers and footers may promise anything."""

import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.core import files
from gfscore.tables import binary_files
from gfscore.tables.binary_files import declared_array, open_parquet, whole_array
from helpers.processes import most_memory

ARRAYS = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "columns first": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array(["a", "bcd"]),
    "empty": np.zeros((0, 5)),
    "scalar": np.array(3),
    "equal": np.zeros(10**6),
}


def stored(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", content)
    return np.load(path, allow_pickle=False)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("name", ARRAYS)
def test_whole_arrays_are_read_as_numpy_reads_them(tmp_path, save, name):
    save(tmp_path / "a.npz", **{name: ARRAYS[name]})
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(whole_array(file, name), ARRAYS[name])


@pytest.mark.parametrize("shape", [(10**12,), (2,), (4,)])
def test_a_header_that_promises_another_size_is_refused(tmp_path, shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with stored(tmp_path / "a.npz", buffer.getvalue() + bytes(24)) as file, pytest.raises(ValueError, match="implies"):
        whole_array(file, "x")


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with np.load(tmp_path / "a.npz") as file, pytest.raises(ValueError, match="array x is of Python objects"):
        whole_array(file, "x")


def test_an_array_that_unpacks_to_much_more_than_its_file_is_refused_before_its_data_are_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((10**6, 10), dtype=np.uint8))
    with np.load(tmp_path / "a.npz") as file:
        assert declared_array(file, "x")[0] == (10**6, 10)
        monkeypatch.setattr(files, "MOST_UNPACKED", 10**6)
        with most_memory() as most, pytest.raises(ValueError, match=r"10,000,128 bytes .*numpy\.savez"):
            whole_array(file, "x")
    assert most[0] < 10**6


def test_an_uncompressed_array_is_read_whatever_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 10**6)
    np.savez(tmp_path / "a.npz", x=np.zeros(10**7, dtype=np.uint8))
    with np.load(tmp_path / "a.npz") as file:
        assert whole_array(file, "x").shape == (10**7,)


@pytest.fixture
def path(tmp_path):
    columns = {"label": np.zeros(50_000, dtype=np.int32), "x": np.random.default_rng(0).random(50_000)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=10_000)
    return tmp_path / "x.parquet"


def test_a_file_that_can_hold_its_rows_is_opened(path):
    with open_parquet(path) as file:
        assert file.read().num_rows == 50_000


def test_more_rows_than_any_file_may_have_must_fit_into_it(path, monkeypatch):
    monkeypatch.setattr(binary_files, "PLAIN_ROWS", 1000)
    # 8 bytes of noise in each row
    open_parquet(path).close()
    pq.write_table(pa.table({"label": np.zeros(50_000, dtype=np.int32)}), path)
    with pytest.raises(ValueError, match="claims 50000 rows, 50000 in all row groups, in a file of"):
        open_parquet(path)
