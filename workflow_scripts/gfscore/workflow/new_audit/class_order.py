"""Matching the classes of the data to the outputs of a model by their names, and checking the match on its answers."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from gfscore.core.errors import InputError, few
from gfscore.core.labels import WNID, imagenet_names, is_number
from gfscore.statistics.logits import ONE_SIGMOID, TOTALS, ProbabilitiesGiven, require_logits
from gfscore.workflow.new_audit.output_names import OutputNames, names_of_option
from gfscore.workflow.new_audit.preprocessing_trials import ERROR, binomial_tail

POSITION = "position"
"""Value of --labels for outputs in the order of the classes."""

REMEDIES = {
    TOTALS[1]: "give the values before the softmax, or add --probabilities (make: PROBABILITIES=1) to take their "
    "logarithms",
    ONE_SIGMOID: "give the value before the sigmoid, or add --probabilities (make: PROBABILITIES=1) to take logarithms",
    TOTALS[100]: "give the values before the softmax, or divided by 100",
    TOTALS[255]: "give the values before the softmax",
}
"""Kind of outputs that are probabilities -> what the user can do."""


def match_classes(
    labels: Sequence[str] | None, classes: Sequence[str], outputs: int, *, option: str | None, where: str
) -> tuple[list[int], str]:
    """Output of the model for each class of the data, by position or by names; nothing is guessed.

    Parameters
    ----------
    labels : sequence of str or None
        Names of the model's outputs; None where nothing states them.
    classes : sequence of str
        K names in the data.
    outputs : int
        Number of outputs of the model.
    option : str or None
        Value of --labels: "position", names separated by commas, or a file of names.
    where : str
        File that errors name.

    Returns
    -------
    indices : list of int
        Output of each class, of length K.
    words : str
        How outputs and classes were matched, for the user.

    Raises
    ------
    InputError
        For classes that match no output or several, and for names that fit two orders; lists them.
    """
    reason_for_position = _reason_for_position(labels, classes, outputs, option)
    if reason_for_position:
        if outputs != len(classes):
            raise InputError(
                f"{where}: has {outputs} outputs, the data {len(classes)} classes ({few(classes)}), and nothing tells "
                "the output of a class; add --labels (make: LABELS=), a file with the name of each output in a line"
            )
        return list(range(outputs)), reason_for_position

    # Every way to read the names of the outputs.
    if option:
        readings = [replace(reading, words=f"as --labels says, {reading.words}") for reading in names_of_option(option)]
    elif labels is not None:
        readings = [OutputNames(tuple(labels), "by the names in the model's files")]
    else:
        readings = [OutputNames(tuple(imagenet_names()), "in ImageNet's order, by wnids or names")]
    complete = [reading for reading in readings if len(reading.names) == outputs]
    if not complete:
        raise InputError(
            f"{where}: {len(readings[0].names)} names for {outputs} outputs; correct its files, or --labels"
        )
    return _only_match(complete, classes, where=where)


def _only_match(readings: Sequence[OutputNames], classes: Sequence[str], *, where: str) -> tuple[list[int], str]:
    # Match by the readings that name every class. InputError where none does, and where two give different orders.
    matches = []
    errors = []
    for reading in readings:
        try:
            matches.append(_match_names(reading, classes, where=where))
        except InputError as error:
            errors.append(error)
    if not matches:
        raise errors[0]
    indices, words = matches[0]
    for other_indices, other_words in matches[1:]:
        if other_indices != indices:
            raise InputError(
                f"{where}: the names fit the classes of the data in two orders, {words} ({_pairs(classes, indices)}), "
                f"and {other_words} ({_pairs(classes, other_indices)}); write the file of --labels with a name in each "
                "line and nothing else"
            )
    return indices, words


def _reason_for_position(labels: Sequence[str] | None, classes: Sequence[str], outputs: int, option: str | None) -> str:
    # Why the outputs are taken in the order of the classes; empty where names decide.
    if option == POSITION:
        return "by position, as asked"
    if option or labels is not None:
        return ""
    if outputs == len(imagenet_names()):
        imagenet_spellings: set[str] = set()
        for wnid in imagenet_names():
            imagenet_spellings.update(_spellings(wnid))
        if all(imagenet_spellings.intersection(_spellings(name)) for name in classes):
            return ""
    return "by position: the model names none"


def _match_names(reading: OutputNames, classes: Sequence[str], *, where: str) -> tuple[list[int], str]:
    # Output of each class of the data (K,), and how they were matched. Classes that are numbers may be names or
    # positions of outputs. InputError where a number is both, of different outputs; for a class without an output; for
    # one that may be two outputs; and for two classes with one output.
    labels = reading.names
    named_outputs = _NamedOutputs(labels, where)
    by_name = []
    unnamed = []
    for name in classes:
        index = named_outputs.output_of(name)
        if index is None:
            unnamed.append(name)
        else:
            by_name.append(index)

    positions = [int(name) if is_number(name) else len(labels) for name in classes]
    are_positions = max(positions) < len(labels)
    if are_positions and not by_name:
        indices, words = positions, "by position: the classes of the data are numbers"
    elif unnamed:
        raise InputError(
            f"{where}: {len(unnamed)} of {len(classes)} classes of the data are none of the model's outputs: "
            f"{few(unnamed)}; the model has {few(list(labels))}. Rename the classes, or add --labels (make: LABELS=), "
            "a file with the name of each output in a line, or position"
        )
    elif are_positions and by_name != positions:
        raise InputError(
            f"{where}: the classes of the data are numbers, and these are names of some outputs "
            f"({_pairs(classes, by_name)}) and positions of others ({_pairs(classes, positions)}); --labels position "
            "(make: LABELS=position) takes the positions; to match by names, give the classes names that are no numbers"
        )
    else:
        indices, words = by_name, reading.words

    used = set()
    for index in indices:
        if index in used:
            raise InputError(f"{where}: several classes of the data are its output {labels[index]!r}; merge them")
        used.add(index)
    return indices, words


def _pairs(classes: Sequence[str], indices: Sequence[int]) -> str:
    return few([f"{name} is output {index}" for name, index in zip(classes, indices, strict=True)])


class _NamedOutputs:
    # Outputs of a model by each kind of name (see _names_of).

    def __init__(self, labels: Sequence[str], where: str) -> None:
        self.labels = labels
        self.where = where
        self.outputs_by_name: tuple[dict[str, set[int]], ...] = ({}, {}, {})
        for index, label in enumerate(labels):
            for outputs, names in zip(self.outputs_by_name, _names_of(label), strict=True):
                for name in names:
                    outputs.setdefault(name, set()).add(index)

    def output_of(self, name: str) -> int | None:
        # Output of a class, by the surest kind of name that any output has; None without one, InputError for several.
        candidates: set[int] = set()
        for outputs, spellings in zip(self.outputs_by_name, _names_of(name), strict=True):
            for spelling in spellings:
                candidates |= outputs.get(spelling, set())
            if candidates:
                break

        wnid = _wnid_of(name)
        if len(candidates) > 1 and len(self.labels) == len(imagenet_names()) and wnid in imagenet_names():
            # ImageNet has two classes called crane and two called maillot; their wnids tell them apart.
            position = list(imagenet_names()).index(wnid)
            if position in candidates:
                return position
        if len(candidates) > 1:
            first, second = sorted(candidates)[:2]
            raise InputError(
                f"{self.where}: class {name!r} of the data may be output {first} ({self.labels[first]!r}) or "
                f"{second} ({self.labels[second]!r}); give each output a name of its own by --labels (make: LABELS=)"
            )
        return min(candidates, default=None)


def _wnid_of(name: str) -> str:
    # The wnid at the start of a name; empty without one.
    words = name.split(maxsplit=1)
    if words and WNID.fullmatch(words[0]):
        return words[0]
    return ""


def _names_of(name: str) -> tuple[list[str], list[str], list[str]]:
    # Names of a class or an output for the matching, the surest kind first: wnid, whole name, every spelling.
    return list(filter(None, [_wnid_of(name)])), [_folded(name)], _spellings(name)


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _spellings(name: str) -> list[str]:
    # The name and its parts between commas. Of a name with a wnid also the wnid, the rest, and ImageNet's name of it.
    names = [name, *name.split(",")]
    wnid = _wnid_of(name)
    if wnid:
        rest = name.strip().removeprefix(wnid)
        meaning = imagenet_names().get(wnid, "")
        names += [wnid, rest, *rest.split(","), meaning, *meaning.split(",")]
    return list(filter(None, map(_folded, names)))


def check_order(
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    classes: Sequence[str],
    *,
    where: str,
    remedy: str = "correct them, or add --labels (make: LABELS=)",
) -> float:
    """Check that logits are in the data's order of classes, and return their accuracy.

    Parameters
    ----------
    logits : ndarray
        (n, K).
    labels : ndarray
        (n,) int.
    classes : sequence of str
        K names.
    where : str
        File that errors name.
    remedy : str
        What the user can do about another order.

    Raises
    ------
    InputError
        Where another order of the classes is surely better: it is chosen on one half of the images by linear
        assignment, and tested on the other half. Also where the accuracy is no better than guessing.
    """
    k = logits.shape[1]
    answers = logits.argmax(axis=1)
    correct = answers == labels
    # The order is chosen on every other sample of each class, and tested on the rest.
    choosing = np.empty(len(labels), dtype=bool)
    choosing[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % 2 == 0
    class_of_output = _best_order(answers[choosing], labels[choosing], k)
    correct_reordered = class_of_output[answers] == labels
    gains = int((correct_reordered & ~correct)[~choosing].sum())
    losses = int((correct & ~correct_reordered)[~choosing].sum())
    if gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR:
        # The message names the best order on all images.
        class_of_output = _best_order(answers, labels, k)
        reordered_accuracy = (class_of_output[answers] == labels).mean()
        moves = []
        for output, best_class in enumerate(class_of_output):
            if output != best_class:
                moves.append(f"{classes[output]} -> {classes[best_class]}")
        raise InputError(
            f"{where}: answers fit the labels in another order of the classes ({correct.mean():.1%} right, "
            f"{reordered_accuracy:.1%} after {few(moves)}); the labels, or the names of the outputs, are mixed up: "
            f"{remedy}"
        )
    # The best guess is always the most frequent class.
    guessing = max(1 / k, np.bincount(labels).max() / len(labels))
    if binomial_tail(int(correct.sum()), len(correct), guessing) > ERROR:
        raise InputError(
            f"{where}: {correct.mean():.1%} of {len(correct)} samples are right, no more than by guessing among {k} "
            "classes. Likely causes: labels in another order than the outputs (--labels), another preprocessing "
            "(--preprocessing), weights of another network, or data that it was not made for"
        )
    return float(correct.mean())


def _best_order(answers: NDArray[np.integer], labels: NDArray[np.integer], k: int) -> NDArray[np.int64]:
    # Class of each output (K,), each class once, with the highest accuracy.
    counts = np.zeros((k, k))
    np.add.at(counts, (answers, labels), 1)
    # The rows of a square matrix come back in order.
    _, class_of_output = linear_sum_assignment(-counts)
    return class_of_output


def check_logits(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, where: str, kind: str | None = None
) -> None:
    """Raise InputError for outputs that are probabilities, or no finite numbers.

    Parameters
    ----------
    logits : ndarray
        (n, K).
    labels : ndarray
        (n,) int.
    where : str
        File that errors name.
    kind : str, optional
        Kind of the outputs, if it is known to be one of gfscore.statistics.logits.probabilities_in.
    """
    try:
        if kind is not None:
            raise ProbabilitiesGiven(where, kind)
        require_logits(logits, labels, source=where)
    except ProbabilitiesGiven as error:
        remedy = REMEDIES.get(error.kind, "give the values before the sigmoid, or multiplied by the scale")
        raise InputError(f"{where}: {error.fault}; {remedy}") from error
