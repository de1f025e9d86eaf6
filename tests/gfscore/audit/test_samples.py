"""What a verdict rests on: samples that are missing, images that are repeated, parts of a dataset."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image, PngImagePlugin

from fetch_dataset import fetch_dataset
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.comparison import reason_against_tests
from gfscore.audit.judgement import verdict_on_audit
from gfscore.audit.samples import SampleList
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.core.errors import InputError
from gfscore.core.settings import Subset
from gfscore.measures import complete
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET
from helpers.steps import INTERVALS, audit_inputs, models_named, tabulated, write_dataset, write_manifest

NAMES = ["cat", "dog"]
RADII = {"radii": complete({"kind": "certified", "largest_radius": 1.0})}
ATTACKED = {"attacked": complete({"kind": "adversarial", "norm": "linf", "eps": 0.1})}


def values_of(labels, values, names=None):
    """Samples table of one model."""
    names = [f"s{row:03d}" for row in range(len(labels))] if names is None else names
    return pd.DataFrame({"sample_id": names, "label": labels, "prediction": labels, "value": values})


def inputs_of(folder, frame, measures, *, dataset):
    """AuditValues of one model with one measure, on a dataset of a data frame."""
    folder.mkdir(exist_ok=True)
    (measure,) = measures
    inputs = audit_inputs(folder, models_named("m"), measures, {("m", measure): frame})
    write_dataset(inputs.dataset, dataset)
    return inputs


def judged(inputs, folder, **rule):
    """The one rule of a verdict."""
    write_manifest(folder / "toy.json", NAMES)
    (measure,) = inputs.subject.measures
    rule = {"measure": measure, "statistic": "wcr", "confidence": 0.95, "on_inconclusive": "stop"} | rule
    rule |= {"looks": {"planned": 1, "this": 1}}
    how = {"intervals": INTERVALS, "label_error_rates": None, "fp_lambda": 0.5}
    verdict = verdict_on_audit(
        inputs, AuditFiles(manifest=folder / "toy.json"), rules=parsed_rules([rule]), **how
    ).as_json()
    return verdict["rules"][0] | {"sentence": verdict["sentence"], "about": verdict["models"]}


@pytest.fixture
def labels():
    return np.repeat([0, 1], 100)


def test_leaving_out_the_wrong_rows_turns_no_failure_into_a_pass(tmp_path, labels):
    values = np.where(np.arange(200) % 100 < 40, 0.0, 0.9)
    whole = values_of(labels, values)
    found = judged(inputs_of(tmp_path / "a", whole, RADII, dataset=whole), tmp_path / "a", at_least=0.7)
    assert found["verdict"] == "FAIL" and found["missing"] is None
    part = whole[whole["value"] > 0]
    found = judged(inputs_of(tmp_path / "b", part, RADII, dataset=whole), tmp_path / "b", at_least=0.7)
    assert found["verdict"] == "INCONCLUSIVE"
    (model,) = found["models"]
    assert model["samples"]["by_class"] == {"measured": [60, 60], "expected": [100, 100], "rows": [100, 100]}
    assert "120 of 200" in found["sentence"]
    assert found["about"]["none/m"]["measures"]["radii"]["samples"] == 120


def test_one_row_of_a_dataset_decides_nothing(tmp_path, labels):
    whole = values_of(labels, np.ones(200))
    one = whole[:1]
    for place, threshold in enumerate((0.01, 0.99)):
        folder = tmp_path / str(place)
        found = judged(inputs_of(folder, one, RADII, dataset=whole), folder, at_least=threshold)
        assert found["verdict"] == "INCONCLUSIVE"
        assert (found["models"][0]["low"], found["models"][0]["high"]) == (0, 1)


def test_class_values_count_missing_samples_as_the_worst(tmp_path, labels):
    whole = values_of(labels, np.full(200, 0.9))
    inputs = inputs_of(tmp_path, whole[50:], RADII, dataset=whole)
    rows = tabulated(inputs, NAMES)["class_scores"].set_index("class_name")
    assert rows["n"].tolist() == [100, 100] and rows["n_missing"].tolist() == [50, 0]
    assert rows["value"].tolist() == pytest.approx([0.45, 0.9])
    assert rows["high"]["cat"] > 0.95 and rows["accuracy"].tolist() == [1, 1]


@pytest.mark.parametrize("times", [2, 50])
def test_repeated_images_count_once(tmp_path, labels, times):
    rng = np.random.default_rng(0)
    once = values_of(labels, (rng.random(200) < 0.8).astype(float)).assign(
        pixel_digest=[f"d{row}" for row in range(200)]
    )
    again = pd.concat([once] * times).assign(sample_id=[f"r{row:05d}" for row in range(200 * times)])
    found = {}
    for name, frame in (("once", once), ("again", again)):
        inputs = inputs_of(tmp_path / name, frame, ATTACKED, dataset=frame)
        found[name] = judged(inputs, tmp_path / name, at_least=0.73)
        found[name] |= {"table": tabulated(inputs, NAMES)["class_scores"]}
    assert found["once"]["verdict"] == found["again"]["verdict"] == "INCONCLUSIVE"
    numbers = ["n", "value", "low", "high", "variance"]
    pd.testing.assert_frame_equal(found["once"]["table"][numbers], found["again"]["table"][numbers])
    assert found["again"]["table"]["n_rows"].tolist() == [100 * times] * 2
    assert found["once"]["repeated"] is None and f"{200 * times:,}" in found["again"]["repeated"]


def test_copies_of_the_right_images_in_other_encodings_change_no_verdict(tmp_path):
    """Eight files of each image that is right, with the same pixels, as somebody might add them to pass."""
    labels, right = np.repeat([0, 1], 30), np.arange(60) % 30 < 24
    rules = {}
    for name, copies in (("once", 1), ("again", 8)):
        for row in range(60):
            place = tmp_path / name / "images" / NAMES[labels[row]]
            place.mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(np.random.default_rng(row).integers(0, 256, (4, 4, 3), dtype=np.uint8))
            for copy in range(copies if right[row] else 1):
                about = PngImagePlugin.PngInfo()
                about.add_text("Comment", f"copy {copy}")
                image.save(place / f"{row:02d}-{copy}.png", pnginfo=about)
        folder = tmp_path / name
        settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": {"method": "none"}}
        fetched = folder / "fetched.json", folder / "fetched.parquet"
        fetch_dataset(settings, NAMES, *fetched, dataset="toy", path_to_images=folder / "images")
        table = read_table(fetched[1], DATASET)
        rows = [int(sample.split("/")[1][:2]) for sample in table["sample_id"]]
        values = values_of(labels[rows], right[rows].astype(float), names=table["sample_id"])
        inputs = inputs_of(folder, values, ATTACKED, dataset=table)
        rules[name] = judged(inputs, folder, at_least=0.7)
    assert len(table) == 60 + 7 * 48
    assert rules["once"]["verdict"] == rules["again"]["verdict"] == "INCONCLUSIVE"
    assert rules["once"]["models"][0]["low"] == rules["again"]["models"][0]["low"]


def test_of_repeated_images_the_row_that_stands_first_counts(labels):
    frame = pd.DataFrame({"sample_id": list("abcd"), "label": [0, 1, 0, 1], "pixel_digest": ["x", "y", "x", "z"]})
    listed = SampleList(frame, source="d.parquet")
    assert listed.counted.tolist() == [0, 1, 3]
    every_other = Subset(every=2)
    expected = listed.expected(every_other, where="m")
    assert expected.sample_id.tolist() == ["a"] and expected.rows.tolist() == [2]
    # Of a part that holds only the second of two equal images, its value is that of the first.
    rows = pd.DataFrame({"sample_id": ["c", "c", "d", "a"], "label": [0, 0, 1, 0], "value": [1.0, 2.0, 3.0, 4.0]})
    kept = listed.once(rows, source="s.parquet")
    assert kept["sample_id"].tolist() == ["a", "a", "d"] and kept["value"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(("name", "label"), [("other", 0), ("s000", 1)])
def test_samples_that_the_dataset_does_not_have_are_refused(tmp_path, labels, name, label):
    whole = values_of(labels, np.ones(200))
    foreign = whole.assign(sample_id=[name, *whole["sample_id"][1:]], label=[label, *labels[1:]])
    inputs = inputs_of(tmp_path, foreign, RADII, dataset=whole)
    with pytest.raises(InputError, match=rf"radii-m\.parquet: sample '{name}' is not in .*dataset\.parquet"):
        judged(inputs, tmp_path, at_least=0.5)


def test_a_declared_part_of_the_dataset_is_not_missing_and_no_other_row_counts(tmp_path, labels):
    whole = values_of(labels, np.where(np.arange(200) % 20 == 0, 0.5, 1.0))
    declared = {"radii": RADII["radii"] | {"subset": {"every": 20, "seed": 0}}}
    for name, frame in (("part", whole[::20]), ("whole", whole)):
        rows = tabulated(inputs_of(tmp_path / name, frame, declared, dataset=whole), NAMES)["class_scores"]
        assert rows["n"].tolist() == [5, 5] and rows["n_missing"].tolist() == [0, 0]
        assert rows["value"].tolist() == [0.5, 0.5]


def test_a_sample_that_lacks_some_of_its_disturbed_copies_is_missing(tmp_path):
    measures = {"corrupted": complete({"kind": "corruption"})}
    rows = [(f"s{row}", row % 2, severity, float(severity < 3)) for row in range(20) for severity in (1, 2, 3)]
    frame = pd.DataFrame(rows, columns=["sample_id", "label", "severity", "value"]).assign(prediction=0)
    whole = frame.drop_duplicates("sample_id")
    flattered = frame.drop(frame.index[(frame["severity"] == 3) & (frame["sample_id"] == "s4")])
    rows = tabulated(inputs_of(tmp_path, flattered, measures, dataset=whole), NAMES)["class_scores"]
    assert rows["n_missing"].tolist() == [1, 0]
    assert rows["value"].tolist() == pytest.approx([0.9 * 2 / 3, 2 / 3])


def test_predictions_beside_certified_radii_are_expected_of_the_samples_with_radii(tmp_path, labels):
    whole = values_of(labels, np.ones(200))
    declared = {"clean": {"kind": "clean"}, "radii": RADII["radii"] | {"subset": {"every": 20, "seed": 0}}}
    models = models_named("brought", "computed")
    frames = {("brought", name): whole[::20] for name in declared}
    frames |= {("computed", "clean"): whole, ("computed", "radii"): whole}
    inputs = audit_inputs(tmp_path, models, declared, frames, supplied={"none/brought": "samples"})
    write_dataset(inputs.dataset, whole)
    found = {(item.model.classifier, item.measure.name): item for item in inputs.uncalibrated()}
    assert [len(found["brought", name].low) for name in declared] == [10, 10]
    assert [len(found["computed", name].low) for name in declared] == [200, 10]
    assert not any(item.missing.any() for item in found.values())
    reasons = {name: reason_against_tests([found["brought", name], found["computed", name]]) for name in declared}
    assert "different samples" in reasons["clean"] and reasons["radii"] is None
