"""Gates on what was measured: does the classifier do what its publication says?"""

from gfscore.bounds.binomial import clopper_pearson

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
