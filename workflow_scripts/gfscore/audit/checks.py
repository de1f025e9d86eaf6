"""Checks of logits: published accuracy, guessing, and exchanged classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.identity import label_of
from gfscore.core.names import class_phrase, enumeration
from gfscore.core.numbers import number
from gfscore.statistics.margins import predictions
from gfscore.statistics.multiple_tests import SIGNIFICANT
from gfscore.statistics.proportions import clopper_pearson

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.samples import ModelLogits

CONFIDENCE = 0.999
"""Confidence of the interval on a subset of the published test set: 0.1% of correct models are refused."""

REMEDY = (
    "Usual causes: wrong preprocessing, another data split, a checkpoint of another model; correct the model's entry "
    "in config.yaml, or set checks: published_accuracy: exclude to leave such models out"
)


def check_logits(
    evidence: ModelLogits, class_names: Sequence[str], *, source: Path | str, gate: Mapping[str, Any]
) -> dict[str, Any]:
    """Result of the checks of a model's logits: number of samples, clean accuracy, acceptance, and warnings.

    Takes ModelLogits, K names, the file to name in errors, and the gate: `published` (accuracy or None), its
    `tolerance`, the `samples` that it refers to ("full", "subset", or None for no comparison), `on_failure` ("stop" or
    "exclude"). Raises InputError for a deviating accuracy unless `on_failure` is "exclude". A model that may be
    guessing, or whose classes look exchanged, is accepted with a warning.
    """
    predicted = predictions(evidence.logits, evidence.labels)
    checked = check_answers(predicted, evidence.labels, class_names, source=source, gate=gate)
    doubt = repeated(evidence.logits, evidence.labels)
    if doubt:
        print(f"warning: {doubt}")
    return checked | {"warnings": [*checked["warnings"], *filter(None, [doubt])]}


def check_answers(
    predicted: NDArray[np.integer],
    labels: NDArray[np.integer],
    class_names: Sequence[str],
    *,
    source: Path | str,
    gate: Mapping[str, Any],
) -> dict[str, Any]:
    """The same of the predictions (N,) and labels (N,) of a model, without the checks that need logits."""
    correct = int(np.sum(predicted == labels))
    accepted, words = True, None
    if gate["published"] is not None and gate["samples"] is None:
        words = f"published accuracy {gate['published']} not compared: the dataset says published_accuracy: null"
        print(words)
    elif gate["published"] is not None:
        subset = gate["samples"] == "subset"
        accepted, words = published_accuracy_verdict(
            correct, len(labels), published=gate["published"], tolerance=gate["tolerance"], subset=subset
        )
        if not accepted and gate["on_failure"] == "stop":
            raise InputError(f"{source}: {words}. {REMEDY}")
    guessing = guesses(predicted, labels)
    warnings = [warning for warning in (guessing, exchanged(predicted, labels, class_names)) if warning]
    for warning in warnings:
        print(f"warning: {warning}")
    return {
        "samples": len(labels),
        "clean_accuracy": correct / len(labels),
        "accepted": accepted,
        "words": words,
        "better_than_guessing": guessing is None,
        "warnings": warnings,
    }


def selection_of(checks: Sequence[Mapping[str, Any]], models: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Models of an audit that are included and excluded, with the reasons: the contents of models.json.

    Takes the results of check_logits with dataset, threat and model for all models with logits; models with values per
    sample are always included. `warned` holds the warnings on included models, `guessing` those that may be guessing.
    Raises InputError if no model is included.
    """
    by_label = {label_of(check): check for check in checks}
    refused = {label: check["words"] for label, check in by_label.items() if not check["accepted"]}
    accepted = {label: check for label, check in by_label.items() if check["accepted"]}
    included = [label_of(model) for model in models if label_of(model) not in refused]
    if not included:
        reasons = "; ".join(f"{label}: {words}" for label, words in refused.items())
        raise InputError(f"no model of the audit passed the gate on published accuracy ({reasons}). {REMEDY}")
    warned = [{"model": label, "reason": words} for label, check in accepted.items() for words in check["warnings"]]
    return {
        "included": included,
        "excluded": [{"model": label, "reason": words} for label, words in refused.items()],
        "warned": warned,
        "guessing": [label for label, check in accepted.items() if not check["better_than_guessing"]],
        "clean_accuracy": {label: check["clean_accuracy"] for label, check in by_label.items()},
    }


def published_accuracy_verdict(
    correct: int, samples: int, *, published: float, tolerance: float, subset: bool
) -> tuple[bool, str]:
    """Whether a measured clean accuracy agrees with the published one, and a sentence on it: `(accepted, words)`.

    Takes the number of `correct` predictions among `samples`, the `published` accuracy and `tolerance`, fractions, and
    whether the samples are a `subset` of the published test set. On the full set the accuracies may differ by the
    tolerance; on a subset the model is refused only if no accuracy within the tolerance is in the Clopper-Pearson
    interval, which has probability at most 1 - CONFIDENCE for a correct model.
    """
    measured = correct / samples
    low = high = measured
    words = f"measured clean accuracy {100 * measured:.2f}%"
    if subset:
        low, high = clopper_pearson(correct, samples, alpha=1 - CONFIDENCE)
        words += f" on {samples} samples ({100 * CONFIDENCE:g}% interval {100 * low:.2f}% to {100 * high:.2f}%)"
    words += f", published {100 * published:.2f}% (tolerance {100 * tolerance:.2f} points)"
    return low <= published + tolerance and high >= published - tolerance, words


ORDERS, ORDERS_SEED, DRAWN_AT_ONCE = 1000, 0, 1 << 22
"""Number of permutations, the observed one included; their seed; number of values in memory at a time."""

ENOUGH = 5
"""Smallest number of samples of a class that is checked for exchange."""

MOST_REPEATED = 0.01
"""Share of samples that may have the logits of another: a saturated network gives equal ones to different images."""

ROWS = 4096
"""Rows of logits per block."""

MOST_NAMED = 3


def guesses(predicted: NDArray[np.integer], labels: NDArray[np.integer]) -> str | None:
    """Warning that a classifier may be guessing; None if its predictions are associated with the labels.

    Takes predictions and labels, (N,) integers. Permutation test of the number of correct predictions: the classifier
    may be guessing if more than a share SIGNIFICANT of the permutations of its predictions are correct at least as
    often. None if all samples are of one class.
    """
    if len(np.unique(labels)) == 1:
        return None
    p = _share_of_orders_as_right(predicted, labels)
    if p <= SIGNIFICANT:
        return None
    return (
        f"may be guessing (clean accuracy {number(np.mean(predicted == labels))} on {len(labels):,} samples; the "
        f"same answers in a random order are right as often with probability {number(p)}): are the rows in the order "
        "of the labels, the columns in that of the class names, and are these logits?"
    )


def repeated(logits: NDArray[np.float32], labels: NDArray[np.integer]) -> str | None:
    """How many samples have logits that another sample of their class has too, in words; None up to MOST_REPEATED.

    Takes logits (N, K) and labels (N,). Equal logits may be of different images, so such samples count all the same.
    """
    # Sums of the bits in uint64, weighted by odd random numbers: exact, so that equal rows have equal ones, and other
    # rows hardly ever.
    bits = np.ascontiguousarray(logits, dtype="<f4").view("<u4")
    weights = np.random.default_rng(ORDERS_SEED).integers(2**63, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    sums = np.concatenate([part.astype(np.uint64) @ weights for part in np.array_split(bits, -(-len(bits) // ROWS))])
    again = len(sums) - len(np.unique(np.stack([sums, labels.astype(np.uint64)]), axis=1).T)
    if again <= MOST_REPEATED * len(sums):
        return None
    return (
        f"{again:,} of {len(sums):,} samples have the same logits as another of their class: a sample that is there "
        "twice counts twice, and makes intervals too narrow; give each sample once"
    )


def _share_of_orders_as_right(predicted, labels):
    # p-value of a one-sided permutation test of the number of correct predictions, or an upper bound if it is small.
    from scipy.stats import permutation_test

    n = len(labels)
    classes = 1 + max(predicted.max(), labels.max())
    guessed, true = (np.bincount(values, minlength=classes).astype(float) for values in (predicted, labels))
    expected = guessed @ true / n
    variance = (n * expected - guessed @ true**2 / n - true @ guessed**2 / n + expected**2) / (n - 1)
    above = np.sum(predicted == labels) - expected
    # Cantelli's inequality holds for any distribution, and avoids permutations of many samples.
    bound = variance / (variance + above**2) if above > 0 else 1.0
    if bound <= SIGNIFICANT:
        return bound
    test = permutation_test(
        (predicted,),
        lambda answers, axis: np.sum(answers == labels, axis=axis),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=ORDERS - 1,
        batch=max(1, DRAWN_AT_ONCE // n),
        vectorized=True,
        rng=np.random.default_rng(ORDERS_SEED),
    )
    return float(test.pvalue)


def exchanged(predicted: NDArray[np.integer], labels: NDArray[np.integer], class_names: Sequence[str]) -> str | None:
    """Warning about classes that look exchanged, or None: most samples of each are classified as the next of a cycle.

    Takes predictions and labels, (N,) integers below K, and K names. Only classes with at least ENOUGH samples count.
    """
    n = np.bincount(labels, minlength=len(class_names))
    pairs, counts = np.unique(np.stack([labels, predicted]), axis=1, return_counts=True)
    most = counts > n[pairs[0]] / 2
    # More than half of a class are classified as at most one class.
    goes = {int(true): int(guess) for true, guess in pairs[:, most].T if true != guess and n[true] >= ENOUGH}
    cycles = [[class_phrase(class_names[k]) for k in cycle] for cycle in _cycles(goes)]
    if not cycles:
        return None
    more = f"; {sum(map(len, cycles[MOST_NAMED:]))} more classes" if len(cycles) > MOST_NAMED else ""
    return (
        f"classes look exchanged ({'; '.join(map(_first_of, cycles[:MOST_NAMED]))}{more}): are the columns in the "
        "order of the class names? Most samples of each are taken for another of them"
    )


def _cycles(goes):
    # Cycles of a mapping as lists of keys, by smallest start.
    cycles, seen = [], set()
    for start in sorted(goes):
        at, way = start, []
        while at in goes and at not in seen:
            seen.add(at)
            way.append(at)
            at = goes[at]
        if at in way:
            cycles.append(way[way.index(at) :])
    return cycles


def _first_of(names):
    kept = names if len(names) <= MOST_NAMED + 1 else [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return enumeration(kept)
