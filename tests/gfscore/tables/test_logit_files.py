"""Logits and labels of users: columns by their names, or refused with the column that has another."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.core.errors import InputError
from gfscore.core.labels import class_indices
from gfscore.tables import binary_files
from gfscore.tables.logit_files import read_labels_file, read_logits_file

CLASSES = ["cat", "dog", "frog"]
LOGITS = np.random.default_rng(0).normal(size=(6, 3)).round(2)
ROWS = LOGITS.tolist()
LABELS = np.arange(6) % 3


def table(folder, names, ending, **others):
    frame = pd.DataFrame(others)
    for place, name in enumerate(names):
        frame.insert(len(frame.columns), name, LOGITS[:, place])
    path = folder / f"a.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    return path


def npz(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def lists(folder, kind, rows=ROWS):
    pq.write_table(pa.table({"logits": pa.array(rows, type=kind)}), folder / "a.parquet")
    return folder / "a.parquet"


# ---- columns of classes ----


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_columns_are_taken_by_name_or_where_no_name_is_a_class_in_their_order(tmp_path, ending):
    for names, order in ((["z0", "z1", "z2"], [0, 1, 2]), (["frog", "cat", "dog"], [1, 2, 0])):
        path = table(tmp_path, names, ending, sample_id=list("abcdef"), label=LABELS)
        logits, labels, sample_id = read_logits_file(path, classes=CLASSES)
        np.testing.assert_array_equal(logits, LOGITS[:, order])
        assert labels.tolist() == LABELS.tolist() and sample_id.tolist() == list("abcdef")
    # Beside the columns of all classes others do no harm.
    logits, _, _ = read_logits_file(table(tmp_path, CLASSES, ending, row=range(6)), classes=CLASSES)
    np.testing.assert_array_equal(logits, LOGITS)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        (["frog", "cat", " dog"], " dog"),
        (["Frog", "Cat", "Dog"], "Frog"),
        (["z0", "cat", "z2"], "z0"),
        (["cat", "dog", "cat.1"], "cat.1"),
    ],
)
def test_a_name_that_is_nearly_a_class_is_refused(tmp_path, ending, names, foreign):
    with pytest.raises(InputError, match=rf"a\.{ending}: column '{foreign}' is none of the classes \(cat, dog, frog"):
        read_logits_file(table(tmp_path, names, ending), classes=CLASSES)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("names", [["z0", "z1"], ["cat", "dog"], ["z0", "z1", "z2"]], ids=["two", "classes", "three"])
@pytest.mark.parametrize("nameless", ["Unnamed: 0", "__index_level_0__"])
def test_row_names_are_refused_with_how_to_leave_them_out(tmp_path, ending, names, nameless):
    """As many columns as classes together with them, or beside them."""
    path = table(tmp_path, names, ending, **{nameless: range(6)})
    with pytest.raises(InputError, match=rf"a\.{ending}: column '{nameless}' has no name.*row\.names = FALSE, pandas"):
        read_logits_file(path, classes=CLASSES)


CELL = "cat,dog,frog\n1,2,3\n4,{},6\n"
"""A table with one cell to fill."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"","z0","z1","z2"\n"1",1,2,3\n', "column 'Unnamed: 0' has no name.*R: row.names = FALSE"),
        ('"cat","dog","frog"\n"1",1,2,3\n', "row 2 has 4 fields, the header 3.*R: row.names = FALSE"),
        ("cat,dog,frog\n1,2\n", "row 2 has 2 fields, the header 3"),
        ("cat,dog,frog\n", "holds a header and no rows"),
        ("chä,dog,frog\n1,2,3\n".encode("latin-1"), "; save it as UTF-8$"),
        (CELL.format(""), r"column 'dog': row 1 is empty or no number \(1 such rows\); write every logit as a number"),
        (CELL.format("NaN"), "column 'dog': row 1 is empty or no number"),
        (CELL.format('"0,5"'), "column 'dog': row 1 is '0,5', no number; write every logit as a number, with a point"),
        (CELL.format("high"), "column 'dog': row 1 is 'high', no number"),
        (CELL.format("1_000"), "column 'dog': row 1 is '1_000', no number"),
        (CELL.format("١"), "column 'dog': row 1 is '١', no number"),
        pytest.param(CELL.format("9" * 400), "column 'dog': row 1 is 9{80}, no number", id="400 digits"),
    ],
)
def test_csv_that_is_no_table_of_logits_is_refused_with_one_remedy(tmp_path, text, expected):
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=rf"a\.csv: .*{expected}") as caught:
        read_logits_file(tmp_path / "a.csv", classes=CLASSES)
    assert str(caught.value).count("write") <= 1


def test_row_names_beside_the_columns_of_all_classes_do_no_harm(tmp_path):
    (tmp_path / "a.csv").write_text('"","cat","dog","frog","label"\n"1",1,2,3,0\n')
    logits, labels, sample_id = read_logits_file(tmp_path / "a.csv", classes=CLASSES)
    assert (logits.tolist(), labels.tolist(), sample_id) == ([[1, 2, 3]], [0], None)


@pytest.mark.parametrize(
    ("names", "due"),
    [
        (["logit_2", "logit_1", "logit_0"], "'logit_2' where 'logit_0' is due"),
        (["p1", "p10", "p2"], "'p10' where 'p2' is due"),
        (["7", "9", "8"], "'9' where '8' is due"),
        (["class 0 logit", "Class 2 logit", "class 1 logit"], "'Class 2 logit' where 'class 1 logit' is due"),
    ],
)
def test_numbered_columns_out_of_order_are_refused(tmp_path, names, due):
    with pytest.raises(InputError, match=rf"a\.csv: columns numbered out of order, {due}"):
        read_logits_file(table(tmp_path, names, "csv"), classes=CLASSES)


@pytest.mark.parametrize("names", [["p0", "p1", "p2"], ["8", "9", "10"], ["a1", "b0", "c2"], ["x", "y1", "z"]])
def test_other_names_stand_in_label_order(tmp_path, names):
    logits, _, _ = read_logits_file(table(tmp_path, names, "parquet"), classes=CLASSES)
    np.testing.assert_array_equal(logits, LOGITS)


def test_arrays_of_npz_under_other_names_are_listed_with_the_name_that_is_needed(tmp_path):
    np.savez(tmp_path / "a.npz", LOGITS, y=LABELS)
    with pytest.raises(InputError, match=r"a\.npz: no array `logits`; it holds arr_0; write it with numpy\.savez"):
        read_logits_file(tmp_path / "a.npz", classes=CLASSES)


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        ([[1.0]] * 3, ["cat", "dog", "cat"], r"\(two columns 'cat'\); rename one$"),
        ([[1.0, 2.0], [None, 1.0], [1.0, 2.0]], CLASSES, "column 'dog': row 0 is empty or no number"),
        ([["1", "2"]] * 3, CLASSES, "column 'cat': holds numbers as str, such as '1'; store them as"),
    ],
)
def test_parquet_that_is_no_table_of_logits_is_refused(tmp_path, columns, names, expected):
    pq.write_table(pa.table(columns, names=names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"a\.parquet: .*{expected}"):
        read_logits_file(tmp_path / "a.parquet", classes=CLASSES)


@pytest.mark.parametrize("shapes", [[3, 4, 5], [(), (), ()], [(6, 1)] * 3])
def test_arrays_that_are_no_columns_are_refused(tmp_path, shapes):
    arrays = {name: np.ones(shape) for name, shape in zip(CLASSES, shapes, strict=True)}
    with pytest.raises(InputError, match=r"a\.npz: the arrays cat \(.*are not columns of logits of equal length"):
        read_logits_file(npz(tmp_path, **arrays), classes=CLASSES)


# ---- labels and identifiers ----


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_names_of_classes_are_labels(tmp_path, ending):
    names = np.array(CLASSES, dtype=object)[LABELS]
    path = table(tmp_path, ["z0", "z1", "z2"], ending, label=names)
    assert read_logits_file(path, classes=CLASSES)[1].tolist() == LABELS.tolist()
    assert read_labels_file(path, classes=CLASSES)[0].tolist() == LABELS.tolist()
    for dtype in (str, "S"):
        path = npz(tmp_path, labels=names.astype(dtype))
        assert read_labels_file(path, classes=CLASSES)[0].tolist() == LABELS.tolist()


def test_numbers_count_the_classes_even_where_classes_are_called_by_numbers(tmp_path):
    path = table(tmp_path, ["z0", "z1", "z2"], "csv", label=LABELS)
    assert read_labels_file(path, classes=["2", "1", "0"])[0].tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("dgo", r"row 2 is 'dgo', none of the 3 classes \(the nearest is 'dog'\); write each label as in `classes`"),
        ("Cat", r"row 2 is 'Cat', none of the 3 classes \(the nearest is 'cat'\)"),
        ("1", r"row 2 is '1', none of the 3 classes .* or all as whole numbers from 0"),
        (None, r"row 2 is nan, none of the 3 classes \(an empty cell, or"),
        ("12", r"row 2 is '12', none of the 3 classes \(which are cat, dog, frog\)"),
    ],
)
def test_a_name_that_is_no_class_is_named_with_the_nearest(tmp_path, wrong, message):
    names = np.array(CLASSES, dtype=object)[LABELS]
    names[2] = wrong
    path = table(tmp_path, ["z0", "z1", "z2"], "csv", label=names)
    for read in (read_logits_file, read_labels_file):
        with pytest.raises(InputError, match=rf"a\.csv: label: {message}"):
            read(path, classes=CLASSES)


@pytest.mark.parametrize(("classes", "labels"), [(["1", "2", "3"], ["3", "1", "2"]), (["1", "x"], ["x", "1"])])
def test_a_name_that_reads_as_the_number_of_another_class_is_refused(classes, labels):
    with pytest.raises(InputError, match=r"is '1': the name of class 0 and the index of another one; write all labels"):
        class_indices(np.array(labels, dtype=object), classes, "a.csv: label")


def test_names_that_read_as_their_own_number_or_as_none_are_names():
    assert class_indices(np.array(["1", "0"]), ["0", "1"], "a").tolist() == [1, 0]
    assert class_indices(np.array(["2024", "2023"]), ["2023", "2024"], "a").tolist() == [1, 0]


def test_names_without_a_list_of_classes_say_how_to_give_one(tmp_path):
    with pytest.raises(
        InputError, match=r"row 0 is .*the dataset lists no classes; list all names under its `classes`"
    ):
        read_labels_file(npz(tmp_path, labels=np.array(CLASSES)[LABELS]))


def test_two_columns_that_may_be_the_labels_must_be_equal_unless_one_is_a_class(tmp_path):
    path = table(tmp_path, CLASSES, "csv", y=(LABELS + 1) % 3, label=LABELS, labels=LABELS)
    for read in (lambda: read_logits_file(path, classes=CLASSES), lambda: read_labels_file(path)):
        with pytest.raises(InputError, match=r"a\.csv: labels and label and y differ, and each may be .*; keep one"):
            read()
    for path in (
        table(tmp_path, ["z0", "z1", "z2"], "csv", y=LABELS, label=LABELS),
        npz(tmp_path, logits=LOGITS, label=LABELS.astype(np.int8), y=LABELS.astype(float)),
    ):
        assert read_logits_file(path, classes=CLASSES)[1].tolist() == LABELS.tolist()
        assert read_labels_file(path)[0].tolist() == LABELS.tolist()
    logits, labels, _ = read_logits_file(table(tmp_path, "xyz", "csv", label=LABELS), classes=list("xyz"))
    np.testing.assert_array_equal(logits, LOGITS)
    assert labels.tolist() == LABELS.tolist()


def test_identifiers_that_look_like_nothing_are_identifiers(tmp_path):
    names = ["NA", " ", "null", "nan", "007", "1.0"]
    for ending in ("csv", "parquet"):
        path = table(tmp_path, CLASSES, ending, sample_id=names, label=LABELS)
        assert read_logits_file(path, classes=CLASSES)[2].tolist() == names
        assert read_labels_file(path)[1].tolist() == names


def test_identifiers_may_be_bytes_in_utf_8(tmp_path):
    names = np.array([name.encode() for name in "abcdeé"])
    assert read_labels_file(npz(tmp_path, labels=LABELS, sample_id=names))[1].tolist() == list("abcdeé")
    with pytest.raises(InputError, match=r"a\.npz: a sample_id is not UTF-8"):
        read_labels_file(npz(tmp_path, labels=LABELS, sample_id=np.array([b"\xe9"] * 6)))
    pq.write_table(pa.table({"label": LABELS, "sample_id": [b"\xff"] * 6}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: a sample_id is not UTF-8"):
        read_labels_file(tmp_path / "a.parquet")


@pytest.mark.parametrize("names", [np.array("a"), np.array([["a"]] * 6), np.array(list("abc")), np.arange(8)])
def test_identifiers_of_another_shape_are_refused(tmp_path, names):
    for arrays in ({"labels": LABELS}, {"logits": LOGITS}):
        read = read_labels_file if "labels" in arrays else lambda path: read_logits_file(path, classes=CLASSES)
        with pytest.raises(InputError, match=r"a\.npz: sample_id has shape .*; give one per row"):
            read(npz(tmp_path, **arrays, sample_id=names))


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
@pytest.mark.parametrize("names", [["a", None], ["a", ""], [b"a", b""], [1, None]], ids=str)
def test_a_row_without_an_identifier_is_refused(tmp_path, ending, names):
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"label": [0, 1], "sample_id": names}), path)
    elif ending == "npz":
        np.savez(path, label=[0, 1], sample_id={"a": ["a", ""], b"a": [b"a", b""], 1: [1, np.nan]}[names[0]])
    else:
        path.write_text(f"label,sample_id\n0,{'1' if names[0] == 1 else 'a'}\n1,\n")
    with pytest.raises(InputError, match=rf"a\.{ending}: row 1 has no sample_id; give one per row"):
        read_labels_file(path)


@pytest.mark.parametrize(("saved", "named"), [("npz", "npy"), ("npy", "npz")])
def test_an_archive_and_an_array_are_told_by_their_content(tmp_path, saved, named):
    path = tmp_path / f"a.{saved}"
    if saved == "npz":
        np.savez(path, logits=LOGITS)
    else:
        np.save(path, LOGITS)
    renamed = path.rename(tmp_path / f"a.{named}")
    with pytest.raises(InputError, match=rf"a\.{named}: not readable as .*; rename it to end in \.{saved}"):
        read_logits_file(renamed, classes=CLASSES)


def test_lists_without_rows_are_refused(tmp_path):
    table = pa.table({"logits": pa.array([], pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"the column logits has no rows\); write the file again"):
        read_logits_file(tmp_path / "a.parquet", classes=CLASSES)


@pytest.mark.parametrize("labels", [np.array(5), np.zeros((4, 1, 2))])
def test_labels_that_are_no_column_are_refused(tmp_path, labels):
    np.save(tmp_path / "l.npy", labels)
    with pytest.raises(InputError, match=r"l\.npy: labels: shape .*; expected \(samples,\)"):
        read_labels_file(tmp_path / "l.npy")


# ---- lists ----


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 3)])
def test_lists_of_every_kind_are_logits(tmp_path, kind):
    logits, _, _ = read_logits_file(lists(tmp_path, kind), classes=CLASSES)
    np.testing.assert_array_equal(logits, LOGITS)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.uint32(), pa.bool_()])
def test_values_of_lists_are_those_of_their_rows(tmp_path, kind):
    rows = pa.array([[0, 1, 1], [1, 0, 0]], type=pa.list_(pa.int8())).cast(pa.list_(kind)).to_pylist()
    logits, _, _ = read_logits_file(lists(tmp_path, pa.list_(kind), rows), classes=CLASSES)
    assert logits.tolist() == rows and logits.dtype == np.array(rows).dtype


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [1.0]], [[1.0], None], []])
def test_lists_that_are_missing_or_differ_in_length_are_refused(tmp_path, rows):
    with pytest.raises(InputError, match=r"a\.parquet: not readable as .parquet"):
        read_logits_file(lists(tmp_path, pa.list_(pa.float64()), rows), classes=CLASSES)


def test_lists_may_hold_what_their_file_can(tmp_path, monkeypatch):
    path = lists(tmp_path, pa.list_(pa.float64()), [[0.0] * 1000] * 1000)
    assert read_logits_file(path, classes=["c"] * 1000)[0].shape == (1000, 1000)
    monkeypatch.setattr(binary_files, "PLAIN_VALUES", 10_000)
    with pytest.raises(InputError, match=r"a\.parquet: .*its lists hold more values than .*use_dict"):
        read_logits_file(path, classes=["c"] * 1000)


def test_a_blank_line_between_labels_is_refused_and_at_the_end_is_none(tmp_path):
    (tmp_path / "a.csv").write_text("label\n0\n \n1\n")
    with pytest.raises(InputError, match=r"a\.csv: .*line 3 is blank"):
        read_labels_file(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("label\n0\n1\n\n\n")
    assert read_labels_file(tmp_path / "a.csv")[0].tolist() == [0, 1]


@pytest.mark.parametrize("rows", [["NA", "none", "null"], ["0", "1", "2"]])
def test_a_class_may_be_called_as_missing_values_are(tmp_path, rows):
    (tmp_path / "a.csv").write_text("\n".join(["label", *rows]))
    labels, _, _ = read_labels_file(tmp_path / "a.csv", classes=["NA", "none", "null"])
    assert labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_one_file_may_hold_the_logits_of_several_models(tmp_path, ending):
    first, second = (np.random.default_rng(seed).normal(size=(len(LABELS), 3)) for seed in (0, 1))
    path = tmp_path / f"many.{ending}"
    if ending == "npz":
        np.savez(path, first=first, second=second, labels=LABELS)
    else:
        pd.DataFrame({"first": first.tolist(), "second": second.tolist(), "label": LABELS}).to_parquet(path)
    for member, expected in (("first", first), ("second", second)):
        logits, labels, _ = read_logits_file(path, classes=CLASSES, member=member)
        np.testing.assert_array_equal(logits, expected)
        assert labels.tolist() == list(LABELS)
    with pytest.raises(InputError, match=rf"many\.{ending}: array or column 'secnd' is unknown.*'second'"):
        read_logits_file(path, classes=CLASSES, member="secnd")


@pytest.mark.parametrize("number_type", [np.uint8, np.float32, bool])
def test_labels_may_be_one_hot_or_a_column(tmp_path, number_type):
    labels = np.array([2, 0, 1, 2])
    logits = np.zeros((4, 3))
    np.savez(tmp_path / "both.npz", logits=logits, labels=np.eye(3)[labels].astype(number_type))
    np.save(tmp_path / "labels.npy", labels[:, np.newaxis].astype(np.uint8))
    _, found, _ = read_logits_file(tmp_path / "both.npz", classes=["0", "1", "2"])
    assert found.tolist() == labels.tolist()
    assert read_labels_file(tmp_path / "labels.npy")[0].tolist() == labels.tolist()
    np.savez(tmp_path / "both.npz", logits=logits, labels=np.full((4, 3), 1 / 3))
    with pytest.raises(InputError, match=r"both\.npz: labels: shape \(4, 3\), and row 0 is not a single 1 among zeros"):
        read_logits_file(tmp_path / "both.npz", classes=["0", "1", "2"])
