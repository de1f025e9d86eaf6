"""Attributes of samples: every source, cutting, missing values, and the table that holds them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.audit.groups.grouping import Grouping
from gfscore.core.errors import InputError
from gfscore.images.attribute_values import Dataset, attributes_of, identity_of
from gfscore.images.attributes.digits import measurements
from gfscore.images.image_set import from_arrays
from gfscore.tables.parquet_tables import read_attributes, write_attributes
from gfscore.workflow.catalogue import CATALOGUE

IDS = ["a", "b", "c", "d"]


def dataset(ids=IDS, *, source="npz", path=None):
    manifest = {"dataset": "toy", "digest": "d", "settings": {"source": source}, "path": path and str(path)}
    return Dataset(manifest, SimpleNamespace(sample_id=np.array(ids)))


def table(tmp_path, columns, *, ids=IDS, name="people.csv"):
    path = tmp_path / name
    frame = pd.DataFrame({"who": ids, **columns})
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return {"source": "table", "path": str(path), "key": "who", "columns": list(columns), "missing": "drop"}


def read(settings, data=None):
    attributes = attributes_of(settings, data or dataset())
    values = {name: attributes.frame[name].tolist() for name in attributes.categories}
    return values, attributes.categories, attributes.missing


AGE = {"column": "age", "cut": [30, 60], "names": ["young", "middle", "old"]}


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_a_table_is_joined_by_name_and_cut_where_config_says(tmp_path, name):
    # Rows in another order, one sample too many; 30 belongs to the upper group.
    columns = {"age": [61, 30, 12.5, 59, 1], "sex": ["f", "m", "f", "m", "f"]}
    settings = table(tmp_path, columns, ids=["d", "a", "b", "c", "z"], name=name) | {"columns": [AGE, "sex"]}
    found, categories, missing = read(settings)
    assert found == {"age": ["middle", "young", "middle", "old"], "sex": ["m", "f", "m", "f"]}
    assert categories == {"age": ["young", "middle", "old"], "sex": ["f", "m"]}
    assert missing == {"age": 0, "sex": 0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_at_a_threshold_is_in_the_upper_group_in_either_precision(tmp_path, dtype):
    settings = table(tmp_path, {"tone": np.array([0.1, 0.3, 0.7, 0.69], dtype=dtype)}, name="people.parquet")
    cut = {"column": "tone", "cut": [0.1, 0.3, 0.7], "names": ["a", "b", "c", "d"]}
    assert read(settings | {"columns": [cut]})[0] == {"tone": ["b", "c", "d", "c"]}


def test_missing_values_are_counted_and_dropped_or_a_group(tmp_path):
    settings = table(tmp_path, {"age": [20, np.nan, 70], "sex": ["f", None, " "]}, ids=IDS[:3]) | {
        "columns": [AGE, "sex"]
    }
    found, categories, missing = read(settings)
    assert found == {"age": ["young", None, "old", None], "sex": ["f", None, None, None]}
    assert missing == {"age": 2, "sex": 3}
    found, categories, missing = read(settings | {"missing": "group"})
    assert found["sex"] == ["f", "missing", "missing", "missing"]
    assert categories["age"] == ["young", "middle", "old", "missing"]
    assert missing == {"age": 2, "sex": 3}


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_texts_that_look_like_nothing_are_values_and_empty_cells_are_missing(tmp_path, name):
    columns = {"region": ["NA", "EU", None, "NA"], "glasses": ["None", "null", "n/a", "nan"]}
    found, categories, missing = read(table(tmp_path, columns, name=name))
    assert found == {"region": ["NA", "EU", None, "NA"], "glasses": ["None", "null", "n/a", "nan"]}
    assert categories == {"region": ["EU", "NA"], "glasses": ["None", "n/a", "nan", "null"]}
    assert missing == {"region": 1, "glasses": 0}


def test_an_attribute_does_not_take_the_place_of_the_names_of_the_samples(tmp_path):
    with pytest.raises(InputError, match=r"sample_id.*rename it in the data"):
        read(table(tmp_path, {"sample_id": list("fmfm")}))


def test_a_sample_may_be_called_NA_and_numbers_with_an_empty_cell_stay_numbers(tmp_path):
    settings = table(tmp_path, {"age": [20, None, 70], "rings": [2, None, 10]}, ids=["NA", "b", "c"])
    found, categories, _ = read(settings | {"columns": [AGE, "rings"]}, dataset(["NA", "b", "c"]))
    assert found == {"age": ["young", None, "old"], "rings": ["2", None, "10"]}
    assert categories["rings"] == ["2", "10"]
    (tmp_path / "people.csv").write_text("who,age\nNA,20\nb,NA\n")
    with pytest.raises(InputError, match=r"column age cannot be cut, since not all values are numbers .*NA"):
        read(settings | {"columns": [AGE]}, dataset(["NA", "b"]))


def test_numbers_and_truth_values_are_groups_in_their_order(tmp_path):
    columns = {"type": [10, 9, 2, 9], "glasses": [True, False, False, True]}
    found, categories, _ = read(table(tmp_path, columns, name="people.parquet"))
    assert categories == {"type": ["2", "9", "10"], "glasses": ["no", "yes"]}
    assert found["glasses"] == ["yes", "no", "no", "yes"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"path": "nowhere.csv"}, "nowhere.csv: there is no such file"),
        ({"key": "name"}, "no column 'name', only who, age, sex"),
        ({"columns": ["agee"]}, "column 'agee' is unknown; did you mean 'age'?"),
        ({"columns": ["age"]}, "column age holds fractions"),
        ({"columns": [AGE | {"column": "sex"}]}, "column sex cannot be cut"),
    ],
)
def test_bad_tables_are_refused_by_name(tmp_path, change, expected):
    settings = table(tmp_path, {"age": [1.5, 2, 3, 4], "sex": ["f", "m", "f", "m"]})
    with pytest.raises(InputError, match=expected):
        read(settings | change)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1], [2], [1], [2]], "column kind holds lists or mappings"),
        ([b"f", b"m", b"f", b"m"], "column kind holds bytes"),
        ([1.0, np.inf, 1.0, 2.0], "column kind holds fractions"),
    ],
)
def test_values_that_are_no_categories_are_refused_with_the_file(tmp_path, values, expected):
    with pytest.raises(InputError, match=rf"people\.parquet\): {expected}"):
        read(table(tmp_path, {"kind": values}, name="people.parquet"))


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        (["m", "m ", "f", "f"], "'m' and 'm '"),
        (["Male", "f", "male", "f"], "'Male' and 'male'"),
        (["m", "m\u200b", "f", "f"], r"'m' and 'm\\u200b'"),
        (["e\u0301", "\u00e9", "f", "f"], r"'e\\u0301' and '\\xe9'"),
    ],
)
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_one_group_in_two_spellings_is_refused(tmp_path, name, values, pair):
    with pytest.raises(
        InputError, match=rf"column sex holds {pair}, which differ in blanks, capitals or spelling in Unicode alone"
    ):
        read(table(tmp_path, {"sex": values}, name=name))
    # Of samples that are not in the dataset nothing is asked.
    others = table(tmp_path, {"sex": ["m", "f", "f", "m", "M"]}, ids=[*IDS, "z"], name=name)
    assert read(others)[0] == {"sex": ["m", "f", "f", "m"]}


def test_a_table_whose_values_are_none_of_its_categories_is_refused(tmp_path):
    frame = pd.DataFrame({"sample_id": IDS, "sex": ["f", "m", None, "f"]})
    write_attributes(tmp_path / "a.parquet", frame, identity={"categories": {"sex": ["f", "n"]}})
    with pytest.raises(InputError, match=r"a\.parquet: sex: 'm' is none of its categories"):
        read_attributes(tmp_path / "a.parquet")
    write_attributes(tmp_path / "a.parquet", frame, identity={"categories": {"sax": ["f", "m"]}})
    with pytest.raises(InputError, match=r"a\.parquet: its columns are not those of its categories"):
        read_attributes(tmp_path / "a.parquet")


def test_attributes_stand_in_the_order_in_which_they_were_written(tmp_path):
    frame = pd.DataFrame({"sample_id": IDS, "slant": ["left", "right", None, "left"], "age": ["old"] * 4})
    categories = {"slant": ["left", "right"], "age": ["young", "old"]}
    write_attributes(tmp_path / "a.parquet", frame, identity={"categories": categories})
    found, known = read_attributes(tmp_path / "a.parquet")
    assert list(found.columns) == ["sample_id", "slant", "age"]
    assert known == categories


def test_samples_that_do_not_match_are_refused(tmp_path):
    with pytest.raises(InputError, match="such as 'x', the dataset's are such as 'a'"):
        read(table(tmp_path, {"sex": ["f"]}, ids=["x"]))
    with pytest.raises(InputError, match="sample 'a' has 2 rows"):
        read(table(tmp_path, {"sex": ["f", "m"]}, ids=["a", "a"]))
    many = [f"s{index}" for index in range(101)]
    with pytest.raises(InputError, match=r"101 values, more than 100 groups; .*join texts"):
        read(table(tmp_path, {"name": many}, ids=many), dataset(many))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"","sex"\n"a","f"\n', "no column 'who', only Unnamed: 0, sex; correct `key`, or write row names as a column"),
        ('"who","sex"\n"1","a","f"\n', "row 2 has 3 fields, the header 2.*R: row.names = FALSE"),
        ("who,sex\na,f\nb\n", "row 3 has 1 fields, the header 2"),
        ("who,sex\na,weiß\n".encode("latin-1"), "not UTF-8.*; save it as UTF-8$"),
    ],
)
def test_csv_that_is_no_table_is_refused_with_one_remedy(tmp_path, text, expected):
    settings = table(tmp_path, {"sex": ["f"] * 4})
    (tmp_path / "people.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=rf"people\.csv: .*{expected}") as caught:
        read(settings)
    assert "R: row.names" not in str(caught.value) or "write the file again" not in str(caught.value)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("empty", ["", None])
def test_a_row_that_names_no_sample_is_refused(tmp_path, name, empty):
    """A missing name would be read as the text None, which may be a sample's."""
    settings = table(tmp_path, {"sex": ["f", "m"]}, ids=["a", empty], name=name)
    with pytest.raises(InputError, match=rf"{name}: row 1 has no who; give one per row"):
        read(settings, dataset(["a", "None"]))


def test_two_columns_of_one_name_are_refused_with_the_file(tmp_path):
    columns = pa.table([IDS, ["f", "m"] * 2, ["m", "f"] * 2, [b""] * 4], names=["who", "sex", "sex", "image"])
    path = str(tmp_path / "people.parquet")
    pq.write_table(columns, path)
    with pytest.raises(InputError, match=r"people\.parquet: .*\(two columns 'sex'\); rename one$"):
        read({"source": "table", "path": path, "key": "who", "columns": ["sex"], "missing": "drop"})
    data = dataset([f"people/{row:06d}" for row in range(4)], source="parquet", path=path)
    with pytest.raises(InputError, match=r"people\.parquet: .*has 2 columns sex"):
        read({"source": "columns", "columns": ["sex"], "missing": "drop"}, data)


def test_columns_of_a_parquet_dataset_in_several_files(tmp_path):
    for name, values in (("p1", ["f", "m"]), ("p0", ["m", None])):
        pd.DataFrame({"image": [b"", b""], "sex": values}).to_parquet(tmp_path / f"{name}.parquet")
    ids = ["p0/000000", "p0/000001", "p1/000000", "p1/000001"]
    settings = {"source": "columns", "columns": ["sex"], "missing": "drop"}
    found, _, missing = read(settings, dataset(ids, source="parquet", path=tmp_path))
    assert found == {"sex": ["m", None, "f", "m"]}
    assert missing == {"sex": 1}
    # A subset of the dataset.
    assert read(settings, dataset(ids[2:], source="parquet", path=tmp_path))[0] == {"sex": ["f", "m"]}
    with pytest.raises(InputError, match="reads Parquet datasets; use `table`"):
        read(settings, dataset(ids))
    with pytest.raises(InputError, match="no column size"):
        read(settings | {"columns": ["size"]}, dataset(ids, source="parquet", path=tmp_path))


def square(size=9, hole=False):
    image = np.zeros((size, size))
    image[2:7, 3:6] = 1
    if hole:
        image[4, 4] = 0
    return image


def test_measurements_of_drawn_shapes():
    bar = np.zeros((9, 9))
    bar[2:7, 4] = 1
    leaning = np.zeros((9, 9))
    leaning[[2, 3, 4, 5, 6], [6, 5, 4, 3, 2]] = 1
    figure = np.zeros((9, 9))
    figure[1:8, 3:6] = 1
    figure[[2, 6], 4] = 0
    found = measurements(np.stack([square(), square(hole=True), bar, leaning, figure, leaning[:, ::-1]]))
    assert found["loops"].tolist() == [0, 1, 0, 0, 2, 0]
    assert found["stroke_mass"][:3] == pytest.approx([15 / 81, 14 / 81, 5 / 81])
    # The top leans to the right by 45 degrees, and mirrored to the left.
    assert found["slant"][[0, 2, 3, 5]] == pytest.approx([0, 0, 45, -45])
    # Standard deviations of 3 and of 5 cells in a row: sqrt(2/3) and sqrt(2).
    assert found["aspect_ratio"][[0, 2]] == pytest.approx([np.sqrt(1 / 3), 0])


def test_an_image_without_ink_has_no_measurement():
    assert all(np.isnan(values).all() for values in measurements(np.zeros((1, 8, 8))).values())


def images_of(pictures, name):
    images = from_arrays(
        pictures[:, None],
        np.zeros(len(pictures)),
        sample_id=[f"{name}{i}" for i in range(len(pictures))],
        preprocessing="",
    )
    return Dataset({"dataset": name, "digest": "d", "settings": {"source": "npz"}, "path": None}, images)


def test_quantiles_are_those_of_other_samples():
    rng = np.random.default_rng(0)
    dark, bright = rng.uniform(0, 0.2, (50, 8, 8)), rng.uniform(0.3, 1, (9, 8, 8))
    entry = {"column": "stroke_mass", "quantiles": [0.5], "names": ["thin", "bold"]}
    settings = {"source": "digits", "columns": [entry], "fixed_on": "other", "missing": "drop"}
    attributes = attributes_of(settings, images_of(bright, "audited"), images_of(dark, "other"))
    assert attributes.frame["stroke_mass"].tolist() == ["bold"] * 9
    # The group that no sample is in stays a group.
    assert attributes.categories == {"stroke_mass": ["thin", "bold"]}
    colour = from_arrays(np.zeros((2, 3, 8, 8)), np.zeros(2), sample_id=["a", "b"], preprocessing="")
    with pytest.raises(InputError, match="these have 3 channels"):
        attributes_of(settings, Dataset({"dataset": "toy"}, colour), images_of(dark, "other"))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
@pytest.mark.parametrize(
    ("values", "named"), [(["1", "2", "3", "9" * 400], "999"), ([np.inf, -np.inf, 1.0, 2.0], "inf is no finite number")]
)
def test_values_beyond_all_numbers_are_not_cut(tmp_path, name, values, named):
    settings = table(tmp_path, {"age": values}, name=name) | {"columns": [AGE]}
    with pytest.raises(InputError, match=rf"{name}\): column age cannot be cut.*{named}.* leave the cell empty$"):
        read(settings)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_dates_are_not_cut_as_the_integers_that_store_them(tmp_path, kind):
    settings = table(tmp_path, {"age": np.arange(4).astype(kind)}, name="people.parquet") | {"columns": [AGE]}
    with pytest.raises(
        InputError, match=r"people\.parquet\): column age .*dates or times \(.*; convert them to numbers"
    ):
        read(settings)


def test_a_column_without_values_has_no_quantiles():
    entry = {"column": "slant", "quantiles": [0.5], "names": ["left", "right"]}
    blank = images_of(np.zeros((4, 8, 8)), "blank")
    slant = {"source": "digits", "columns": [entry], "fixed_on": "blank", "missing": "drop"}
    with pytest.raises(InputError, match="attributes of blank: column slant has no value in any of 4 samples"):
        attributes_of(slant, images_of(np.ones((4, 8, 8)), "audited"), blank)


def test_the_table_keeps_categories_in_order_and_missing_values(tmp_path):
    settings = table(tmp_path, {"age": [20, np.nan, 70, 40]}) | {"columns": [AGE]}
    attributes = attributes_of(settings, dataset())
    path = tmp_path / "toy.parquet"
    write_attributes(path, attributes.frame, identity=identity_of(settings, dataset(), attributes))
    again, order = read_attributes(path, expect={"dataset": "toy", "dataset_digest": "d"})
    assert again["sample_id"].tolist() == IDS
    assert again["age"].tolist() == ["young", None, "old", "middle"]
    assert order == {"age": ["young", "middle", "old"]}
    with pytest.raises(InputError, match="its dataset is 'toy', but 'other' is expected"):
        read_attributes(path, expect={"dataset": "other"})
    with pytest.raises(InputError, match="its table is 'attributes'"):
        from gfscore.tables.parquet_tables import read_table

        read_table(path, CATALOGUE["class_scores"])
    grouping = Grouping.read(path, dataset="toy", attributes=["age"])
    assert grouping.group_indices("age", np.array(["d", "b", "a"])).tolist() == [1, -1, 0]
    assert grouping.balanced_subsample(IDS) is None
    with pytest.raises(InputError, match="sample 'zz' of the audit is not in"):
        grouping.group_indices("age", ["zz"])
    with pytest.raises(InputError, match="attribute 'aeg' is unknown; did you mean 'age'"):
        Grouping.read(path, dataset="toy", attributes=["aeg"])
