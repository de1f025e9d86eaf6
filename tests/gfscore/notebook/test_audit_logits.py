import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gfscore
from gfscore import Audit, InputError, audit_logits
from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.statistics import SCALE
from gfscore.statistics.margins import ACTIVATIONS
from helpers import definitions
from helpers.samples import logits_and_labels

PACKAGE_FOLDER = str(Path(gfscore.__file__).parents[1])


def summary_of(audit):
    """Metrics of the only model."""
    (row,) = audit.metrics.to_dict("records")
    return row


def classes_of(audit):
    """Names of the classes of the only model."""
    return audit.classes.index.get_level_values("class").tolist()


def test_the_public_contract():
    logits, labels = logits_and_labels(0)
    audit = audit_logits(logits, labels)
    assert isinstance(audit, Audit)
    assert list(audit.classes.columns) == ["n", "value", "low", "high", "accuracy"]
    assert audit.classes.index.names == ["model", "class"]
    assert set(audit.metrics.columns) == {
        *METRICS,
        *(f"{metric.name}_{end}" for metric in BOUNDED for end in ("low", "high")),
        "wcr_class",
        "wcr_tied",
        "worst_class_set",
        "accuracy",
    }
    assert audit.metrics.index.tolist() == ["model"]
    assert audit.comparison.empty and audit.class_comparison.empty and audit.ranks.empty


def test_the_signature_of_the_public_contract():
    parameters = inspect.signature(audit_logits).parameters
    defaults = {
        name: parameter.default for name, parameter in parameters.items() if parameter.default is not parameter.empty
    }
    assert list(parameters)[:2] == ["logits", "labels"]
    assert {
        "class_names": None,
        "activation": "softmax",
        "temperature": 1.0,
        "lam": 0.5,
        "alpha": 0.05,
    }.items() <= defaults.items()
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in defaults)


def test_hand_computed_example():
    # Softmax margins / B of ln w: class a: .3, .5, .1; class b: .2 and a tie at the top; class c: .1, .1.
    weights = [(1, 4, 5), (6, 3, 1), (3, 5, 2), (7, 2, 1), (4, 1, 5), (1, 1, 0.5), (4, 3, 3)]
    audit = audit_logits(np.log(weights), [2, 0, 1, 0, 2, 1, 0], class_names=["a", "b", "c"], alpha=0.1)
    assert classes_of(audit) == ["a", "b", "c"]
    assert audit.classes["n"].tolist() == [3, 2, 2]
    np.testing.assert_allclose(audit.classes["value"] / SCALE, [0.3, 0.1, 0.1])
    np.testing.assert_allclose(audit.classes["accuracy"], [1, 0.5, 1])
    # A bet loses at most 3/4 and level .1 / 6 asks for 60 times the stake, which two or three such values cannot give:
    # the wealth against m from below is at most (1 + .75 (.5 - m) / m) (1 + .75 (.3 - m) / m) (1 + .75 (.1 - m) / m).
    assert (audit.classes["low"] / SCALE < 0.08).all()
    assert (audit.classes["high"] / SCALE > 0.85).all()
    expected = {"value": 1.3 / 7, "class_mean": 0.5 / 3, "rdi": 0.2, "wcr": 0.1, "fp": 0.2 / 3}
    for name, value in expected.items():
        assert summary_of(audit)[name] / SCALE == pytest.approx(value)
    assert summary_of(audit)["nrgc"] == pytest.approx(0.8 / 3)
    assert summary_of(audit)["accuracy"] == pytest.approx(6 / 7)
    assert summary_of(audit)["wcr_class"] == "b"
    assert summary_of(audit)["wcr_tied"] == ["b", "c"]


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("temperature", [0.5, 2.7])
def test_agrees_with_the_plain_implementation(activation, temperature):
    logits, labels = logits_and_labels(1, n=900, k=4)
    audit = audit_logits(logits, labels, activation=activation, temperature=temperature, lam=0.8, alpha=0.2)
    values = definitions.scores(logits, labels, activation, temperature)
    means = definitions.class_means(values, labels, 4)
    np.testing.assert_allclose(audit.classes["value"], means, atol=1e-13)
    assert summary_of(audit)["value"] == pytest.approx(definitions.mean(values))
    assert summary_of(audit)["class_mean"] == pytest.approx(definitions.mean(means))
    assert summary_of(audit)["rdi"] == pytest.approx(definitions.rdi(means))
    assert summary_of(audit)["nrgc"] == pytest.approx(definitions.nrgc(means))
    assert summary_of(audit)["wcr"] == pytest.approx(min(means))
    assert summary_of(audit)["fp"] == pytest.approx(definitions.fp(means, 0.8))
    assert summary_of(audit)["wcr_class"] == str(int(np.argmin(means)))
    order = np.random.default_rng(0).permutation(len(labels))
    for k in range(4):
        fed = [values[index] for index in order if labels[index] == k]
        expected = definitions.class_interval(fed, "betting", 4, 0.2, (0.0, SCALE))
        row = audit.classes.iloc[k]
        assert (row["low"], row["high"]) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 2**32), st.sampled_from(sorted(ACTIVATIONS)))
def test_every_number_lies_in_its_interval(seed, activation):
    logits, labels = logits_and_labels(seed)
    summary = summary_of(audit_logits(logits, labels, activation=activation, alpha=0.3))
    for name in [metric.name for metric in BOUNDED]:
        low, high = summary[f"{name}_low"], summary[f"{name}_high"]
        assert low - 1e-12 <= summary[name] <= high + 1e-12


@given(st.integers(0, 2**32))
def test_lemma_order_of_samples_and_names_of_classes_do_not_matter(seed):
    logits, labels = logits_and_labels(seed)
    rng = np.random.default_rng(seed)
    names = list("abcde")
    before = audit_logits(logits, labels, class_names=names)
    order = rng.permutation(len(labels))
    renaming = rng.permutation(5)
    after = audit_logits(
        logits[order][:, renaming],
        np.argsort(renaming)[labels[order]],
        class_names=[names[k] for k in renaming],
    )
    for name in [*METRICS, "accuracy"]:
        assert summary_of(after)[name] == pytest.approx(summary_of(before)[name], rel=1e-10, abs=1e-12)
    assert set(summary_of(after)["wcr_tied"]) == set(summary_of(before)["wcr_tied"])
    merged = before.classes.merge(after.classes, on="class")
    np.testing.assert_allclose(merged["value_x"], merged["value_y"], rtol=1e-10)


def test_names_of_classes_do_not_matter_for_the_intervals():
    logits, labels = logits_and_labels(3, n=500)
    renaming = np.random.default_rng(0).permutation(5)
    before, after = audit_logits(logits, labels), audit_logits(logits[:, renaming], np.argsort(renaming)[labels])
    np.testing.assert_array_equal(before.classes["low"].to_numpy()[renaming], after.classes["low"])


def test_a_class_without_samples_is_shown_as_missing_and_can_never_pass():
    logits, labels = logits_and_labels(2, n=4000, k=4, scale=0.1, signal=20)
    logits = np.insert(logits, 1, -50.0, axis=1)
    labels = np.where(labels >= 1, labels + 1, labels)
    audit = audit_logits(logits, labels)
    row = audit.classes.iloc[1]
    assert row["n"] == 0
    assert np.isnan(row["value"])
    assert np.isnan(row["accuracy"])
    assert (row["low"], row["high"]) == (0, SCALE)
    assert summary_of(audit)["wcr"] > 1.2
    assert summary_of(audit)["wcr_class"] != "1"
    assert summary_of(audit)["wcr_low"] == 0


def test_a_classifier_that_is_always_wrong():
    logits, labels = np.tile([5.0, 0.0, -5.0], (6, 1)), np.array([1, 1, 1, 2, 2, 2])
    summary = summary_of(audit_logits(logits, labels))
    assert (summary["value"], summary["rdi"], summary["wcr"], summary["accuracy"]) == (0, 0, 0, 0)
    assert np.isnan(summary["nrgc"])
    assert summary["wcr_tied"] == ["1", "2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.array([[0.0, np.nan], [1.0, 0.0]])}, "row 0, class 1 is nan"),
        ({"logits": np.ma.masked_greater([[0.0, 1.0], [9.0, 0.0]], 5)}, "row 1 is masked"),
        ({"labels": np.ma.masked_greater([1, 0], 0)}, "row 0 is masked"),
        ({"logits": np.array([[0.3, 0.7], [0.9, 0.1]])}, "these are probabilities"),
        ({"logits": np.array([[1.0], [2.0]])}, "at least 2 classes"),
        ({"labels": [0, 2]}, "row 1 has label 2, outside 0..1"),
        ({"labels": [1, 1]}, "at least 2 classes with samples, got 1"),
        ({"temperature": 0}, "temperature must be a positive number, got 0"),
        ({"activation": "tanh"}, "activation 'tanh' is unknown"),
        ({"lam": -1}, "lambda of FP must be at least 0, got -1"),
        ({"alpha": 0}, "alpha must lie strictly between 0 and 1, got 0"),
        ({"class_names": ["cat"]}, "1 class names for 2 logits per row"),
        ({"class_names": ["cat", "cat"]}, "class name 'cat' stands more than once"),
        ({"class_names": ["cat", "cat\u200b"]}, r"class names 'cat' and 'cat\\u200b' differ in .* Unicode alone"),
    ],
)
def test_bad_input_is_an_error_that_says_what_is_wrong(change, message):
    arguments = {"logits": np.array([[2.0, 0.0], [0.0, 3.0]]), "labels": [0, 1]} | change
    logits, labels = arguments.pop("logits"), arguments.pop("labels")
    with pytest.raises(InputError, match=message):
        audit_logits(logits, labels, **arguments)


def test_probabilities_are_audited_when_the_caller_insists():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    audit = audit_logits(probabilities, [0, 1], allow_probabilities=True)
    np.testing.assert_allclose(audit.classes["value"], SCALE * np.tanh([0.4, 0.3]))


def test_logarithms_of_probabilities_are_audited_as_the_logits_by_what_begins_with_a_softmax():
    logits, labels = logits_and_labels(3)
    odds = np.exp(logits)
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    for activation in ("softmax", "sigmoid-of-softmax"):
        audit = audit_logits(probabilities, labels, activation=activation, allow_probabilities="logarithms")
        expected = audit_logits(logits, labels, activation=activation)
        pd.testing.assert_frame_equal(audit.classes, expected.classes, rtol=1e-9)
    for activation in ("sigmoid", "softmax-of-sigmoid"):
        with pytest.raises(InputError, match=f"activation {activation}: needs logits"):
            audit_logits(probabilities, labels, activation=activation, allow_probabilities="logarithms")


def test_logarithms_of_probabilities_give_the_softmax_score_of_the_logits():
    logits, labels = logits_and_labels(3)
    shifted = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    pd.testing.assert_frame_equal(
        audit_logits(shifted, labels).classes, audit_logits(logits, labels).classes, rtol=1e-12
    )


@pytest.mark.parametrize("given", [np.array(["x", "y"]), pd.Series(["x", "y"]), ("x", "y")])
def test_any_sequence_of_class_names_will_do(given):
    audit = audit_logits(np.array([[2.0, 0.0], [0.0, 3.0]]), [0, 1], class_names=given)
    assert classes_of(audit) == ["x", "y"]
    assert summary_of(audit)["wcr_class"] == "x"


def imported_after(code):
    result = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sorted(sys.modules))"],
        env={**os.environ, "PYTHONPATH": PACKAGE_FOLDER},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stdout.split())


def test_an_audit_needs_neither_torch_nor_snakemake_nor_a_plotting_library():
    modules = imported_after(
        "import gfscore, gfscore.notebook.audits\ngfscore.audit_logits([[2.0, 0.0], [0.0, 3.0]], [0, 1], activation='sigmoid')"
    )
    assert "gfscore.notebook.audits" in modules
    assert not modules & {"torch", "snakemake", "matplotlib", "sklearn", "jinja2"}


def test_importing_the_package_loads_nothing_heavy():
    modules = imported_after("import gfscore")
    assert "gfscore" in modules
    assert not modules & {"numpy", "scipy", "pandas", "pyarrow", "torch", "gfscore.notebook.audits"}


def test_exported_names_are_the_public_ones():
    assert {"Audit", "InputError", "audit_logits"} <= set(gfscore.__all__)
    for name in gfscore.__all__:
        assert getattr(gfscore, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'gfscore' has no attribute 'audit_logit'"):
        gfscore.audit_logit  # noqa: B018
