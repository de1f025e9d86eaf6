"""Step import_samples: certified radii of a file become the samples table of a measure."""

import numpy as np
import pytest

from fetch_dataset import fetch_dataset
from gfscore.core.errors import InputError
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table
from import_samples import import_samples

MODEL = {"dataset": "made", "threat": "L2", "model": "smoothed"}
LABELS = np.array([0, 1, 2, 0])
CLASSES = ["cat", "dog", "frog"]


def imported(folder, *rows, kind, largest_radius=4.0):
    (folder / "radii.tsv").write_text("\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *rows, ""]))
    np.save(folder / "labels.npy", LABELS)
    settings = {"source": "labels", "subset": None}
    dataset = folder / "made.json", folder / "made.parquet"
    fetch_dataset(settings, CLASSES, *dataset, dataset="made", path_to_images=folder / "labels.npy")
    how = {"model": MODEL, "measure": "m", "kind": kind, "largest_radius": largest_radius}
    import_samples(folder / "radii.tsv", *dataset, folder / "samples.parquet", **how)
    return read_table(folder / "samples.parquet", table_of(kind), expect={"dataset": "made", "measure": "m"})


def test_a_wrong_prediction_counts_nothing_and_an_abstention_has_no_radius(tmp_path):
    rows = ["0\t0\t0\t1.5\t1\t0:01", "1\t1\t2\t0.5\t0\t0:01", "3\t0\t-1\t0.0\t0\t0:01"]
    found = imported(tmp_path, *rows, kind="certified")
    assert found["sample_id"].tolist() == ["row-000000", "row-000001", "row-000003"]
    assert found["prediction"].tolist() == [0, 2, -1]
    assert found["value"].tolist() == [1.5, 0, 0]
    assert found["radius"].tolist() == [1.5, 0.5, 0]
    assert found["abstained"].tolist() == [False, False, True]
    assert imported(tmp_path, *rows, kind="clean")["value"].tolist() == [1, 0, 0]


def test_a_prediction_that_is_no_class_of_the_dataset_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"radii\.tsv: row 2: predict is outside -1\.\.2 \(3\)"):
        imported(tmp_path, "0\t0\t3\t1.5\t0\t0:01", kind="certified")


def test_the_largest_radius_is_that_of_the_measure_and_none_of_clean(tmp_path):
    row = "0\t0\t0\t3.0\t1\t0:01"
    with pytest.raises(InputError, match=r"radii\.tsv: row 2: radius is not within 0\.\.1 \(3\.0\)"):
        imported(tmp_path, row, kind="certified", largest_radius=1.0)
    assert imported(tmp_path, row, kind="clean", largest_radius=None)["value"].tolist() == [1]
