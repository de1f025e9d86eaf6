"""Tables of text: every row as long as the header, names as they stand, no more text than the file can hold."""

import gzip

import pandas as pd
import pytest

from gfscore.tables import csv_files
from gfscore.tables.binary_files import MalformedError
from gfscore.tables.csv_files import MISSING, read_csv


def written(folder, text, name="a.csv"):
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2.5\n3,\n",
        "\ufeffx,y\r\n1,2\r\n\r\n3,4",
        '"x","y, z"\n"a ""b""","new\nline"\nc,d\n',
        ",x\n0,1\n1,NA\n",
        "\nx,y\n1,2\n  \n3,4\n",
        "x,y\n" + "\n".join(f"1.5,{text}" for text in MISSING),
    ],
)
def test_whole_tables_are_read_as_pandas_reads_them(tmp_path, name, text):
    path = written(tmp_path, text, name)
    pd.testing.assert_frame_equal(read_csv(path), pd.read_csv(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x,y\n9,1,2\n9,3,4\n", "row 2 has 3 fields, the header 2"),
        ("x,y\n1,2,\n", "row 2 has 3 fields, the header 2"),
        ("x,y\n1,2\n\n3\n", "row 3 has 1 fields, the header 2"),
        ('x,y\n1,2\n"a\nb"\n', "row 3 has 1 fields, the header 2"),
        ("x,y\n1,2\n9,3,4\n", "row 3 has 3 fields, the header 2$"),
        ("x,y,x\n1,2,3\n", "two columns 'x'"),
        (",".join("abc") + "," * 200_000 + "\n", "200003 columns, more than 100000"),
    ],
)
def test_rows_of_another_length_and_two_columns_of_one_name_are_refused(tmp_path, text, expected):
    with pytest.raises(ValueError, match=expected):
        read_csv(written(tmp_path, text))


R_WITH_SHORT_HEADER = '"x","y"\n"1",0.5,2\n"2",1,3\n'
R_WITH_SEMICOLONS = '"";"x";"y"\n"1";0,5;2\n"2";1;3\n'


@pytest.mark.parametrize(
    ("text", "separator", "expected", "remedy"),
    [
        (R_WITH_SHORT_HEADER, ",", "row 2 has 3 fields, the header 2, as in files with row names", "row.names = FALSE"),
        (R_WITH_SEMICOLONS, ",", "its cells are separated by semicolons, not commas", "write it with commas"),
        ("sep=;\nx;y\n1;2\n", ",", "separated by semicolons", "write it with commas"),
        ("label;sample_id\n1;a\n", ",", "separated by semicolons", "write it with commas"),
        ("x\ty\n1\t2\n", ",", "separated by tabs, not commas", "write it with commas"),
        ("x,y\n1,2\n", "\t", "separated by commas, not tabs", "write it with tabs"),
        ("x,y,x\n1,2,3\n", ",", "two columns 'x'", "rename one"),
    ],
)
def test_tables_in_forms_of_other_programs_are_refused_with_what_to_do(tmp_path, text, separator, expected, remedy):
    for name in ("a.csv", "a.csv.gz"):
        with pytest.raises(MalformedError, match=expected) as caught:
            read_csv(written(tmp_path, text, name), separator=separator)
        assert remedy in caught.value.remedy


def test_other_separators_may_stand_in_names_and_values(tmp_path):
    frame = read_csv(written(tmp_path, '"a;b",c\n1;2,3\n'))
    assert frame.to_dict("list") == {"a;b": ["1;2"], "c": [3]}


def test_names_are_text_whatever_they_look_like(tmp_path):
    path = written(tmp_path, "who,x\nNA,NA\n,1\n007,2\nnull,3\n")
    frame = read_csv(path, text="who")
    assert frame["who"].tolist() == ["NA", "", "007", "null"]
    assert frame["x"].isna().tolist() == [True, False, False, False]
    frame = read_csv(path, text="x", missing=("007",))
    assert frame["who"].isna().tolist() == [False, False, True, False] and frame["x"].tolist() == ["NA", "1", "2", "3"]
    assert read_csv(path, text="absent")["who"].isna().tolist() == [True, True, False, True]


def test_a_text_in_the_last_row_leaves_the_values_before_it_as_they_stand(tmp_path):
    constant = ",0" * 63
    rows = [f"1{constant}"] * 20_000
    header = ",".join(["x", *(f"y{number}" for number in range(63))])
    text = "\n".join([header, constant, *rows, f"unsure{constant}"])
    assert list(read_csv(written(tmp_path, text))["x"].dropna().unique()) == ["1", "unsure"]


@pytest.mark.parametrize("blank", ["", "  ", "\t", " \t "])
def test_a_blank_line_in_one_column_is_refused_with_its_number(tmp_path, blank):
    path = written(tmp_path, f'x\n"1\n\n"\n{blank}\n2\n')
    with pytest.raises(MalformedError, match="line 5 is blank"):
        read_csv(path)


def test_lines_of_tabs_are_rows_where_tabs_separate_cells(tmp_path):
    path = written(tmp_path, "x\ty\n1\t2\n\t\n3\t4\n")
    assert read_csv(path, separator="\t")["x"].isna().tolist() == [False, True, False]


def test_a_quoted_cell_longer_than_the_parser_takes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="row 2"):
        read_csv(written(tmp_path, 'x,y\n1,"' + "a" * 200_000 + '"\n'))


@pytest.mark.parametrize("text", ["x\n" + "0\n" * 50_000, "x" * 100_000])
def test_more_text_than_any_file_may_have_must_fit_into_it(tmp_path, monkeypatch, text):
    path = written(tmp_path, text, "a.csv.gz")
    assert len(text) > 100 * path.stat().st_size
    assert len(read_csv(path)) == text.count("0")
    monkeypatch.setattr(csv_files, "PLAIN_TEXT", 1000)
    with pytest.raises(ValueError, match="too many for the size of this file"):
        read_csv(path)
    assert len(read_csv(written(tmp_path, text))) == text.count("0")
