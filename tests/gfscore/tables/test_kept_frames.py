import pandas as pd
import pytest

from gfscore.tables import parquet_tables
from gfscore.tables.parquet_tables import FrameCache
from gfscore.tables.table import DATASET

FRAME = pd.DataFrame({"sample_id": ["a", "b"], "label": [0, 1], "image_digest": ["c", "d"], "pixel_digest": ["e", "f"]})


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "code.py"
    path.write_text("one = 1")
    return path


@pytest.fixture
def made(tmp_path, code, monkeypatch):
    """Function that asks for a frame, made of a number, and says whether it was made for that."""
    monkeypatch.setattr(parquet_tables, "WORTH_STORING", -1.0)

    def ask(number):
        calls = []
        frame = FrameCache(tmp_path / "cache", code=[code]).get(
            DATASET, {"number": number}, lambda: calls.append(number) or FRAME
        )
        pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)
        return bool(calls)

    return ask


def test_a_frame_is_made_once_for_the_same_settings_and_code(made, code):
    assert [made(1), made(1), made(2), made(1), made(2)] == [True, False, True, False, False]
    code.write_text("one = 2")
    assert [made(1), made(1)] == [True, False]


def test_a_damaged_frame_is_made_again(made, tmp_path):
    made(1)
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(kept.read_bytes()[:-7])
    assert [made(1), made(1)] == [True, False]


def test_what_is_quickly_made_is_not_kept(made, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_tables, "WORTH_STORING", 60.0)
    assert [made(1), made(1)] == [True, True]
    assert not (tmp_path / "cache").exists()
