"""Logits at the ends of what numbers can be, from the user's file through the steps that score them."""

import ml_dtypes
import numpy as np
import pandas as pd
import pytest

from check_logits import check_logits
from faults.extremes import EXTREME, LABELS, PLAIN, K
from gfscore import audit_logits
from gfscore.audit.measured import AuditInputs
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.images.datasets import describe_images
from gfscore.statistics.margins import ACTIVATIONS
from gfscore.tables.parquet_tables import read_table, write_logits
from gfscore.workflow.catalogue import CATALOGUE
from import_logits import import_logits
from score_logits import score_logits
from summarise_classes import summarise_classes
from sweep_temperatures import sweep_temperatures

MODEL = {"dataset": "made", "threat": "none", "model": "A"}
UNPUBLISHED = {"published": None, "tolerance": 0.01, "samples": None, "on_failure": "stop"}
INTERVALS = {
    "method": "betting", "binary": "clopper_pearson", "confidence": 0.95, "seed": 0, "bootstrap_resamples": 99,
}  # fmt: skip
BEYOND = {"huge and tiny", "near overflow"}
LOST = {"subnormal", "one value among zeros", "large common part"}
UNKNOWN = {"bfloat16", "largest bfloat16"}
"""Types that numpy's own files hold as bytes without a meaning."""


class Steps:
    """Files of one model between the steps."""

    def __init__(self, folder, labels, *, classes):
        self.folder, self.manifest = folder, folder / "dataset.json"
        np.save(folder / "labels.npy", labels)
        names = [f"class {index}" for index in range(classes)]
        settings = {"source": "labels", "subset": None}
        write_json(self.manifest, describe_images(settings, folder / "labels.npy", dataset="made", classes=names))

    def make_logits(self, logits, *, file="given.npz"):
        """From the user's file to logits that passed their check."""
        saved = {".npy": np.save, ".npz": lambda path, array: np.savez(path, logits=array)}
        saved[file[-4:]](self.folder / file, logits)
        table = self.folder / "logits.parquet"
        import_logits(self.folder / file, self.manifest, table, model=MODEL, allow_probabilities=True)
        check = self.folder / "check.json"
        check_logits(table, self.manifest, check, model=MODEL, gate=UNPUBLISHED, allow_probabilities=True)
        return read_json(check)["clean_accuracy"]

    def class_scores(self):
        """Table class_scores with a great variant of every activation."""
        measures = {name: {"kind": "great", "activation": name} for name in ACTIVATIONS}
        measures["clean"] = {"kind": "clean"}
        samples = [self.folder / f"{name}.parquet" for name in measures]
        for (name, settings), path in zip(measures.items(), samples, strict=True):
            score_logits(self.folder / "logits.parquet", path, model=MODEL, measure=name, settings=settings)
        write_json(self.folder / "models.json", {"included": ["none/A"], "excluded": {}})
        inputs = AuditInputs([MODEL], measures, None, samples, [], None, self.folder / "models.json")
        table = self.folder / "class_scores.parquet"
        summarise_classes(inputs, self.manifest, table, audit="a", intervals=INTERVALS, label_error_rates=None)
        return read_table(table, CATALOGUE["class_scores"])


@pytest.fixture
def steps(tmp_path):
    return Steps(tmp_path, LABELS, classes=K)


@pytest.mark.parametrize("name", sorted(EXTREME.keys() - BEYOND - LOST - UNKNOWN))
def test_the_steps_score_extreme_logits_as_the_library_does(steps, name):
    accuracy = steps.make_logits(EXTREME[name])
    found = steps.class_scores().set_index(["measure", "class_index"])["value"]
    for activation in ACTIVATIONS:
        audit = audit_logits(EXTREME[name].astype(np.float32), LABELS, activation=activation, allow_probabilities=True)
        np.testing.assert_allclose(found[activation].to_numpy(), audit.classes["value"].to_numpy(), rtol=1e-12)
        assert accuracy == audit.summary["accuracy"] == found["clean"].mean()


@pytest.mark.parametrize("name", sorted(BEYOND | LOST | UNKNOWN))
@pytest.mark.parametrize("file", ["given.npy", "given.npz"])
def test_what_float32_cannot_hold_is_refused_by_name_before_it_is_scored(steps, name, file):
    words = "beyond those of float32" if name in BEYOND else "predictions would be others"
    words = "give real numbers (bfloat16 as float32)" if name in UNKNOWN else words
    with pytest.raises(InputError) as refused:
        steps.make_logits(EXTREME[name], file=file)
    assert words in str(refused.value) and file in str(refused.value)
    assert not (steps.folder / "logits.parquet").exists()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_in_parquet_and_csv_is_scored_as_the_numbers_that_it_stores(steps, dtype):
    halves = PLAIN.astype(dtype)
    steps.make_logits(halves.astype(np.float32))
    expected = steps.class_scores()
    frame = pd.DataFrame(halves.astype(np.float32), columns=[f"class {index}" for index in range(K)])
    frame.to_csv(steps.folder / "given.csv", index=False)
    # Parquet has a type for float16 alone.
    frame.astype(np.float16 if dtype is np.float16 else np.float32).to_parquet(steps.folder / "given.parquet")
    for file in ("given.csv", "given.parquet"):
        table = steps.folder / "logits.parquet"
        import_logits(steps.folder / file, steps.manifest, table, model=MODEL, allow_probabilities=False)
        assert steps.class_scores().equals(expected)


def test_one_sample_per_class_is_scored_with_wide_intervals(tmp_path):
    steps = Steps(tmp_path, LABELS[:K], classes=K)
    steps.make_logits(PLAIN[:K])
    found = steps.class_scores()
    assert (found["n"] == 1).all() and found["variance"].isna().all()
    assert np.isfinite(found[["value", "low", "high"]].to_numpy()).all()
    assert (found["high"] - found["low"] > 0.4).all()


def test_five_hundred_samples_of_ten_thousand_classes_are_scored(tmp_path):
    n, k = 500, 10_000
    labels = np.random.default_rng(2).permutation(k)[:n]
    own = np.linspace(0.5, 2.5, n).astype(np.float32)
    logits = np.zeros((n, k), dtype=np.float32)
    # The next class has 1: a rival of the samples whose own logit is higher, and what the others are taken for.
    logits[np.arange(n), labels], logits[np.arange(n), (labels + 1) % k] = own, 1
    names = [f"s{row}" for row in range(n)]
    write_logits(tmp_path / "logits.parquet", sample_id=names, label=labels, logits=logits, identity=MODEL)
    how = {"model": MODEL, "measure": "great", "settings": {"kind": "great", "activation": "sigmoid"}}
    score_logits(tmp_path / "logits.parquet", tmp_path / "samples.parquet", **how)
    found, right = read_table(tmp_path / "samples.parquet", CATALOGUE["samples"]), own > 1
    assert (found["prediction"] == np.where(right, labels, (labels + 1) % k)).all()
    assert (found["value"][~right] == 0).all()
    # sqrt(pi / 2) (s(own) - s(1)), s the logistic function
    expected = np.sqrt(np.pi / 2) * (1 / (1 + np.exp(-own[right].astype(float))) - 1 / (1 + np.exp(-1)))
    np.testing.assert_allclose(found["value"][right], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["constant", "huge in float32", "subnormal in float32", "float16"])
def test_the_sweep_over_temperatures_is_finite_or_refused_by_what_it_lacks(steps, name):
    steps.make_logits(EXTREME[name])
    table = steps.folder / "sweep.parquet"
    try:
        sweep_temperatures(
            steps.folder / "logits.parquet", steps.manifest, table, model=MODEL, activation="softmax", low=0.01, high=10
        )
    except InputError as error:
        assert "do not settle" in str(error)
        assert not table.exists()
        return
    values = read_table(table, CATALOGUE["sweep"])["value"]
    assert np.isfinite(values).all() and (values >= 0).all()
