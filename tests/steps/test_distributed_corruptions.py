"""Corrupted images that a dataset brings are measured as those that are made here, and enter the same tables."""

import json

import numpy as np
import pandas as pd
import pytest

from fetch_dataset import fetch_dataset
from gfscore.audit.classwise.corruptions import ModelErrors, corruption_errors
from gfscore.audit.settings import IntervalSettings
from gfscore.core.files import write_json
from gfscore.measures import KINDS, measure_of
from gfscore.measures.job import MeasuringJob
from gfscore.measures.samples import table_of
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.tables.parquet_tables import read_identity, read_table
from helpers.real_audits import ARCHITECTURES, torch_entry
from helpers.steps import audit_inputs, models_named, write_copies
from measure_model import measure_model

CORRUPTIONS = ["shot_noise", "glass_blur", "fog", "jpeg_compression"]
SEVERITIES = [1, 3, 5]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
MODEL = {"dataset": "real", "threat": "none", "model": "cnn_a_adv"}
INTERVALS = IntervalSettings()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, real_data):
    """100 real images, and a real classifier."""
    folder = tmp_path_factory.mktemp("distributed")
    with np.load(real_data / "cifar10/test_lossless_1017.npz") as file:
        x, y = file["x"][:100], file["y"][:100]
    np.savez(folder / "clean.npz", x=x, y=y)
    write_copies(folder / "CIFAR-10-C", x, y, CORRUPTIONS)
    facts = json.loads((real_data / "cifar10/models/models.json").read_text())
    settings = torch_entry("cnn_a_adv", facts["cnn_a_adv"], real_data / "cifar10/models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(ARCHITECTURES))
        write_json(folder / "model.json", describe_checkpoint(settings, identity=MODEL))
        yield folder


def measured(folder, name, *, settings=None, corrupted=None, subset=None):
    """Samples table of one dataset and measure, and what its file says of itself."""
    images = {"source": "npz", "value_range": 255, "channels": "first", "subset": subset}
    if corrupted is not None:
        copies = {"corruptions": CORRUPTIONS, "severities": SEVERITIES, "preprocessing": {"method": "none"}}
        images["corrupted"] = copies | {"path": str(folder / "CIFAR-10-C")} | corrupted
    files = {"dataset": folder / f"{name}.json", "model": folder / "model.json", "checkpoint": None}
    path, dataset = folder / f"{name}-samples.parquet", {"dataset": name, "path_to_images": folder / "clean.npz"}
    fetch_dataset(images, CLASSES, files["dataset"], folder / f"{name}.parquet", **dataset)
    settings = KINDS["corruption"].parse({"kind": "corruption", **(settings or {})})
    measure_model(
        MeasuringJob(
            **files, output=path, progress=folder / f"{name}-progress",
            measure="corruption", settings=settings, batch_size=32, version="1",
        )
    )  # fmt: skip
    return read_table(path, table_of("corruption")), read_identity(path)


@pytest.fixture(scope="module")
def brought(folder):
    return measured(folder, "brought", corrupted={})


def test_equal_pixels_give_an_equal_table_whoever_made_them(folder, brought):
    made, identity = measured(folder, "made", settings={"corruptions": CORRUPTIONS, "severities": SEVERITIES})
    pd.testing.assert_frame_equal(brought[0], made, check_exact=True)
    assert len(made) == 100 * len(CORRUPTIONS) * len(SEVERITIES) and 0.2 < made["value"].mean() < 0.8
    assert brought[1]["dataset_digest"] == identity["dataset_digest"]
    assert len(brought[1]["corrupted_digest"]) == 64 and "corrupted_digest" not in identity


def test_a_part_of_the_dataset_and_of_the_measure_keep_their_copies(folder, brought):
    every = measured(folder, "half", corrupted={}, subset={"every": 2}, settings={"subset": {"every": 5}})[0]
    rows = brought[0].set_index(["corruption", "severity", "sample_id"])["prediction"]
    own = every.set_index(["corruption", "severity", "sample_id"])["prediction"]
    assert every["sample_id"].nunique() == 10
    assert (own == rows.loc[own.index]).all()


# ---- the table of errors, by hand ----


def samples_of(wrong):
    """Samples table of two images, one of each class: `wrong` holds (corruption, severity, images that are wrong)."""
    parts = []
    for corruption, severity, mistaken in wrong:
        label = np.array([0, 1])
        prediction = np.where(np.isin(label, mistaken), 1 - label, label)
        part = pd.DataFrame({"sample_id": ["a", "b"], "label": label, "prediction": prediction})
        value = (prediction == label).astype(float)
        parts.append(part.assign(value=value, clean_prediction=label, corruption=corruption, severity=severity))
    return pd.concat(parts, ignore_index=True)


HALF = samples_of([("fog", 1, []), ("fog", 5, [0]), ("snow", 1, [0, 1]), ("snow", 5, [1])])
BASE = samples_of([("fog", 1, [1]), ("fog", 5, [0, 1]), ("snow", 1, [0]), ("snow", 5, [0, 1])])


def errors_of(folder, baseline):
    models = models_named("model", "base")
    tables = {("model", "c"): HALF, ("base", "c"): BASE}
    inputs = audit_inputs(folder, models, {"c": {"kind": "corruption"}}, tables)
    how = {"intervals": INTERVALS, "label_error_rates": None, "baseline": baseline}
    frame = corruption_errors(inputs, 2, **how)
    return frame[frame["model"] == "model"].drop(columns=["dataset", "threat", "model", "measure"])


def test_mean_corruption_error_is_the_mean_of_ratios_beside_the_plain_mean(tmp_path):
    frame = errors_of(tmp_path, "none/base")
    rows = frame.astype({"corruption": object}).fillna({"corruption": "all", "severity": 0})
    rows = rows.set_index(["corruption", "severity"])
    # Fog: 1 of 4 copies wrong, against 3 of 4 of the baseline; snow: 3 of 4 against 3 of 4.
    assert rows.loc[("fog", 0), "error"] == 0.25 and rows.loc[("snow", 0), "error"] == 0.75
    assert rows.loc[("all", 0), "error"] == 0.5
    assert rows.loc[("fog", 0), "corruption_error"] == pytest.approx(1 / 3)
    assert rows.loc[("snow", 0), "corruption_error"] == 1
    assert rows.loc[("all", 0), "corruption_error"] == pytest.approx((1 / 3 + 1) / 2)
    # With weights 2/3 each, at most 4/3; of a corruption the bounds of its error over the baseline's error.
    low, high = (rows.loc[("all", 0), f"corruption_error_{end}"] for end in ("low", "high"))
    assert 0 <= low < (1 / 3 + 1) / 2 < high <= 4 / 3
    fog = rows.loc[("fog", 0)]
    assert [fog["corruption_error_low"], fog["corruption_error_high"]] == [fog["low"] / 0.75, fog["high"] / 0.75]
    single = rows[rows.index.get_level_values("severity") > 0]
    assert single["error"].tolist() == [0, 0.5, 1, 0.5] and single["corruption_error"].isna().all()
    # Two images, however many copies of each: one may be wrong with probability .025 and the other never.
    assert rows.loc[("fog", 5), "low"] == pytest.approx(0.025 / 2)
    assert (rows["n"] == 2).all() and (rows["high"] - rows["low"] > 0.8).all()


@pytest.mark.parametrize("baseline", [None, "none/left out"])
def test_without_a_baseline_there_is_the_plain_mean_alone(tmp_path, baseline):
    frame = errors_of(tmp_path, baseline)
    assert frame["corruption_error"].isna().all() and frame["error"].notna().all()


def test_a_baseline_without_errors_under_a_corruption_gives_no_mean(tmp_path):
    models = models_named("model", "base")
    perfect = samples_of([("fog", 1, []), ("snow", 1, [0])])
    tables = {("model", "c"): samples_of([("fog", 1, [0]), ("snow", 1, [0])]), ("base", "c"): perfect}
    inputs = audit_inputs(tmp_path, models, {"c": {"kind": "corruption"}}, tables)
    how = {"intervals": INTERVALS, "label_error_rates": None, "baseline": "none/base"}
    frame = corruption_errors(inputs, 2, **how)
    means = frame[frame["severity"].isna() & (frame["model"] == "model")].set_index("corruption")["corruption_error"]
    assert means["snow"] == 1 and means.drop("snow").isna().all()


def test_the_interval_of_the_mean_corruption_error_holds_in_repeated_samples():
    rng, measure = np.random.default_rng(5), measure_of({"kind": "corruption"})
    how = {"intervals": INTERVALS, "label_error_rates": None}
    base, truth, covered, width = {"fog": 0.4, "snow": 0.8}, {"fog": 0.3, "snow": 0.5}, 0, []
    for _ in range(200):
        hard = rng.uniform(-0.2, 0.2, size=60)
        parts = []
        for corruption, error in truth.items():
            for severity in (1, 5):
                # What makes an image hard does so under every corruption.
                value = (rng.uniform(size=60) >= error + hard).astype(float)
                part = pd.DataFrame({"sample_id": [f"{i:02d}" for i in range(60)], "label": np.arange(60) % 2})
                part = part.assign(value=value, predicted=0, correct=value > 0)
                parts.append(part.assign(corruption=corruption, severity=severity))
        model = ModelErrors(pd.concat(parts, ignore_index=True), measure, 2, **how)
        _, low, high = model.mean_corruption_error(base)
        covered += low <= (0.3 / 0.4 + 0.5 / 0.8) / 2 <= high
        width.append(high - low)
    assert covered >= 0.95 * 200
    # By copies the interval would be half as wide, by samples it is no wider than a range of 1.9 allows.
    assert 0.1 < np.mean(width) < 1
