"""Certified radii of others: columns under their names, predictions that are classes, abstentions without a radius."""

import gzip

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.tables.radius_files import ABSTAINED, read_certified_radii

LABELS = np.arange(6) % 3
HEADER = "idx\tlabel\tpredict\tradius\tcorrect\ttime"
ROW = "0\t0\t0\t1.5\t1\t0:00:01"


def read(folder, *rows, header=HEADER, name="radii.tsv"):
    content = "\n".join([header, *rows, ""]).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read_certified_radii(folder / name, labels=LABELS, classes=3, largest_radius=4.0)


@pytest.mark.parametrize("name", ["radii.tsv", "radii.tsv.gz"])
def test_radii_predictions_and_abstentions_are_read(tmp_path, name):
    abstentions = ["1\t1\t-1\t0.0\t0\t0:01", "5\t2\t-1\tnan\t0\t0:01", "4\t1\t-1\t\t0\t0:01"]
    rows, prediction, radius = read(tmp_path, ROW, "2\t2\t1\t0.25\t0\t0:01", *abstentions, name=name)
    assert rows.tolist() == [0, 2, 1, 5, 4]
    assert prediction.tolist() == [0, 1, *[ABSTAINED] * 3]
    assert radius.tolist() == [1.5, 0.25, 0, 0, 0]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1\t1\t57\t1.0\t0\t0:01", r"row 3: predict is outside -1\.\.2 \(57\)"),
        ("1\t1\t3\t1.0\t0\t0:01", r"row 3: predict is outside -1\.\.2 \(3\)"),
        ("1\t1\t-5\t1.0\t0\t0:01", r"row 3: predict is outside -1\.\.2 \(-5\)"),
        ("1\t1\t-1\t1.0\t0\t0:01", r"row 3: radius of an abstention is not 0 \(1\.0\)"),
        ("1\t1\t2\tnan\t0\t0:01", r"row 3: radius is not within 0\.\.4 \(nan\)"),
        ("1\t1\t2\t1.0\t7\t0:01", r"row 3: correct is neither 0 nor 1 \(7\)"),
        ("1\t1\t2\t1.0\t1\t0:01", "row 3: correct disagrees with predict and label"),
        ("1\t1\t1\t1.0\t1", "row 3 has 5 fields, the header 6"),
        ("9\t1\t1\t1\t1.0\t1\t0:01", "row 3 has 7 fields, the header 6"),
    ],
)
def test_what_no_smoothed_classifier_tells_is_refused_by_row(tmp_path, row, expected):
    with pytest.raises(InputError, match=rf"radii\.tsv: .*{expected}"):
        read(tmp_path, ROW, row)


def test_blank_lines_are_no_rows(tmp_path):
    with pytest.raises(InputError, match=r"row 3: predict is outside -1\.\.2 \(57\); 1 such rows"):
        read(tmp_path, ROW, "", "1\t1\t57\t1.0\t0\t0:01")


def test_rows_that_are_longer_than_the_header_do_not_shift_the_columns(tmp_path):
    # Read as a name of the row, the idx 5 would leave 1, 1, 0, 0 and 1, which are possible as well.
    with pytest.raises(InputError, match="row 2 has 6 fields, the header 5"):
        read(tmp_path, "5\t1\t1\t0\t0\t1", header=HEADER.removesuffix("\ttime"))


def test_commas_for_tabs_are_named(tmp_path):
    with pytest.raises(InputError, match="separated by commas"):
        read(tmp_path, ROW.replace("\t", ","), header=HEADER.replace("\t", ","))


def test_a_header_alone_is_refused(tmp_path):
    with pytest.raises(InputError, match="a header and no samples"):
        read(tmp_path)
