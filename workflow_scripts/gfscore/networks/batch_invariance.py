"""Check that the logits of an image are deterministic and do not depend on the other images of its batch.

Scores, attacks and digests of logits require this. It is violated by layers in training mode (dropout, batch
normalisation), batch statistics and randomised defences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.outputs import Images, Logits, StoredPixels, first_line

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

SAMPLES = 8
"""Number of images that are computed again, spread over all batches."""


class Tolerances(NamedTuple):
    """Largest differences between two computations of one image's logits that count as rounding.

    Attributes
    ----------
    repeated : float
        Between two runs on the image, relative to the range of the logits.
    alone : float
        Between the image alone and in its batch, relative to the range of the logits. Rounding causes 1e-5 in float32
        and 0.05 in bfloat16; the rest is a margin for networks that round internally (integers, adaptive solvers).
    offset : float
        Added to both, relative to the largest logit: rounding of logits far from 0.
    """

    repeated: float
    alone: float
    offset: float


OF_FLOAT32 = Tolerances(repeated=1e-3, alone=0.05, offset=1e-5)
"""Tolerances of plain float32."""

WIDER = Tolerances(repeated=0.05, alone=0.2, offset=2**-5)
"""Tolerances of faster arithmetic, which rounds more coarsely."""


def spread_over(n: int, samples: int) -> NDArray[np.int64]:
    """Rows of images, (m,) ascending, m <= `samples`, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, samples).astype(np.int64))


def tolerances_of(number_type: str) -> Tolerances:
    """Tolerances of logits in a number type: WIDER for bfloat16, else OF_FLOAT32."""
    return WIDER if number_type == "bfloat16" else OF_FLOAT32


def require_invariant(
    run: Callable[[Any], Logits],
    images: Images | StoredPixels,
    rows: NDArray[np.int64],
    logits: Logits,
    *,
    tolerances: Tolerances,
    where: str,
) -> None:
    """Refuse logits of an image that differ between its batch and the image alone, or from run to run.

    Parameters
    ----------
    run : callable
        From images to logits.
    images : ndarray
        A batch of b images, in the form that `run` takes.
    rows : ndarray of int
        The images of the batch that are computed again one by one, (m,).
    logits : ndarray
        Logits (b, K) of the batch. Non-finite ones are not checked, since score_models refuses them.
    tolerances : Tolerances
        OF_FLOAT32 or WIDER, whichever the arithmetic needs.
    where : str
        The classifier, for messages.

    Raises
    ------
    InputError
    """
    if not rows.size or not np.isfinite(logits).all():
        return
    spread = np.ptp(logits.astype(np.float64))
    offset = tolerances.offset * np.abs(logits).max()
    alone = np.stack([_logits_alone(run, images[row], logits.shape[1], where) for row in rows])
    distances = _distances(alone, logits[rows])
    worst = np.argmax(distances)
    if distances[worst] <= offset + tolerances.repeated * spread:
        return

    # The worst image is run once more, to tell a random network from one whose images depend on their batch.
    again = _logits_alone(run, images[rows[worst]], logits.shape[1], where)
    (repeated,) = _distances(again[None], alone[worst][None])
    if repeated > offset + tolerances.repeated * spread:
        raise InputError(
            f"{where}: the logits of one image differ by {repeated:.3g} from run to run (range of all logits "
            f"{spread:.3g}), so the network is random; disable dropout and random layers in evaluation, or seed them"
        )
    if distances[worst] > offset + tolerances.alone * spread:
        raise InputError(
            f"{where}: the logits of one image differ by {distances[worst]:.3g} between a batch and the image alone "
            f"(range of all logits {spread:.3g}), so they depend on the other images; disable batch statistics, such "
            "as batch normalisation in training mode, and noise seeded per batch in evaluation"
        )


def require_invariant_in_memory(classifier: Classifier, images: Images) -> None:
    """Refuse a classifier that a program made, and whose logits of images (n, C, H, W) are not as `require_invariant`
    demands.

    The number type in which it computes is unknown, so the tolerances are WIDER.
    """
    require_invariant(
        classifier.logits,
        images,
        np.arange(len(images)),
        classifier.logits(images.copy()),
        tolerances=WIDER,
        where=f"model {classifier.architecture}",
    )


def _logits_alone(
    run: Callable[[Any], Logits], image: Images | StoredPixels, classes: int, where: str
) -> NDArray[np.float64]:
    copy = image[None].copy()
    try:
        logits = np.asarray(run(copy), dtype=np.float64)
    # The code of a model may raise anything.
    except Exception as error:
        raise InputError(
            f"{where}: fails on a single image ({first_line(error)}); make it accept any number of images"
        ) from error
    if not np.array_equal(copy[0], image):
        raise InputError(
            f"{where}: modifies its input images in place; make it compute new tensors (x = x - mean, not x -= mean or "
            "x.sub_(mean))"
        )
    if logits.size != classes:
        raise InputError(
            f"{where}: returns {logits.size} values for one image, but {classes} logits per image in a batch; make it "
            "return (n, K)"
        )
    return logits.reshape(classes)


def _distances(first: NDArray[np.float64], second: NDArray[np.floating]) -> NDArray[np.float64]:
    # Largest difference of each row; inf for NaN, which exceeds every tolerance.
    with np.errstate(invalid="ignore"):
        differences = np.abs(first - second).max(axis=1)
    return np.where(np.isnan(differences), np.inf, differences)
