"""Logits at the ends of what numbers can be, from the user's file through the steps that score them."""

import ml_dtypes
import numpy as np
import pandas as pd
import pytest

from faults.extremes import EXTREME, LABELS, PLAIN, K
from fetch_dataset import fetch_dataset
from gfscore import audit_logits
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.class_scores import class_score_table
from gfscore.audit.scoring import LogitCheck
from gfscore.audit.settings import IntervalSettings, TemperatureGrid
from gfscore.audit.step_params import LogitChanges
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.measures import kind_of
from gfscore.statistics.margins import ACTIVATIONS
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from score_models import score_models

MODEL = {"dataset": "made", "threat": "none", "model": "A"}
MEASURES = {name: {"kind": "great", "activation": name} for name in ACTIVATIONS} | {"clean": {"kind": "clean"}}
"""A great variant of every activation, and what is right."""

UNPUBLISHED = {"published": None, "tolerance": 0.01, "samples": None, "on_failure": "stop"}
INTERVALS = {"method": "betting", "binary": "clopper_pearson", "confidence": 0.95, "seed": 0}
BEYOND = {"huge and tiny", "near overflow"}
LOST = {"subnormal", "one value among zeros", "large common part"}
UNKNOWN = {"bfloat16", "largest bfloat16"}
"""Types that numpy's own files hold as bytes without a meaning."""


class Steps:
    """Files of an audit of one model between the steps."""

    def __init__(self, folder, labels, *, classes):
        self.folder, self.names = folder, [f"class {index}" for index in range(classes)]
        self.given = {"manifest": folder / "dataset.json", "dataset": folder / "dataset.parquet"}
        made = {"selection": "models.json", "scores": "scores.parquet", "sweeps": "sweeps.parquet"}
        self.made = {name: folder / file for name, file in {**made, "sensitivity": "sensitivity.parquet"}.items()}
        np.save(folder / "labels.npy", labels)
        settings, images = {"source": "labels", "subset": None}, folder / "labels.npy"
        fetch_dataset(settings, self.names, *self.given.values(), dataset="made", path_to_images=images)

    def score(self, logits, *, file="given.npz"):
        """From an array to scores by way of a user's file; returns the clean accuracy."""
        saved = {".npy": np.save, ".npz": lambda path, array: np.savez(path, logits=array)}
        saved[file[-4:]](self.folder / file, logits)
        return self.score_file(file)

    def score_file(self, file, *, measures=MEASURES, calibrated=None, allow_probabilities=True):
        """The same from a file of that name."""
        asked = {"model": MODEL, "gate": UNPUBLISHED, "member": None, "allow_probabilities": allow_probabilities}
        self.subject = {"models": [MODEL], "measures": measures, "calibrated_measure": calibrated}
        self.subject |= {"supplied": {"none/A": "logits"}, "logits": {"none/A": self.folder / file}}
        how = {"temperatures": TemperatureGrid(), "cache": self.folder / "cache"}
        how |= {"changes": LogitChanges(shifts=[0.0], scales=[1.0], lam=0.5)}
        score_models(
            AuditFiles(**self.given),
            self.made,
            audit="a",
            subject=AuditSubject.parse(self.subject),
            checks=[LogitCheck.parse(asked)],
            **how,
        )
        return read_json(self.made["selection"])["clean_accuracy"]["none/A"]

    def class_scores(self):
        """Table class_scores of what was scored last."""
        inputs, shared = (
            AuditValues.from_params(self.subject, self.made | self.given),
            {"intervals": IntervalSettings(**INTERVALS), "label_error_rates": None},
        )
        return class_score_table(inputs.uncalibrated(), self.names, **shared)


@pytest.fixture
def steps(tmp_path):
    return Steps(tmp_path, LABELS, classes=K)


@pytest.mark.parametrize("name", sorted(EXTREME.keys() - BEYOND - LOST - UNKNOWN))
def test_the_steps_score_extreme_logits_as_the_library_does(steps, name):
    accuracy = steps.score(EXTREME[name])
    found = steps.class_scores().set_index(["measure", "class_index"])["value"]
    for activation in ACTIVATIONS:
        audit = audit_logits(EXTREME[name].astype(np.float32), LABELS, activation=activation, allow_probabilities=True)
        np.testing.assert_allclose(found[activation].to_numpy(), audit.classes["value"].to_numpy(), rtol=1e-12)
        assert accuracy == audit.metrics.loc["model", "accuracy"] == found["clean"].mean()


@pytest.mark.parametrize("name", sorted(BEYOND | LOST | UNKNOWN))
@pytest.mark.parametrize("file", ["given.npy", "given.npz"])
def test_what_float32_cannot_hold_is_refused_by_name_before_it_is_scored(steps, name, file):
    words = "beyond the range of float32" if name in BEYOND else "predictions would change"
    words = "give real numbers (bfloat16 as float32)" if name in UNKNOWN else words
    with pytest.raises(InputError) as refused:
        steps.score(EXTREME[name], file=file)
    assert words in str(refused.value) and file in str(refused.value)
    assert not [path for path in steps.made.values() if path.exists()]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_in_parquet_and_csv_is_scored_as_the_numbers_that_it_stores(steps, dtype):
    halves = PLAIN.astype(dtype)
    steps.score(halves.astype(np.float32))
    expected = steps.class_scores()
    frame = pd.DataFrame(halves.astype(np.float32), columns=[f"class {index}" for index in range(K)])
    frame.to_csv(steps.folder / "given.csv", index=False)
    # Parquet has a type for float16 alone.
    frame.astype(np.float16 if dtype is np.float16 else np.float32).to_parquet(steps.folder / "given.parquet")
    for file in ("given.csv", "given.parquet"):
        steps.score_file(file, allow_probabilities=False)
        assert steps.class_scores().equals(expected)


def test_one_sample_per_class_is_scored_with_wide_intervals(tmp_path):
    steps = Steps(tmp_path, LABELS[:K], classes=K)
    steps.score(PLAIN[:K])
    found = steps.class_scores()
    assert (found["n"] == 1).all() and found["variance"].isna().all()
    assert np.isfinite(found[["value", "low", "high"]].to_numpy()).all()
    assert (found["high"] - found["low"] > 0.4).all()


def test_five_hundred_samples_of_ten_thousand_classes_are_scored():
    n, k = 500, 10_000
    labels = np.random.default_rng(2).permutation(k)[:n]
    own = np.linspace(0.5, 2.5, n).astype(np.float32)
    logits = np.zeros((n, k), dtype=np.float32)
    # The next class has 1: a rival of the samples whose own logit is higher, and what the others are taken for.
    logits[np.arange(n), labels], logits[np.arange(n), (labels + 1) % k] = own, 1
    entry, right = MEASURES["sigmoid"], own > 1
    found = kind_of(entry).load()(logits, labels, settings=kind_of(entry).parse(entry))
    assert (found["prediction"] == np.where(right, labels, (labels + 1) % k)).all()
    assert (found["value"][~right] == 0).all()
    # sqrt(pi / 2) (s(own) - s(1)), s the logistic function
    expected = np.sqrt(np.pi / 2) * (1 / (1 + np.exp(-own[right].astype(float))) - 1 / (1 + np.exp(-1)))
    np.testing.assert_allclose(found["value"][right], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["constant", "huge in float32", "subnormal in float32", "float16"])
def test_the_sweep_over_temperatures_is_finite_or_refused_by_what_it_lacks(steps, name):
    np.savez(steps.folder / "given.npz", logits=EXTREME[name])
    try:
        steps.score_file("given.npz", calibrated="softmax")
    except InputError as error:
        assert "narrow the range" in str(error)
        assert not [path for path in steps.made.values() if path.exists()]
        return
    values = read_table(steps.made["sweeps"], CATALOGUE["sweeps"])["value"]
    assert np.isfinite(values).all() and (values >= 0).all()
