"""Outputs of a network that hold its logits: which of several, before which last operator, or logarithms of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.settings import LOGARITHMS, WHITE
from gfscore.networks.batch_invariance import spread_over
from gfscore.networks.classifier import Classifier
from gfscore.networks.model_source import Settings, module_of
from gfscore.networks.outputs import Output, SeveralOutputs
from gfscore.statistics.logits import ONE_SIGMOID, TOTALS, probabilities_in
from gfscore.workflow.new_audit.class_order import check_logits, match_classes
from gfscore.workflow.new_audit.new_model import NewModel
from gfscore.workflow.new_audit.request import Request

DISTRIBUTIONS = (TOTALS[1], ONE_SIGMOID)
"""Outputs whose logarithms are logits: probabilities that sum to 1, and the probability of one of two classes."""

SHOWN = 64
"""Images on which outputs are told from probabilities."""


@dataclass(frozen=True)
class OpenedModel:
    """A classifier that gives logits.

    Parameters
    ----------
    classifier : Classifier
    settings : mapping
        Settings of its source by which it was opened.
    words : list of str
        What had to be chosen for that.
    """

    classifier: Classifier
    settings: Settings
    words: list[str]


def open_for_logits(
    model: NewModel,
    request: Request,
    *,
    classes: Sequence[str],
    images: NDArray[np.float32],
    open_entry: Callable[[Settings], Classifier],
) -> OpenedModel:
    """Open a model so that it gives logits, by its settings `output`, `head` and `allow_probabilities` where needed.

    Parameters
    ----------
    model : NewModel
        The model as its files describe it.
    request : Request
        Options.
    classes : sequence of str
        Names of the classes of the data.
    images : ndarray
        (n, C, H, W) with pixels in [0, 1].
    open_entry : callable
        Opens the classifier of settings.

    Raises
    ------
    InputError
        Naming file and option, where several outputs fit or none, and for probabilities that the request does not
        allow.
    """
    settings = dict(model.entry)
    words = []
    if request.output is not None:
        settings["output"] = _as_setting(request.output)
        words.append(f"output {request.output}, as asked")
    try:
        classifier = open_entry(settings)
    except SeveralOutputs as error:
        output = _fitting_output(error, model, request, classes)
        settings["output"] = _as_setting(output.name)
        words.append(f"{output}, the only one of {len(error.outputs)} outputs that fits the classes")
        classifier = open_entry(settings)

    head_of = getattr(module_of(settings["source"]), "head_of", None)
    head = None
    if head_of is not None:
        head = head_of({**settings, "image_shape": images.shape[1:]}, Path(model.path))
    if head is not None:
        settings["head"] = head
        classifier = open_entry(settings)
    if classifier.one_column and len(classes) > 2:
        raise InputError(
            f"{model.path}: has one output, which tells two classes apart, and the data have {len(classes)} "
            f"({few(classes)}); give images of its two classes"
        )

    values = _values_for_any_pixels(classifier, images)
    kind = kind_of_outputs(values)
    if kind in DISTRIBUTIONS and request.probabilities:
        settings["allow_probabilities"] = LOGARITHMS
        classifier = open_entry(settings)
    elif kind in DISTRIBUTIONS:
        # Refused before anything is tried, as no preprocessing makes logits of probabilities.
        check_logits(values, np.zeros(len(values), dtype=np.int64), where=model.path, kind=kind)
    if classifier.outputs:
        words.append(classifier.outputs)
    return OpenedModel(classifier, settings, words)


def _as_setting(name: str) -> str | int:
    # As a number where it is one, so that the file of the audit shows it without quotes.
    if name.isdecimal() and str(int(name)) == name:
        return int(name)
    return name


def _fitting_output(error: SeveralOutputs, model: NewModel, request: Request, classes: Sequence[str]) -> Output:
    # The only output that may hold the logits of the classes.
    fitting = []
    for output in error.outputs:
        outputs = output.classes(error.images)
        if outputs is None:
            continue
        try:
            match_classes(model.labels, classes, outputs, option=request.labels, where=model.path)
        except InputError:
            continue
        fitting.append(output)
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(map(str, fitting or error.outputs))
    fault = f"{len(fitting)} of its outputs may be" if fitting else f"none of its {len(error.outputs)} outputs fits"
    raise InputError(
        f"{model.path}: {fault} the logits of {len(classes)} classes: {names}; add --output with the name of the right "
        "one, or its place from 0 (make: OUTPUT=)"
    )


# ---- probabilities in place of logits ----


def _values_for_any_pixels(classifier: Classifier, images: NDArray[np.float32]) -> NDArray[np.float32]:
    # Probabilities are probabilities whatever is shown, while logits of a network that takes pixels up to 255 may all
    # be small for pixels up to 1.
    pictures = images[spread_over(len(images), SHOWN)]
    batches = [pictures, WHITE * pictures, 2 * pictures - 1]
    values = np.concatenate([classifier.logits(batch) for batch in batches])
    # A softmax of several operators may overflow on pixels that the network does not take.
    finite = np.isfinite(values).all(axis=1)
    return values[finite] if finite.any() else values


def kind_of_outputs(values: NDArray[np.floating]) -> str | None:
    """Kind of probabilities that outputs (n, K) are; None for logits.

    As in probabilities_in, but one output z in [0, 1] is a probability whatever its size: a binary classifier (0, z)
    with such logits would always answer the second class.

    Parameters
    ----------
    values : ndarray
        (n, K) of floats.

    Returns
    -------
    str or None
        One of the values of TOTALS, ONE_SIGMOID or SIGMOIDS; None for logits.
    """
    one_output = values.shape[1] == 2 and not values[:, 0].any()
    if one_output and values[:, 1].min() >= 0 and values[:, 1].max() <= 1 and np.ptp(values[:, 1]) > 0:
        return ONE_SIGMOID
    return probabilities_in(values)


def require_use_of_probabilities(request: Request, entries: Sequence[Settings]) -> None:
    """Raise InputError where a request takes logarithms of probabilities, and no model gives any."""
    if request.probabilities and not any("allow_probabilities" in entry for entry in entries):
        raise InputError(
            "--probabilities: no model here gives probabilities alone (where a graph ends in a softmax or sigmoid, "
            "logits are taken before it); leave it out"
        )
