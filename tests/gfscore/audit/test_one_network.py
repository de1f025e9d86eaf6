"""Measures of one model that were computed with different networks are refused."""

import re

import numpy as np
import pandas as pd
import pytest

from gfscore.core.errors import InputError
from helpers.steps import audit_inputs, models_named

N, CLASSES = 100, 5
LOGITS = "results/logits/toy/Linf/m.parquet"


class Samples:
    """Tables of an attacked and some other measures of one model, in a folder."""

    def __init__(self, folder):
        self.folder, self.measures, self.tables, self.about = folder, {}, {}, {}
        self.clean = np.random.default_rng(0).integers(0, CLASSES, N)

    def add(self, name, kind, *, prediction=None, clean_prediction=None, rows=None, dtype="float32", value=0.0):
        rows = np.arange(N) if rows is None else np.asarray(rows)
        predictions = {"prediction": self.clean if prediction is None else prediction}
        predictions["clean_prediction"] = clean_prediction
        frame = pd.DataFrame({key: value if value is None else value[rows] for key, value in predictions.items()})
        frame = frame.assign(sample_id=[f"s{row}" for row in rows], label=0, value=value, censored=False)
        self.measures[name] = {"kind": kind, **({"largest_radius": 1.0} if kind == "certified" else {})}
        self.tables["m", name], self.about[name] = frame, {"dtype": dtype}

    def measured(self):
        models = models_named("m", threat="Linf")
        inputs = audit_inputs(self.folder, models, self.measures, self.tables, about=self.about)
        return [item.measure.name for item in inputs.uncalibrated()]

    def path(self, name):
        return str(self.folder / f"{name}-m.parquet")


@pytest.fixture
def samples(tmp_path):
    return Samples(tmp_path)


def changed(predictions, count):
    """The same with other classes at the first `count` samples."""
    return np.where(np.arange(len(predictions)) < count, (predictions + 1) % CLASSES, predictions)


def test_measures_of_two_networks_are_refused_with_both_files_and_the_remedy(samples):
    samples.add("attacked", "adversarial", clean_prediction=changed(samples.clean, 91))
    samples.add("clean", "clean")
    with pytest.raises(InputError) as refused:
        samples.measured()
    attacked, words = samples.path("attacked"), str(refused.value)
    assert words.startswith("Linf/m: clean and attacked are not of one network: for 91 of 100 undisturbed samples ")
    assert f"the predictions in {LOGITS} and {attacked} differ" in words
    assert words.endswith(f'by adding ARGS="-R {LOGITS} {attacked}" to make audit')


def test_what_rounding_changes_is_no_other_network(samples):
    samples.add("clean", "clean")
    samples.add("attacked", "adversarial", clean_prediction=changed(samples.clean, 2))
    assert samples.measured() == ["clean", "attacked"]
    samples.add("few", "minimal", clean_prediction=changed(samples.clean, 2), rows=range(10))
    samples.add("more", "minimal", clean_prediction=changed(samples.clean, 3))
    with pytest.raises(InputError, match="clean and more are not of one network: for 3 of 100"):
        samples.measured()


@pytest.mark.parametrize(("count", "refused"), [(6, False), (7, True)])
def test_bfloat16_changes_more(samples, count, refused):
    samples.add("great", "great", dtype="bfloat16")
    samples.add("attacked", "adversarial", clean_prediction=changed(samples.clean, count))
    if refused:
        with pytest.raises(InputError, match=f"great and attacked are not of one network: for {count} of 100"):
            samples.measured()
    else:
        assert samples.measured() == ["great", "attacked"]


def test_without_a_measure_of_logits_the_others_are_held_against_each_other(samples):
    samples.add("distances", "minimal", clean_prediction=samples.clean)
    samples.add("attacked", "adversarial", clean_prediction=changed(samples.clean, 91))
    both = " ".join(map(samples.path, ("distances", "attacked")))
    with pytest.raises(InputError, match=re.escape(f'adding ARGS="-R {both}" to')):
        samples.measured()


def test_only_the_networks_own_predictions_on_shared_samples_are_compared(samples):
    other = changed(samples.clean, N)
    samples.add("clean", "clean", rows=range(50))
    # Smoothed: its own predictions may be others. Imported: what the network alone predicts is not known.
    samples.add("smoothed", "certified", prediction=other, clean_prediction=samples.clean)
    samples.add("imported", "certified", prediction=other)
    samples.add("elsewhere", "adversarial", clean_prediction=other, rows=range(50, N))
    twice = np.repeat(np.arange(N), 2)
    samples.add("corrupted", "corruption", prediction=other, clean_prediction=samples.clean, rows=twice)
    samples.add("targeted", "targeted", prediction=other, clean_prediction=samples.clean, rows=twice)
    assert samples.measured() == list(samples.measures)


def test_a_value_outside_the_range_of_its_measure_is_named_with_its_file(samples):
    samples.add("attacked", "adversarial", value=1.5)
    with pytest.raises(InputError) as refused:
        samples.measured()
    start = f"{samples.path('attacked')}: value 1.5 of the sample 's0' lies outside the range 0 to 1 of attacked"
    assert str(refused.value).startswith(start) and "Linf/m" in str(refused.value)
