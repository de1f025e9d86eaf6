"""Classes of the data among the outputs of a model: by names that are stated, and checked by what it answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.labels import WNID, imagenet_names, is_number
from gfscore.workflow.new_audit.output_names import OutputNames, asked_names
from gfscore.workflow.new_audit.pixels import ERROR, binomial_tail

POSITION = "position"


def match_classes(
    labels: Sequence[str] | None, classes: Sequence[str], outputs: int, *, asked: str | None, where: str
) -> tuple[list[int], str]:
    """Output of the model for each class of the data, `(indices (K,), how they were matched)`.

    `labels`: names of the model's outputs, None where nothing states them; `classes`: names in the data; `outputs`: how
    many the model has; `asked`: what the user says, "position", names separated by commas, or a file of names.
    Raises InputError, listing what does not match, and where two orders fit equally well; nothing is guessed.
    """
    readings = _stated(labels, classes, outputs, asked)
    if isinstance(readings, str):
        if outputs != len(classes):
            raise InputError(
                f"{where}: has {outputs} outputs, the data {len(classes)} classes ({few(classes)}), and nothing says "
                "which is which; add --labels (make: LABELS=), a file with the name of each output in a line"
            )
        return list(range(outputs)), readings
    complete = [reading for reading in readings if len(reading.names) == outputs]
    if not complete:
        raise InputError(
            f"{where}: {len(readings[0].names)} names for {outputs} outputs; correct its files, or --labels"
        )

    matches, faults = [], []
    for reading in complete:
        try:
            matches.append((_by_names(reading.names, classes, where=where), reading.words))
        except InputError as error:
            faults.append(error)
    if not matches:
        raise faults[0]
    indices, words = matches[0]
    for other, other_words in matches[1:]:
        if other != indices:
            raise InputError(
                f"{where}: the names fit the classes of the data in two orders, {words} ({_pairs(classes, indices)}), "
                f"and {other_words} ({_pairs(classes, other)}); write the file of --labels with a name in each line "
                "and nothing else"
            )
    return indices, words


def _pairs(classes, indices):
    return few([f"{name} is output {index}" for name, index in zip(classes, indices, strict=True)])


def _stated(
    labels: Sequence[str] | None, classes: Sequence[str], outputs: int, asked: str | None
) -> list[OutputNames] | str:
    """Every way to read the names of the outputs, or, where they are those of the classes, who says so."""
    if asked == POSITION:
        return "by position, as asked"
    if asked:
        return [OutputNames(one.names, f"as --labels says, {one.words}") for one in asked_names(asked)]
    if labels is not None:
        return [OutputNames(tuple(labels), "by the names in the model's files")]
    if outputs == len(imagenet_names()):
        known = {spelling for wnid in imagenet_names() for spelling in _spellings(wnid)}
        if all(known & {*_spellings(name)} for name in classes):
            return [OutputNames(tuple(imagenet_names()), "in ImageNet's order, by wnids or names")]
    return "by position: the model names none"


def _by_names(labels: Sequence[str], classes: Sequence[str], *, where: str) -> list[int]:
    """Output for each class of the data (K,); InputError, naming both, for what may be two outputs or orders."""
    named = _Outputs(labels, where)
    indices = [named.output_of(name) for name in classes]
    missing = [name for name, index in zip(classes, indices, strict=True) if index is None]
    numbers = [int(name) if is_number(name) else len(labels) for name in classes]
    are_numbers = max(numbers) < len(labels)
    if are_numbers and len(missing) == len(classes):
        return numbers
    if missing:
        raise InputError(
            f"{where}: {len(missing)} of {len(classes)} classes of the data are none of the model's outputs: "
            f"{few(missing)}; the model has {few(list(labels))}. Rename the classes, or add --labels (make: LABELS=), "
            "a file with the name of each output in a line, or position"
        )
    matched = [index for index in indices if index is not None]
    if are_numbers and matched != numbers:
        raise InputError(
            f"{where}: the classes of the data are numbers, which are both names of the outputs "
            f"({_pairs(classes, matched)}) and their places ({_pairs(classes, numbers)}); --labels position (make: "
            "LABELS=position) takes the places, and classes that are not called by numbers are matched by name"
        )
    twice = next((index for index in matched if matched.count(index) > 1), None)
    if twice is not None:
        raise InputError(f"{where}: several classes of the data are its output {labels[twice]!r}; merge them")
    return matched


class _Outputs:
    """Outputs of a model by their names: by wnid, by the whole name, and by each name of several."""

    def __init__(self, labels: Sequence[str], where: str) -> None:
        self.labels, self.where = labels, where
        self.by_wnid: dict[str, list[int]] = {}
        self.by_whole_name: dict[str, list[int]] = {}
        self.by_any_name: dict[str, list[int]] = {}
        for index, label in enumerate(labels):
            self.by_wnid.setdefault(_wnid_of(label), []).append(index)
            self.by_whole_name.setdefault(_folded(label), []).append(index)
            for name in {*_spellings(label)}:
                self.by_any_name.setdefault(name, []).append(index)

    def output_of(self, name: str) -> int | None:
        """Output of this class, None where none has its name; InputError where several have it."""
        wnid = _wnid_of(name)
        outputs = self.by_wnid.get(wnid, []) if wnid else []
        outputs = outputs or self.by_whole_name.get(_folded(name), [])
        if not outputs:
            outputs = sorted({index for one in _spellings(name) for index in self.by_any_name.get(one, [])})
        if len(outputs) > 1 and len(self.labels) == len(imagenet_names()) and wnid in imagenet_names():
            # Two of ImageNet's classes are called crane, and two maillot: their wnids have a place of their own.
            outputs = [index for index in outputs if index == list(imagenet_names()).index(wnid)] or outputs
        if len(outputs) > 1:
            raise InputError(
                f"{self.where}: class {name!r} of the data may be output {outputs[0]} ({self.labels[outputs[0]]!r}) or "
                f"{outputs[1]} ({self.labels[outputs[1]]!r}); give each output a name of its own by --labels (make: "
                "LABELS=)"
            )
        return outputs[0] if outputs else None


def _wnid_of(name):
    # The wnid that a name is, or starts with.
    first = name.split(maxsplit=1)[0] if name.strip() else ""
    return first if WNID.fullmatch(first) else ""


def _folded(name):
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _spellings(name: str) -> list[str]:
    """Names that a name may stand for: itself, those between commas, and those of a wnid, which may be in front."""
    parts = [name, *name.split(",")]
    wnid = _wnid_of(name)
    if wnid:
        meaning = imagenet_names().get(wnid, "")
        rest = name.strip().removeprefix(wnid)
        parts += [wnid, rest, *rest.split(","), meaning, *meaning.split(",")]
    return [spelling for spelling in map(_folded, parts) if spelling]


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
