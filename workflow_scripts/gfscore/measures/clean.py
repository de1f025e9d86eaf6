"""Clean accuracy: whether the undisturbed sample is classified correctly."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from gfscore.measures.declaration import Kind, Measure, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Clean(Settings):
    """Clean accuracy."""

    kind: Literal["clean"] = "clean"


def describe(_settings: Clean) -> Measure:
    """What the measure is; it has no settings."""
    return Measure(
        title="Clean accuracy",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation="1 when the undisturbed sample is classified correctly, else 0. A tie at the top is an error.",
    )


def measure_logits(
    logits: "NDArray[Any]", labels: "NDArray[Any]", *, settings: Mapping[str, Any]
) -> dict[str, "NDArray[Any] | bool"]:
    """Columns of N samples from logits (N, K) and labels (N,): value 1 where the prediction is the label, else 0."""
    from gfscore.statistics.margins import predictions

    prediction = predictions(logits, labels)
    return {"prediction": prediction, "value": (prediction == labels).astype(float), "censored": False}


def import_radii(
    label: "NDArray[Any]", prediction: "NDArray[Any]", radius: "NDArray[Any]"
) -> dict[str, "NDArray[Any]"]:
    """Columns of N samples whose certified prediction is known: whether the smoothed classifier is right."""
    return {"value": (prediction == label).astype(float)}


KIND = Kind(
    name="clean",
    settings=Clean,
    describe=describe,
    needs="logits",
    predicts=True,
    function="gfscore.measures.clean:measure_logits",
    imported="gfscore.measures.clean:import_radii",
    value="1 if it is classified correctly",
    passes="1, shared by all measures from logits",
)
