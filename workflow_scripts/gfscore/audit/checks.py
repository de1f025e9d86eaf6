"""Checks of what was measured: does the classifier do what its publication says, and anything at all?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.identity import label_of
from gfscore.core.names import class_phrase, enumeration
from gfscore.core.numbers import number
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.margins import predictions
from gfscore.statistics.multiplicity import SIGNIFICANT

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.model_logits import ModelLogits

CONFIDENCE = 0.999
"""Of the interval on a subset of the published test set: one in a thousand right models is refused."""

REMEDY = (
    "Usual causes: wrong preprocessing, another data split, a checkpoint of another model; correct the model's entry "
    "in config.yaml, or set checks: published_accuracy: exclude to leave such models out"
)


def check_logits(
    found: ModelLogits, class_names: Sequence[str], *, source: Path | str, gate: Mapping[str, Any]
) -> dict[str, Any]:
    """What the logits of a model do: number of samples, clean accuracy, whether they are accepted, and doubts.

    Takes ModelLogits, K names, the file that an error names, and the gate: `published` (accuracy or None), its
    `tolerance`, the `samples` that it was measured on ("full", "subset", None: no comparison), `on_failure` ("stop",
    "exclude"). Raises InputError for another accuracy unless such models are excluded, which the result then says. A
    model that may be guessing, or whose classes look exchanged, is accepted with a warning.
    """
    predicted, labels = predictions(found.logits, found.labels), found.labels
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
    doubts = guessing, exchanged(predicted, labels, class_names), repeated(found.logits, labels)
    warnings = [doubt for doubt in doubts if doubt]
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
    """Which of the models of an audit are included and which are excluded, with the reason; contents of models.json.

    Takes the results of check_logits with dataset, threat, model, of every model with logits; models that bring values
    per sample are included. Of those included, `warned` says what their checks warn of, and `guessing` which may be
    guessing. Raises InputError where no model is left.
    """
    found = {label_of(check): check for check in checks}
    refused = {label: check["words"] for label, check in found.items() if not check["accepted"]}
    accepted = {label: check for label, check in found.items() if check["accepted"]}
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
        "clean_accuracy": {label: check["clean_accuracy"] for label, check in found.items()},
    }


def published_accuracy_verdict(
    correct: int, samples: int, *, published: float, tolerance: float, subset: bool
) -> tuple[bool, str]:
    """Whether a measured clean accuracy fits the published one: `(accepted, words)`.

    Takes the number of `correct` answers among `samples`, the `published` accuracy and `tolerance`, fractions, and
    whether the samples are a `subset` of the published test set. On the whole set the accuracies may differ by the
    tolerance; on a subset the model is refused only when no accuracy within the tolerance lies in the Clopper-Pearson
    interval, which happens to a right model with probability at most 1 - CONFIDENCE over the choice of samples.
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
"""Of answers, the given one included; their seed, that a file is told the same at every look; numbers held at once."""

ENOUGH = 5
"""Samples that each class needs before it can look exchanged: of fewer, most go anywhere by chance."""

MOST_REPEATED = 0.01
"""Share of samples that may have the logits of another: a saturated network gives equal ones to different images."""

ROWS = 4096
"""Rows of logits looked at together."""

MOST_NAMED = 3


def guesses(predicted: NDArray[np.integer], labels: NDArray[np.integer]) -> str | None:
    """Whether a classifier may be guessing, in words, or None where its answers go with the labels.

    Takes predictions and labels, (N,) integers. Answers that have nothing to do with the labels are right as often in
    any other order: the classifier may be guessing where more than SIGNIFICANT of the orders are right as often or
    more. With samples of one class only there is nothing to guess.
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
    # p-value of a one-sided permutation test of the number of right answers, or an upper bound of one that is small.
    from scipy.stats import permutation_test

    n = len(labels)
    classes = 1 + max(predicted.max(), labels.max())
    given, true = (np.bincount(found, minlength=classes).astype(float) for found in (predicted, labels))
    expected = given @ true / n
    variance = (n * expected - given @ true**2 / n - true @ given**2 / n + expected**2) / (n - 1)
    above = np.sum(predicted == labels) - expected
    # Cantelli's inequality. It holds for any distribution, and drawing orders of many samples takes time.
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
    """Which classes look exchanged, in words, or None: most samples of each are taken for the next one of a cycle.

    Takes predictions and labels, (N,) integers below K, and K names. Looks at classes of ENOUGH samples.
    """
    n = np.bincount(labels, minlength=len(class_names))
    taken, counts = np.unique(np.stack([labels, predicted]), axis=1, return_counts=True)
    most = counts > n[taken[0]] / 2
    # More than half go to one class at most.
    goes = {int(own): int(other) for own, other in taken[:, most].T if own != other and n[own] >= ENOUGH}
    cycles = [[class_phrase(class_names[k]) for k in cycle] for cycle in _cycles(goes)]
    if not cycles:
        return None
    more = f"; {sum(map(len, cycles[MOST_NAMED:]))} more classes" if len(cycles) > MOST_NAMED else ""
    return (
        f"classes look exchanged ({'; '.join(map(_first_of, cycles[:MOST_NAMED]))}{more}): are the columns in the "
        "order of the class names? Most samples of each are taken for another of them"
    )


def _cycles(goes):
    # Lists of keys that a mapping leads round in a circle, in the order of their first.
    found, seen = [], set()
    for start in sorted(goes):
        at, way = start, []
        while at in goes and at not in seen:
            seen.add(at)
            way.append(at)
            at = goes[at]
        if at in way:
            found.append(way[way.index(at) :])
    return found


def _first_of(names):
    kept = names if len(names) <= MOST_NAMED + 1 else [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return enumeration(kept)
