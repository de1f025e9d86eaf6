"""Clean accuracy: whether the undisturbed sample is classified correctly."""

from typing import TYPE_CHECKING, Literal

from gfscore.measures.declaration import Kind, Measure, Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Clean(Settings):
    """Clean accuracy."""

    kind: Literal["clean"] = "clean"


def describe(_settings: Clean) -> Measure:
    """Range, unit and meaning of the measure, which has no settings."""
    return Measure(
        title="Clean accuracy",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation="1 when the undisturbed sample is classified correctly, else 0. A tie at the top is an error.",
    )


def measure_logits(
    logits: "NDArray[np.floating]", labels: "NDArray[np.integer]", *, settings: Clean
) -> dict[str, "NDArray[np.generic] | bool"]:
    """Whether each sample is classified correctly.

    Parameters
    ----------
    logits : ndarray
        (N, K).
    labels : ndarray
        (N,) int.
    settings : Clean
        Has no influence.

    Returns
    -------
    dict
        Columns of the samples table: prediction; value, 1 where it is the label, else 0; censored, always false.
    """
    # Declarations are read without numpy.
    from gfscore.statistics.margins import predictions

    prediction = predictions(logits, labels)
    return {"prediction": prediction, "value": (prediction == labels).astype(float), "censored": False}


def import_radii(
    label: "NDArray[np.integer]", prediction: "NDArray[np.integer]", radius: "NDArray[np.float64]"
) -> dict[str, "NDArray[np.generic]"]:
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
