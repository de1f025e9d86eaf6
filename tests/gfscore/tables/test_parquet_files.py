"""Parquet files, whose footers may promise anything."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.tables import binary_files
from gfscore.tables.binary_files import open_parquet


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
