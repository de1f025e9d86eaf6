"""Which of a model's outputs holds its logits, and what they are made of, found out on labelled images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.settings import LOGARITHMS, WHITE
from gfscore.networks.batch_invariance import spread_over
from gfscore.networks.model_source import module_of
from gfscore.networks.outputs import Output, SeveralOutputs
from gfscore.statistics.logits import ONE_SIGMOID, TOTALS, probabilities_in
from gfscore.workflow.new_audit.class_order import check_logits, match_classes
from gfscore.workflow.new_audit.found import FoundModel
from gfscore.workflow.new_audit.request import Request

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

DISTRIBUTIONS = (TOTALS[1], ONE_SIGMOID)
"""Outputs whose logarithms are logits: probabilities that sum to 1, and the probability of one of two classes."""

SHOWN = 64
"""Images on which outputs are told from probabilities."""


def open_for_logits(
    entry: dict[str, Any],
    model: FoundModel,
    request: Request,
    *,
    classes: Sequence[str],
    images: NDArray[np.float32],
    opened: Callable[[Mapping[str, Any]], Classifier],
) -> tuple[Classifier, list[str]]:
    """Classifier that gives logits, and in words what had to be chosen for that.

    `entry` gets the settings `output`, `head` and `allow_probabilities` where the network needs them; `opened` opens
    the classifier of an entry; `classes` are those of the data. Raises InputError, naming file and option, where
    several outputs fit or none, and for probabilities that the request does not allow.
    """
    words = []
    if request.output is not None:
        entry["output"] = _written(request.output)
        words.append(f"output {request.output}, as asked")
    try:
        classifier = opened(entry)
    except SeveralOutputs as error:
        chosen = _fitting(error, model, request, classes)
        entry["output"] = _written(chosen.name)
        words.append(f"{chosen}, the only one of {len(error.outputs)} outputs that fits the classes")
        classifier = opened(entry)
    head_of = getattr(module_of(entry["source"]), "head_of", None)
    head = head_of({**entry, "image_shape": images.shape[1:]}, Path(entry["path"])) if head_of else None
    if head is not None:
        entry["head"] = head
        classifier = opened(entry)
    if classifier.one_column and len(classes) > 2:
        raise InputError(
            f"{entry['path']}: has one output, which tells two classes apart, and the data have {len(classes)} "
            f"({few(classes)}); give images of its two classes"
        )
    values = _shown_whatever_the_pixels(classifier, images)
    kind = kind_of_outputs(values)
    if kind in DISTRIBUTIONS and request.probabilities:
        entry["allow_probabilities"] = LOGARITHMS
        classifier = opened(entry)
    elif kind in DISTRIBUTIONS:
        # Refused here, as no preprocessing makes logits of probabilities.
        check_logits(values, np.zeros(len(values), dtype=np.int64), where=entry["path"], kind=kind)
    if classifier.outputs:
        words.append(classifier.outputs)
    return classifier, words


def _shown_whatever_the_pixels(classifier: Classifier, images: NDArray[np.float32]) -> NDArray[np.float32]:
    # Probabilities are probabilities whatever is shown, while logits of a network that takes pixels up to 255 may all
    # be small for pixels up to 1.
    rows = spread_over(len(images), SHOWN)
    shown = [images[rows], WHITE * images[rows], 2 * images[rows] - 1]
    values = np.concatenate([classifier.logits(batch) for batch in shown])
    # A softmax of several operators may overflow on pixels that the network does not take.
    finite = np.isfinite(values).all(axis=1)
    return values[finite] if finite.any() else values


def _written(name: str) -> str | int:
    # As a number where it is one, so that the file of the audit shows it without quotes.
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def _fitting(error: SeveralOutputs, model: FoundModel, request: Request, classes: Sequence[str]) -> Output:
    where = model.entry["path"]
    fitting = []
    for output in error.outputs:
        k = output.classes(error.images)
        if k is not None and _match(model, classes, k, request):
            fitting.append(output)
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(map(str, fitting or error.outputs))
    fault = f"{len(fitting)} of its outputs may be" if fitting else f"none of its {len(error.outputs)} outputs fits"
    raise InputError(
        f"{where}: {fault} the logits of {len(classes)} classes: {shown}; add --output with the name of the right one, "
        "or its place from 0 (make: OUTPUT=)"
    )


def _match(model, classes, k, request):
    try:
        match_classes(model.labels, classes, k, asked=request.labels, where=model.entry["path"])
    except InputError:
        return False
    return True


def kind_of_outputs(values: NDArray[np.floating]) -> str | None:
    """What outputs (n, K) are that are no logits, as probabilities_in, but for one output whatever its size.

    A binary classifier (0, z) whose z all lie in [0, 1] would always answer the second class.
    """
    one_output = values.shape[1] == 2 and not values[:, 0].any()
    if one_output and values[:, 1].min() >= 0 and values[:, 1].max() <= 1 and np.ptp(values[:, 1]) > 0:
        return ONE_SIGMOID
    return probabilities_in(values)


def require_use_of_probabilities(request: Request, entries: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError where a request takes logarithms of probabilities, and no model gives any."""
    if request.probabilities and not any("allow_probabilities" in entry for entry in entries):
        raise InputError(
            "--probabilities: no model here gives probabilities alone (where a graph ends in a softmax or sigmoid, "
            "logits are taken before it); leave it out"
        )
