"""The attack-free margin score (GREAT): how clearly the true class wins."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gfscore.measures.declaration import Kind, Measure, Settings
from gfscore.statistics import SCALE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


NEED_LOGITS = ("sigmoid", "softmax-of-sigmoid")
"""Activations that change with a number added to all logits of a sample, which logarithms of probabilities lack."""


class Great(Settings):
    """Attack-free margin score."""

    kind: Literal["great"] = "great"
    activation: Annotated[
        Literal["sigmoid", "softmax", "sigmoid-of-softmax", "softmax-of-sigmoid"],
        Field(description="Output layer of the score."),
    ] = "softmax"


def describe(_settings: Great) -> Measure:
    """Range, unit and meaning of the measure, the same for every activation."""
    return Measure(
        title="Attack-free margin score (GREAT)",
        value_range=(0.0, SCALE),
        unit="score, 0 to 1.2533",
        explanation=(
            "How clearly the true class wins over the best other class after the activation, scaled by sqrt(pi/2); "
            "0 when misclassified. Needs only logits. It is not a certified radius."
        ),
    )


def measure_logits(
    logits: "NDArray[np.floating]", labels: "NDArray[np.integer]", *, settings: Great
) -> dict[str, "NDArray[np.generic] | bool"]:
    """Margin score of each sample at temperature 1.

    Parameters
    ----------
    logits : ndarray
        (N, K).
    labels : ndarray
        (N,) int.
    settings : Great
        The activation.

    Returns
    -------
    dict
        Columns of the samples table: prediction; value in [0, sqrt(pi/2)]; censored, always false.
    """
    # Declarations are read without numpy.
    from gfscore.statistics.margins import predictions, scores

    value = scores(logits, labels, activation=settings.activation)
    return {"prediction": predictions(logits, labels), "value": value, "censored": False}


KIND = Kind(
    name="great",
    settings=Great,
    named_by=("activation",),
    describe=describe,
    needs="logits",
    function="gfscore.measures.great:measure_logits",
    value="lead of the true class over the best other one after an activation, times sqrt(pi/2); 0 if wrong",
    passes="1, shared by all measures from logits",
)
