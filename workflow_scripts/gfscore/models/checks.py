"""Checks of what was measured: does the classifier do what its publication says, and anything at all?"""

import numpy as np

from gfscore.bounds.binomial import clopper_pearson
from gfscore.bounds.multiplicity import SIGNIFICANT
from gfscore.names import class_phrase
from gfscore.numbers import number

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


ENOUGH = 5
"""Samples that each of two classes needs before they can look exchanged: of fewer, most go anywhere by chance."""

MOST_NAMED = 3


def guesses(predictions, labels, classes):
    """Whether a classifier is no better than guessing, in words, or None where it is or nothing can be guessed.

    Takes predictions and labels, (N,) integers below `classes`. Guessing is to name the largest class always; a
    classifier is better when its accuracy exceeds that class's share by an exact one-sided binomial test at the level
    SIGNIFICANT. With samples of one class only there is nothing to guess.
    """
    from scipy.special import bdtrc

    correct, n = int(np.sum(predictions == labels)), len(labels)
    share = np.bincount(labels, minlength=classes).max() / n
    # The probability of so many correct answers or more.
    p = 1.0 if correct == 0 else float(bdtrc(correct - 1, n, share))
    if share == 1 or p <= SIGNIFICANT:
        return None
    return (
        f"no better than guessing (clean accuracy {number(correct / n)} of {classes} classes; always naming the "
        f"largest one gives {number(share)}): are the rows in the order of the labels, and are these logits? How equal "
        "its classes are says nothing"
    )


def exchanged(predictions, labels, class_names):
    """Which pairs of classes look exchanged, in words, or None: of each, most samples are taken for the other.

    Takes predictions and labels, (N,) integers below K, and K names. Looks at classes of ENOUGH samples.
    """
    classes = len(class_names)
    n = np.bincount(labels, minlength=classes)
    taken, counts = np.unique(np.stack([labels, predictions]), axis=1, return_counts=True)
    most = counts > n[taken[0]] / 2
    # More than half go to one class at most.
    goes = {int(own): int(other) for own, other in taken[:, most].T if own != other and n[own] >= ENOUGH}
    pairs = [(own, other) for own, other in goes.items() if own < other and goes.get(other) == own]
    if not pairs:
        return None
    named = [f"{class_phrase(class_names[own])} and {class_phrase(class_names[other])}" for own, other in pairs]
    more = [f"{len(named) - MOST_NAMED} more pairs"] if len(named) > MOST_NAMED else []
    return (
        f"classes look exchanged ({'; '.join([*named[:MOST_NAMED], *more])}): are the columns in the order of the "
        "class names? Most samples of each are taken for the other"
    )
