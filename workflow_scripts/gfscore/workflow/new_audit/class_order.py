"""Classes of the data among the outputs of a model: by names that are stated, and checked by what it answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.class_names import imagenet_names
from gfscore.core.errors import InputError, few
from gfscore.workflow.new_audit.pixels import ERROR, binomial_tail

POSITION = "position"


def match_classes(
    labels: Sequence[str] | None, classes: Sequence[str], outputs: int, *, asked: str | None, where: str
) -> tuple[list[int], str]:
    """Output of the model for each class of the data, `(indices (K,), how they were matched)`.

    `labels`: names of the model's outputs, None where nothing states them; `classes`: names in the data; `outputs`: how
    many the model has; `asked`: what the user says, "position", names separated by commas, or a file with one per line.
    Raises InputError, listing what does not match; nothing is guessed.
    """
    labels, said = _stated(labels, classes, outputs, asked)
    if labels is None:
        if outputs != len(classes):
            raise InputError(
                f"{where}: has {outputs} outputs, the data {len(classes)} classes ({few(classes)}), and nothing says "
                "which is which; add --labels (make: LABELS=), a file with the name of each output in a line"
            )
        return list(range(outputs)), said
    if len(labels) != outputs:
        raise InputError(f"{where}: {len(labels)} names for {outputs} outputs; correct its files, or --labels")
    return _by_names(labels, classes, where=where), said


def _stated(labels, classes, outputs, asked):
    # Names of the outputs, None for those of the classes, and who says so.
    if asked == POSITION:
        return None, "by position, as asked"
    if asked:
        return _asked(asked), "as --labels says"
    if labels is not None:
        return labels, "by the names in the model's files"
    if outputs == len(imagenet_names()):
        known = {spelling for wnid in imagenet_names() for spelling in _spellings(wnid)}
        if all(known & {*_spellings(name)} for name in classes):
            return list(imagenet_names()), "in ImageNet's order, by wnids or names"
    return None, "by position: the model names none"


def _by_names(labels, classes, *, where):
    # Output for each class of the data.
    known: dict[str, int] = {}
    for index, label in enumerate(labels):
        for name in _spellings(label):
            known.setdefault(name, index)
    found = {name: next((known[s] for s in _spellings(name) if s in known), None) for name in classes}
    missing = [name for name, index in found.items() if index is None]
    if len(missing) == len(classes) and all(name.isdecimal() and int(name) < len(labels) for name in classes):
        return [int(name) for name in classes]
    if missing:
        raise InputError(
            f"{where}: {len(missing)} of {len(classes)} classes of the data are none of the model's outputs: "
            f"{few(missing)}; the model has {few(list(labels))}. Rename the classes, or add --labels (make: LABELS=), "
            "a file with the name of each output in a line, or position"
        )
    indices = [index for index in found.values() if index is not None]
    twice = next((index for index in indices if indices.count(index) > 1), None)
    if twice is not None:
        raise InputError(f"{where}: several classes of the data are its output {labels[twice]!r}; merge them")
    return indices


def _asked(text):
    path = Path(text)
    if not path.is_file():
        return [part.strip() for part in text.split(",")]
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); write one name in a line, as UTF-8") from error
    return [line.strip() for line in lines if line.strip()]


def _spellings(name):
    # "tench, Tinca tinca" has two names; a wnid stands for the names of its class.
    parts = [name, *name.split(",")]
    if name in imagenet_names():
        parts += [imagenet_names()[name], *imagenet_names()[name].split(",")]
    return [re.sub(r"[\s_-]+", " ", part).strip().casefold() for part in parts]


def check_order(
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    classes: Sequence[str],
    *,
    where: str,
    remedy: str = "correct them, or add --labels (make: LABELS=)",
) -> float:
    """Accuracy of logits (n, K) in the data's order of classes; `remedy` is what mends another order.

    Raises InputError, with the likely causes, where it is no better than guessing, and where another order of the
    classes, found on one half of the images by linear assignment, is surely better on the other half.
    """
    from scipy.optimize import linear_sum_assignment

    k = logits.shape[1]
    answers = logits.argmax(axis=1)
    right = answers == labels
    # Every other sample of each class.
    first = np.empty(len(labels), dtype=bool)
    first[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % 2 == 0
    counts = np.zeros((k, k))
    np.add.at(counts, (answers[first], labels[first]), 1)
    rows, columns = linear_sum_assignment(-counts)
    order = np.empty(k, dtype=int)
    order[rows] = columns
    again = order[answers] == labels
    gains, losses = (int(part[~first].sum()) for part in (again & ~right, right & ~again))
    if gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR:
        # Found anew on all images, to be told.
        np.add.at(counts, (answers[~first], labels[~first]), 1)
        rows, columns = linear_sum_assignment(-counts)
        pairs = [
            f"{classes[row]} -> {classes[column]}" for row, column in zip(rows, columns, strict=True) if row != column
        ]
        raise InputError(
            f"{where}: answers fit the labels in another order of the classes ({right.mean():.1%} right, "
            f"{again.mean():.1%} after {few(pairs)}); the labels, or the names of the outputs, are mixed up: "
            f"{remedy}"
        )
    # Whoever always answers the most frequent class is right as often as that.
    guessing = max(1 / k, np.bincount(labels).max() / len(labels))
    if binomial_tail(int(right.sum()), len(right), guessing) > ERROR:
        raise InputError(
            f"{where}: {right.mean():.1%} of {len(right)} samples are right, no more than by guessing among {k} "
            "classes. Likely causes: labels in another order than the outputs (--labels), another preprocessing "
            "(--preprocessing), weights of another network, or data that it was not made for"
        )
    return float(right.mean())


def check_logits(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, where: str, kind: str | None = None
) -> None:
    """Raise InputError for outputs that are probabilities, or no finite numbers.

    `kind`: what the outputs are, if that was found out already (see gfscore.statistics.logits.probabilities_in).
    """
    from gfscore.statistics.logits import ONE_SIGMOID, TOTALS, ProbabilitiesGiven, require_logits

    remedies = {
        TOTALS[1]: "give the values before the softmax, or add --probabilities (make: PROBABILITIES=1) to take their "
        "logarithms",
        ONE_SIGMOID: "give the value before the sigmoid, or add --probabilities (make: PROBABILITIES=1) to take "
        "logarithms",
        TOTALS[100]: "give the values before the softmax, or divided by 100",
        TOTALS[255]: "give the values before the softmax",
    }
    try:
        if kind is not None:
            raise ProbabilitiesGiven(where, kind)
        require_logits(logits, labels, source=where)
    except ProbabilitiesGiven as error:
        remedy = remedies.get(error.kind, "give the values before the sigmoid, or multiplied by the scale")
        raise InputError(f"{where}: {error.fault}; {remedy}") from error
