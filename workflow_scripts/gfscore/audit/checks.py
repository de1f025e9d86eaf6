"""Checks of what was measured: does the classifier do what its publication says, and anything at all?"""

import numpy as np

from gfscore.core.names import class_phrase, enumeration
from gfscore.core.numbers import number
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.multiplicity import SIGNIFICANT

CONFIDENCE = 0.999
"""Of the interval on a subset of the published test set: one in a thousand right models is refused."""

REMEDY = (
    "Usual causes: wrong preprocessing, another data split, a checkpoint of another model; correct the model's entry "
    "in config.yaml, or set checks: published_accuracy: exclude to leave such models out"
)


def published_accuracy_verdict(correct, samples, *, published, tolerance, subset):
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

MOST_NAMED = 3


def guesses(predictions, labels):
    """Whether a classifier may be guessing, in words, or None where its answers go with the labels.

    Takes predictions and labels, (N,) integers. Answers that have nothing to do with the labels are right as often in
    any other order: the classifier may be guessing where more than SIGNIFICANT of the orders are right as often or
    more. With samples of one class only there is nothing to guess.
    """
    if len(np.unique(labels)) == 1:
        return None
    p = _share_of_orders_as_right(predictions, labels)
    if p <= SIGNIFICANT:
        return None
    return (
        f"may be guessing (clean accuracy {number(np.mean(predictions == labels))} on {len(labels):,} samples; the "
        f"same answers in a random order are right as often with probability {number(p)}): are the rows in the order "
        "of the labels, the columns in that of the class names, and are these logits?"
    )


def _share_of_orders_as_right(predictions, labels):
    # p-value of a one-sided permutation test of the number of right answers, or an upper bound of one that is small.
    from scipy.stats import permutation_test

    n = len(labels)
    classes = 1 + max(predictions.max(), labels.max())
    given, true = (np.bincount(found, minlength=classes).astype(float) for found in (predictions, labels))
    expected = given @ true / n
    variance = (n * expected - given @ true**2 / n - true @ given**2 / n + expected**2) / (n - 1)
    above = np.sum(predictions == labels) - expected
    # Cantelli's inequality. It holds for any distribution, and drawing orders of many samples takes time.
    bound = variance / (variance + above**2) if above > 0 else 1.0
    if bound <= SIGNIFICANT:
        return bound
    test = permutation_test(
        (predictions,),
        lambda answers, axis: np.sum(answers == labels, axis=axis),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=ORDERS - 1,
        batch=max(1, DRAWN_AT_ONCE // n),
        vectorized=True,
        rng=np.random.default_rng(ORDERS_SEED),
    )
    return float(test.pvalue)


def exchanged(predictions, labels, class_names):
    """Which classes look exchanged, in words, or None: most samples of each are taken for the next one of a cycle.

    Takes predictions and labels, (N,) integers below K, and K names. Looks at classes of ENOUGH samples.
    """
    n = np.bincount(labels, minlength=len(class_names))
    taken, counts = np.unique(np.stack([labels, predictions]), axis=1, return_counts=True)
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
