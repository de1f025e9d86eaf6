"""Checks of logits before anything is computed from them: published accuracy, guessing, exchanged classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import permutation_test

from gfscore.audit.samples import ModelLogits
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.core.names import class_phrase, enumeration
from gfscore.core.numbers import number, percent
from gfscore.statistics.margins import predictions
from gfscore.statistics.proportions import clopper_pearson
from gfscore.statistics.tolerances import SIGNIFICANT

CONFIDENCE = 0.999
"""Confidence of the interval on a subset of the published test set: 0.1% of correct models are refused."""

REMEDY = (
    "Usual causes: wrong preprocessing, another data split, a checkpoint of another model; correct the model's entry"
)


@dataclass(frozen=True)
class PublishedAccuracy:
    """Comparison of a model's clean accuracy with the published one.

    Parameters
    ----------
    published : float or None
        Published accuracy, a fraction; None for a model without one.
    tolerance : float
        Difference that is accepted, a fraction.
    samples : {"full", "subset"} or None
        Whether the samples are the published test set or a subset of it; None for no comparison.
    on_failure : {"stop", "exclude"}
        Whether a deviating accuracy stops the run, or excludes the model.
    """

    published: float | None = None
    tolerance: float = 0.0
    samples: Literal["full", "subset"] | None = None
    on_failure: Literal["stop", "exclude"] = "stop"


@dataclass(frozen=True)
class CheckedModel:
    """Result of the checks of a model's logits.

    Parameters
    ----------
    samples : int
        Number of samples.
    clean_accuracy : float or None
        None where it is not known.
    accepted : bool
        Whether the model takes part in the audit.
    words : str or None
        What was compared with the published accuracy; None without one.
    better_than_guessing : bool
        False for a model that may be guessing.
    warnings : list of str
        Warnings on an accepted model.
    """

    samples: int
    clean_accuracy: float | None
    accepted: bool
    words: str | None = None
    better_than_guessing: bool = True
    warnings: list[str] = field(default_factory=list)


def check_logits(
    evidence: ModelLogits, class_names: Sequence[str], *, source: Path | str, gate: PublishedAccuracy
) -> CheckedModel:
    """Check the logits of a model.

    A model that may be guessing, or whose classes look exchanged, is accepted with a warning.

    Parameters
    ----------
    evidence : ModelLogits
    class_names : sequence of K str
    source : path
        File that errors name.
    gate : PublishedAccuracy

    Raises
    ------
    InputError
        For a deviating accuracy that stops the run.
    """
    predicted = predictions(evidence.logits, evidence.labels)
    checked = check_answers(predicted, evidence.labels, class_names, source=source, gate=gate)
    warning = repeated(evidence.logits, evidence.labels)
    if warning is None:
        return checked
    print(f"warning: {warning}")
    return replace(checked, warnings=[*checked.warnings, warning])


def check_answers(
    predicted: NDArray[np.integer],
    labels: NDArray[np.integer],
    class_names: Sequence[str],
    *,
    source: Path | str,
    gate: PublishedAccuracy,
) -> CheckedModel:
    """Check the predictions (N,) of a model with labels (N,): check_logits without what needs logits."""
    correct = int(np.sum(predicted == labels))
    accepted = True
    words = None
    if gate.published is not None and gate.samples is None:
        words = f"published accuracy {gate.published} not compared: the dataset says published_accuracy: null"
        print(words)
    elif gate.published is not None:
        accepted, words = published_accuracy_verdict(
            correct,
            len(labels),
            published=gate.published,
            tolerance=gate.tolerance,
            subset=gate.samples == "subset",
        )
        if not accepted and gate.on_failure == "stop":
            raise InputError(
                f"{source}: {words}. {REMEDY}, or set checks: published_accuracy: exclude to leave such models out"
            )

    guessing = guesses(predicted, labels)
    warnings = []
    for warning in (guessing, exchanged(predicted, labels, class_names)):
        if warning:
            print(f"warning: {warning}")
            warnings.append(warning)
    return CheckedModel(
        samples=len(labels),
        clean_accuracy=correct / len(labels),
        accepted=accepted,
        words=words,
        better_than_guessing=guessing is None,
        warnings=warnings,
    )


def selection_of(checks: Mapping[ModelName, CheckedModel], models: Sequence[ModelName]) -> dict[str, Any]:
    """Models of an audit that are included and excluded, with the reasons: the contents of models.json.

    Parameters
    ----------
    checks : mapping of ModelName to CheckedModel
        Results for all models with logits. Models with values per sample are always included.
    models : sequence of ModelName
        All models of the audit.

    Returns
    -------
    dict
        Labels by `included`; `excluded` and `warned`, with reasons; `guessing`, those that may be guessing; and
        `clean_accuracy` by label.

    Raises
    ------
    InputError
        If no model is included.
    """
    excluded = []
    warned = []
    guessing = []
    accuracies = {}
    for model, check in checks.items():
        accuracies[model.label] = check.clean_accuracy
        if not check.accepted:
            excluded.append({"model": model.label, "reason": check.words})
            continue
        warned += [{"model": model.label, "reason": words} for words in check.warnings]
        if not check.better_than_guessing:
            guessing.append(model.label)

    refused = {item["model"] for item in excluded}
    included = [model.label for model in models if model.label not in refused]
    if not included:
        reasons = "; ".join(f"{item['model']}: {item['reason']}" for item in excluded)
        raise InputError(f"no model of the audit passed the gate on published accuracy ({reasons}). {REMEDY}")
    return {
        "included": included,
        "excluded": excluded,
        "warned": warned,
        "guessing": guessing,
        "clean_accuracy": accuracies,
    }


def published_accuracy_verdict(
    correct: int, samples: int, *, published: float, tolerance: float, subset: bool
) -> tuple[bool, str]:
    """Whether a measured clean accuracy agrees with the published one.

    On the full test set the accuracies may differ by the tolerance. On a subset the model is refused only if no
    accuracy within the tolerance is in the Clopper-Pearson interval, which has probability at most 1 - CONFIDENCE for a
    correct model.

    Parameters
    ----------
    correct, samples : int
        Number of correct predictions, and of all.
    published, tolerance : float
        Published accuracy and the difference that is accepted, fractions.
    subset : bool
        Whether the samples are a subset of the published test set.

    Returns
    -------
    accepted : bool
    words : str
        What was compared.
    """
    measured = correct / samples
    low = high = measured
    words = f"measured clean accuracy {100 * measured:.2f}%"
    if subset:
        low, high = clopper_pearson(correct, samples, alpha=1 - CONFIDENCE)
        words += f" on {samples} samples ({percent(CONFIDENCE)} interval {100 * low:.2f}% to {100 * high:.2f}%)"
    words += f", published {100 * published:.2f}% (tolerance {100 * tolerance:.2f} points)"
    return low <= published + tolerance and high >= published - tolerance, words


ORDERS = 1000
"""Number of permutations, the observed one included."""

ORDERS_SEED = 0

DRAWN_AT_ONCE = 1 << 22
"""Number of values in memory at a time."""

ENOUGH = 5
"""Smallest number of samples of a class that is checked for exchange."""

MOST_REPEATED = 0.01
"""Share of samples that may have the logits of another: a saturated network gives equal ones to different images."""

ROWS = 4096
"""Rows of logits per block."""

MOST_NAMED = 3


def guesses(predicted: NDArray[np.integer], labels: NDArray[np.integer]) -> str | None:
    """Warning that a classifier may be guessing.

    Permutation test of the number of correct predictions: the classifier may be guessing if more than a share
    SIGNIFICANT of the permutations of its predictions are correct at least as often.

    Parameters
    ----------
    predicted, labels : ndarray (N,) of int

    Returns
    -------
    str or None
        None if the predictions are associated with the labels, and if all samples are of one class.
    """
    if len(np.unique(labels)) == 1:
        return None
    # Cantelli's inequality holds for any distribution, and avoids permutations of many samples.
    n = len(labels)
    classes = 1 + max(predicted.max(), labels.max())
    predicted_counts = np.bincount(predicted, minlength=classes).astype(float)
    true_counts = np.bincount(labels, minlength=classes).astype(float)
    expected = predicted_counts @ true_counts / n
    variance = n * expected - predicted_counts @ true_counts**2 / n - true_counts @ predicted_counts**2 / n
    variance = (variance + expected**2) / (n - 1)
    above = np.sum(predicted == labels) - expected
    if above > 0 and variance / (variance + above**2) <= SIGNIFICANT:
        return None

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
    p = float(test.pvalue)
    if p <= SIGNIFICANT:
        return None
    return (
        f"may be guessing (clean accuracy {number(np.mean(predicted == labels))} on {n:,} samples; the "
        f"same answers in a random order are right as often with probability {number(p)}): check that the rows are in "
        "the order of the labels, the columns in that of the class names, and that these are logits"
    )


def repeated(logits: NDArray[np.float32], labels: NDArray[np.integer]) -> str | None:
    """Warning that samples have the logits of another sample of their class.

    Equal logits may be of different images, so such samples count all the same.

    Parameters
    ----------
    logits : ndarray (N, K) of float32
    labels : ndarray (N,) of int

    Returns
    -------
    str or None
        None for up to a share MOST_REPEATED of the samples.
    """
    # Sums of the bits in uint64, weighted by odd random numbers: exact, so that equal rows have equal ones, and other
    # rows hardly ever.
    bits = np.ascontiguousarray(logits, dtype="<f4").view("<u4")
    weights = np.random.default_rng(ORDERS_SEED).integers(2**63, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    blocks = np.array_split(bits, -(-len(bits) // ROWS))
    sums = np.concatenate([block.astype(np.uint64) @ weights for block in blocks])
    distinct = np.unique(np.stack([sums, labels.astype(np.uint64)]), axis=1)
    repetitions = len(sums) - distinct.shape[1]
    if repetitions <= MOST_REPEATED * len(sums):
        return None
    return (
        f"{repetitions:,} of {len(sums):,} samples have the same logits as another of their class: a sample that is "
        "there twice counts twice, and makes intervals too narrow; give each sample once"
    )


def exchanged(predicted: NDArray[np.integer], labels: NDArray[np.integer], class_names: Sequence[str]) -> str | None:
    """Warning about classes that look exchanged: most samples of each are classified as the next of a cycle.

    Parameters
    ----------
    predicted, labels : ndarray (N,) of int
        Below K.
    class_names : sequence of K str

    Returns
    -------
    str or None
        None without such classes. Only classes with at least ENOUGH samples count.
    """
    n = np.bincount(labels, minlength=len(class_names))
    pairs, counts = np.unique(np.stack([labels, predicted]), axis=1, return_counts=True)
    # More than half of a class are classified as at most one class.
    successor = {}
    for true, guess in pairs[:, counts > n[pairs[0]] / 2].T:
        if true != guess and n[true] >= ENOUGH:
            successor[int(true)] = int(guess)
    # Cycles of classes, each from its smallest one on.
    cycles = []
    visited = set()
    for start in sorted(successor):
        path = []
        node = start
        while node in successor and node not in visited:
            visited.add(node)
            path.append(node)
            node = successor[node]
        if node in path:
            cycles.append(path[path.index(node) :])
    if not cycles:
        return None

    phrases = []
    for cycle in cycles[:MOST_NAMED]:
        names = [class_phrase(class_names[index]) for index in cycle]
        if len(names) > MOST_NAMED + 1:
            names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
        phrases.append(enumeration(names))
    if len(cycles) > MOST_NAMED:
        phrases.append(f"{sum(map(len, cycles[MOST_NAMED:]))} more classes")
    return (
        f"classes look exchanged ({'; '.join(phrases)}): are the columns in the order of the class names? Most samples "
        "of each are taken for another of them"
    )
