"""Tables of results/: written and read, with their identity; CSV copies; the cache of frames."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore import InputError
from gfscore.tables import parquet_tables
from gfscore.tables.csv_files import as_cell, write_csv_beside
from gfscore.tables.parquet_tables import (
    IDENTITY_KEY,
    FrameCache,
    TableFile,
    read_identity,
    read_logits,
    read_table,
    typed_frame,
    write_logits,
    write_parts,
    write_table,
)
from gfscore.tables.table import DATASET
from gfscore.workflow.catalogue import CATALOGUE

IDENTITY = {"dataset": "digits", "threat": "none", "model": "ERM", "checkpoint": "ab12"}
FLAT_TABLES = sorted(set(CATALOGUE) - {"logits"})


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def made_column(kind, rng, n):
    if pa.types.is_list(kind):
        words = [f"class {k}" for k in range(5)]
        return [list(rng.choice(words, rng.integers(0, 4))) for _ in range(n)]
    if pa.types.is_string(kind):
        return [f"näme {k}" for k in rng.integers(0, 9, n)]
    if pa.types.is_boolean(kind):
        return list(rng.random(n) < 0.5)
    if pa.types.is_integer(kind):
        return list(rng.integers(0, 2**31 - 1, n))
    values = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    values[0] = np.nan
    return list(values)


def made_frame(table, n=7):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: made_column(kind, rng, n) for name, kind, _ in CATALOGUE[table].columns})


def made_logits(n=40, k=6, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "sample_id": np.array([f"test/{i:05d}" for i in range(n)]),
        "label": rng.integers(0, k, n),
        "logits": rng.normal(size=(n, k)).astype(np.float32),
    }


@pytest.fixture
def path_to_logits(tmp_path):
    path = tmp_path / "ERM.parquet"
    write_logits(path, **made_logits(), identity=IDENTITY)
    return path


# Declarations


@pytest.mark.parametrize("table", sorted(CATALOGUE))
def test_every_column_is_declared_once_with_its_meaning(table):
    names = CATALOGUE[table].column_names
    assert len(set(names)) == len(names)
    assert all(meaning for _, _, meaning in CATALOGUE[table].columns)
    assert CATALOGUE[table].version >= 1


@pytest.mark.parametrize(
    ("table", "contract"),
    [
        ("logits", "sample_id label logits"),
        ("samples", "sample_id label prediction value censored"),
        (
            "class_scores",
            "dataset threat model measure calibration temperature class_index class_name n value low high interval "
            "confidence accuracy",
        ),
        (
            "model_summary",
            "dataset threat model measure calibration temperature value class_mean rdi nrgc wcr fp wcr_class wcr_tied "
            "value_low class_mean_low rdi_low nrgc_low wcr_low fp_low "
            "value_high class_mean_high rdi_high nrgc_high wcr_high fp_high value_alone_low value_alone_high "
            "accuracy published_clean_accuracy published_robust_accuracy",
        ),
        ("calibration", "objective temperature value"),
    ],
)
def test_tables_hold_the_columns_of_the_public_contract(table, contract):
    assert set(contract.split()) <= set(CATALOGUE[table].column_names)


# Round trips


@pytest.mark.parametrize("table", FLAT_TABLES)
def test_a_table_reads_back_as_it_was_written(table, tmp_path):
    frame = made_frame(table)
    path = tmp_path / "sub" / "table.parquet"
    write_table(path, CATALOGUE[table], frame, identity=IDENTITY)
    got = read_table(path, CATALOGUE[table], expect={"model": "ERM"})
    assert list(got.columns) == list(frame.columns)
    for name, kind, _ in CATALOGUE[table].columns:
        if pa.types.is_list(kind):
            assert got[name].tolist() == frame[name].tolist()
            assert all(type(item) is list for item in got[name])
        else:
            np.testing.assert_array_equal(got[name].to_numpy(), frame[name].to_numpy())
    assert names_in(path.parent) == ["table.parquet"]


@pytest.mark.parametrize("table", FLAT_TABLES)
def test_an_empty_table_keeps_its_columns(table, tmp_path):
    write_table(tmp_path / "t.parquet", CATALOGUE[table], typed_frame(CATALOGUE[table], []), identity={})
    got = read_table(tmp_path / "t.parquet", CATALOGUE[table])
    assert len(got) == 0
    assert list(got.columns) == CATALOGUE[table].column_names


def test_column_types_are_the_declared_ones_in_the_file(tmp_path):
    write_table(tmp_path / "t.parquet", CATALOGUE["class_scores"], made_frame("class_scores"), identity={})
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert [(field.name, field.type) for field in schema] == [
        (name, kind) for name, kind, _ in CATALOGUE["class_scores"].columns
    ]


def test_missing_numbers_and_words_are_null_in_the_file_and_nan_or_none_when_read(tmp_path):
    rows = [{"dataset": "digits", "temperature": None, "class_index": 0, "n": 0, "value": float("nan")}]
    write_table(
        tmp_path / "t.parquet", CATALOGUE["class_scores"], typed_frame(CATALOGUE["class_scores"], rows), identity={}
    )
    raw = pq.read_table(tmp_path / "t.parquet")
    for name in ("temperature", "value", "class_name", "accuracy"):
        assert raw.column(name).null_count == 1
    got = read_table(tmp_path / "t.parquet", CATALOGUE["class_scores"])
    assert np.isnan(got["value"][0])
    assert np.isnan(got["temperature"][0])
    assert got["dataset"][0] == "digits"
    assert pd.isna(got["class_name"][0])


@pytest.mark.parametrize(("elements", "groups"), [(1 << 24, 1), (60, 4)])
def test_logits_read_back_bit_for_bit_in_one_group_or_several(tmp_path, monkeypatch, elements, groups):
    monkeypatch.setattr("gfscore.tables.parquet_tables.GROUP_ELEMENTS", elements)
    made = made_logits()
    write_logits(tmp_path / "m.parquet", **made, identity=IDENTITY)
    assert pq.ParquetFile(tmp_path / "m.parquet").num_row_groups == groups
    sample_id, label, logits = read_logits(tmp_path / "m.parquet", expect=IDENTITY)
    assert sample_id.tolist() == made["sample_id"].tolist()
    assert label.dtype == np.int32 and logits.dtype == np.float32
    np.testing.assert_array_equal(label, made["label"])
    np.testing.assert_array_equal(logits, made["logits"])


@pytest.mark.parametrize("order", ["C", "F"])
def test_logits_of_any_memory_layout_integer_ids_and_numbers_that_are_not_finite_are_kept(tmp_path, order):
    made = made_logits() | {"sample_id": np.arange(40)}
    made["logits"] = np.asarray(made["logits"].astype(np.float64), order=order)
    made["logits"][3, 1], made["logits"][5, 0] = np.nan, np.inf
    write_logits(tmp_path / "m.parquet", **made, identity={})
    sample_id, _, logits = read_logits(tmp_path / "m.parquet")
    assert sample_id[:2].tolist() == ["0", "1"]
    np.testing.assert_array_equal(logits, made["logits"])


def test_two_writes_give_the_same_bytes(tmp_path, path_to_logits):
    write_logits(tmp_path / "again.parquet", **made_logits(), identity=dict(reversed(IDENTITY.items())))
    assert (tmp_path / "again.parquet").read_bytes() == path_to_logits.read_bytes()


# Identity


def test_identity_is_what_was_written_and_the_kind_of_table_which_no_other_table_inherits(tmp_path, path_to_logits):
    identity, path = read_identity(path_to_logits), tmp_path / "samples.parquet"
    assert identity == {**IDENTITY, "table": "logits", "table_version": CATALOGUE["logits"].version}
    write_table(path, CATALOGUE["samples"], made_frame("samples"), identity=identity | {"measure": "clean"})
    assert len(read_table(path, CATALOGUE["samples"], expect={**IDENTITY, "measure": "clean"})) == 7


@pytest.mark.parametrize(
    ("table", "expect", "fault"),
    [
        ("logits", {"model": "TRADES"}, "its model is 'ERM', but 'TRADES' is expected"),
        ("logits", {"device": "cpu"}, "its device is None, but 'cpu' is expected"),
        ("samples", {}, "its table is 'logits', but 'samples' is expected"),
    ],
)
def test_a_file_of_another_identity_is_refused(path_to_logits, table, expect, fault):
    with pytest.raises(InputError, match=rf"ERM\.parquet: {fault}"):
        read_table(path_to_logits, CATALOGUE[table], expect=expect)


def test_a_file_with_other_columns_than_its_table_is_refused(path_to_logits, tmp_path):
    table = pq.read_table(path_to_logits)
    for odd in (
        table.rename_columns(["sample_id", "label", "scores"]),
        table.drop_columns("label"),
        table.set_column(1, "label", table.column("label").cast(pa.int64())),
    ):
        pq.write_table(odd.replace_schema_metadata(table.schema.metadata), tmp_path / "odd.parquet")
        with pytest.raises(InputError, match=r"odd\.parquet: its columns are not those of table 'logits'"):
            read_logits(tmp_path / "odd.parquet")


def rewritten(path, target, **changes):
    table = pq.read_table(path)
    identity = json.loads(table.schema.metadata[IDENTITY_KEY]) | changes
    pq.write_table(table.replace_schema_metadata({IDENTITY_KEY: json.dumps(identity)}), target)
    return target


@pytest.mark.parametrize("version", [0, 2, 99, None, "1"])
def test_another_version_of_the_table_is_refused(path_to_logits, tmp_path, version):
    path = rewritten(path_to_logits, tmp_path / "old.parquet", table_version=version)
    with pytest.raises(InputError, match=r"old\.parquet: its table_version is .*, but 1 is expected; delete it"):
        read_logits(path)


def test_a_parquet_file_of_someone_else_is_refused(tmp_path):
    pd.DataFrame({"label": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"other\.parquet: has no identity metadata"):
        read_table(tmp_path / "other.parquet", CATALOGUE["samples"])


@pytest.mark.parametrize("metadata", [b"{", b"\xff\xfe", b""])
def test_damaged_identity_is_an_error_that_names_the_file(path_to_logits, tmp_path, metadata):
    table = pq.read_table(path_to_logits).replace_schema_metadata({IDENTITY_KEY: metadata})
    pq.write_table(table, tmp_path / "odd.parquet")
    with pytest.raises(InputError, match=r"odd\.parquet: damaged identity metadata"):
        read_logits(tmp_path / "odd.parquet")


# Damage


@pytest.mark.parametrize("keep", [0, 1, 4, 8, 100, 0.5, 0.99, -9, -8, -4, -1])
def test_a_truncated_file_is_an_error_that_names_it_and_the_remedy(path_to_logits, tmp_path, keep):
    raw = path_to_logits.read_bytes()
    path = tmp_path / "half.parquet"
    path.write_bytes(raw[: int(keep * len(raw)) if isinstance(keep, float) else keep])
    with pytest.raises(InputError, match=r"half\.parquet: not a Parquet file, or truncated.*delete it and run"):
        read_logits(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"<html>not found</html>" * 20, b"sample_id,label\n1,2\n"])
def test_a_file_that_is_not_parquet_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "page.parquet").write_bytes(content)
    for read in (read_identity, read_logits, lambda path: read_table(path, CATALOGUE["samples"])):
        with pytest.raises(InputError, match=r"page\.parquet: not a Parquet file"):
            read(tmp_path / "page.parquet")


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"gone\.parquet: no such file; run the workflow"):
        read_logits(tmp_path / "gone.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match=r"folder\.parquet: no such file"):
        read_table(tmp_path / "folder.parquet", CATALOGUE["samples"])


def with_rows(path_to_logits, target, rows):
    table = pq.read_table(path_to_logits).slice(0, len(rows))
    column = pa.array(rows, type=pa.list_(pa.float32()))
    made = table.set_column(2, "logits", column).replace_schema_metadata(table.schema.metadata)
    pq.write_table(made, target, row_group_size=2)
    return target


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [1.0, 2.0], [1.0]], "row 2 has 1 logits, row 0 has 2"),
        ([[1.0], [1.0, 2.0], [1.0]], "row 1 has 2 logits, row 0 has 1"),
        ([[1.0, 2.0], [], [1.0, 2.0]], "row 1 has 0 logits, row 0 has 2"),
        ([[1.0, 2.0], None, [1.0, 2.0]], "row 1 has 0 logits, row 0 has 2"),
    ],
)
def test_rows_of_different_length_are_an_error_that_names_file_and_row(path_to_logits, tmp_path, rows, message):
    path = with_rows(path_to_logits, tmp_path / "ragged.parquet", rows)
    with pytest.raises(InputError, match=rf"ragged\.parquet: {message}"):
        read_logits(path)


def test_a_file_without_rows_is_an_error(tmp_path):
    write_logits(tmp_path / "none.parquet", **made_logits(n=0), identity={})
    with pytest.raises(InputError, match=r"none\.parquet: no samples"):
        read_logits(tmp_path / "none.parquet")


# Writing


def test_a_frame_with_other_columns_is_refused(tmp_path):
    frame = made_frame("samples")
    for wrong in (
        frame.drop(columns="value"),
        frame.assign(extra=1),
        frame[frame.columns[::-1]],
        frame.rename(columns={"value": "values"}),
    ):
        with pytest.raises(KeyError, match="columns of table 'samples' differ"):
            write_table(tmp_path / "t.parquet", CATALOGUE["samples"], wrong, identity={})
    assert names_in(tmp_path) == []


def test_csv_beside_reads_back_in_full_precision(tmp_path):
    frame = made_frame("model_summary")
    write_csv_beside(tmp_path / "model_summary.parquet", frame)
    assert names_in(tmp_path) == ["model_summary.csv"]
    got = pd.read_csv(tmp_path / "model_summary.csv")
    assert list(got.columns) == list(frame.columns)
    np.testing.assert_array_equal(got["rdi"], frame["rdi"])
    assert got["wcr_tied"].fillna("").tolist() == ["|".join(tied) for tied in frame["wcr_tied"]]


@pytest.mark.parametrize("table", FLAT_TABLES)
def test_no_text_of_a_csv_is_a_formula_or_steers_a_terminal(tmp_path, table):
    texts = ["=cmd|' /C calc'!A0", "+a", "-a", "@x", "\t=1", "\r=1", "\x1b[2J", "a\r=1", "a\n=1", "\0", "a=b"]
    texts += ["cat;=1+1", "cat;\u200b@x", "\u200b=1+1", "\uff1d1", "caf\u00e9;a=b", ";", "\u200ba"]
    expected = ["'=cmd|' /C calc'!A0", "'+a", "'-a", "'@x", "'\t=1", "'\ufffd=1"]
    expected += ["\ufffd[2J", "a\ufffd=1", "a\n'=1", "\ufffd", "a=b"]
    expected += ["cat;'=1+1", "cat;'\u200b@x", "'\u200b=1+1", "'\uff1d1", "caf\u00e9;a=b", ";", "\u200ba"]
    frame = made_frame(table, n=len(texts))
    kinds = {name: kind for name, kind, _ in CATALOGUE[table].columns}
    names = [name for name, kind in kinds.items() if pa.types.is_string(kind)]
    lists = [name for name, kind in kinds.items() if pa.types.is_list(kind)]
    for name in names + lists:
        frame[name] = texts if name in names else [[text, "="] for text in texts]
    write_csv_beside(tmp_path / f"{table}.parquet", frame)
    with (tmp_path / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in kinds:
        found = [row[name] for row in rows]
        if name in names + lists:
            assert found == [text if name in names else f"{text}|=" for text in expected]
        else:
            # Numbers, negative ones included, stay as they are.
            assert not [text for text in found if text.startswith("'")]


@pytest.mark.parametrize("number", ["-1", "+1.5", "-1e-3", "-inf"])
def test_groups_that_are_numbers_stay_as_they_are(number):
    assert as_cell(number) == number
    assert as_cell(f"a;{number}") == f"a;{number}"


def test_a_number_ends_no_row_of_a_csv():
    assert as_cell("5\r") == "5\ufffd"
    assert as_cell("\x1c-5") == "\ufffd-5"


def test_frame_of_orders_columns_and_leaves_absent_keys_missing():
    frame = typed_frame(CATALOGUE["calibration"], [{"value": 0.5, "measure": "great"}])
    assert list(frame.columns) == CATALOGUE["calibration"].column_names
    assert frame["value"][0] == 0.5
    assert pd.isna(frame["objective"][0])


def test_frame_of_refuses_a_key_that_is_no_column():
    with pytest.raises(KeyError, match="table 'calibration' has no column valeu"):
        typed_frame(CATALOGUE["calibration"], [{"value": 0.5}, {"valeu": 0.5}])


def made_parts():
    frame = made_frame("scores", n=9)
    return [frame[:4], frame[4:4].reset_index(drop=True), frame[4:].reset_index(drop=True)]


def test_parts_are_row_groups_that_are_read_alone_and_a_table_together(tmp_path):
    parts = made_parts()
    write_parts(tmp_path / "t.parquet", CATALOGUE["scores"], parts, identity=IDENTITY)
    table = TableFile(tmp_path / "t.parquet", CATALOGUE["scores"], expect={"model": "ERM"})
    assert table.identity == read_identity(tmp_path / "t.parquet")
    for place in (2, 0, 1):
        pd.testing.assert_frame_equal(table.read_part(place), parts[place], check_dtype=False)
    whole = read_table(tmp_path / "t.parquet", CATALOGUE["scores"])
    pd.testing.assert_frame_equal(whole, pd.concat(parts, ignore_index=True), check_dtype=False)


def test_a_damaged_part_is_refused_by_its_file_and_the_others_are_read(tmp_path):
    path = tmp_path / "t.parquet"
    write_parts(path, CATALOGUE["scores"], made_parts(), identity=IDENTITY)
    raw = bytearray(path.read_bytes())
    first = pq.ParquetFile(path).metadata.row_group(0)
    raw[4 : 4 + first.total_byte_size // 2] = bytes(first.total_byte_size // 2)
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"t\.parquet: damaged"):
        TableFile(path, CATALOGUE["scores"]).read_part(0)
    assert len(TableFile(path, CATALOGUE["scores"]).read_part(2)) == 5


@pytest.mark.parametrize("table", ["class_scores", "model_summary"])
def test_a_typed_frame_is_what_is_read_back(tmp_path, table):
    rows = made_frame(table).to_dict("records")
    write_table(tmp_path / "t.parquet", CATALOGUE[table], typed_frame(CATALOGUE[table], rows), identity={})
    pd.testing.assert_frame_equal(
        typed_frame(CATALOGUE[table], rows), read_table(tmp_path / "t.parquet", CATALOGUE[table])
    )


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
