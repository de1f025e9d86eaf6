"""Check that the logits of an image are deterministic and do not depend on the other images of its batch.

Scores, attacks and digests of logits require this. It is violated by layers in training mode (dropout, batch
normalisation), batch statistics and randomised defences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.outputs import Images, Logits, StoredPixels, first_line

SAMPLES = 8
"""Number of images that are computed again, spread over all batches."""

REPEATED = {True: 1e-3, False: 0.05}
"""Largest difference between two runs on one image, relative to the range of the logits: in float32 (True), and in
faster arithmetic (False)."""

ALONE = {True: 0.05, False: 0.2}
"""Largest difference between an image alone and in its batch, relative to the range of the logits, in float32 (True)
and in faster arithmetic (False). Rounding alone causes 1e-5 in float32 and 0.05 in bfloat16; the rest is a margin for
networks that round internally (integers, adaptive solvers)."""

OFFSET = {True: 1e-5, False: 2**-5}
"""Rounding error of logits far from 0, relative to the largest."""


def spread_over(n: int, samples: int) -> NDArray[np.int64]:
    """Rows of images, (m,) ascending, m <= `samples`, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, samples).astype(np.int64))


def rounds_finely(number_type: str) -> bool:
    """Whether logits in a number type are rounded as finely as in float32 at least, or nearly so, as in float16."""
    return number_type != "bfloat16"


def require_invariant(
    run: Callable[[Any], Logits],
    images: Images | StoredPixels,
    rows: NDArray[np.int64],
    logits: Logits,
    *,
    plain: bool,
    where: str,
) -> None:
    """Refuse logits of an image that differ between its batch and the image alone, or from run to run.

    Parameters
    ----------
    run : callable
        From images to logits.
    images : ndarray
        A batch of b images, as `run` takes them.
    rows : ndarray of int
        The images of the batch that are computed again one by one, (m,).
    logits : ndarray
        Logits (b, K) of the batch. Non-finite ones are not checked, since score_models refuses them.
    plain : bool
        Whether the arithmetic is plain float32.
    where : str
        The classifier, for messages.

    Raises
    ------
    InputError
    """
    if not rows.size or not np.isfinite(logits).all():
        return
    spread = np.ptp(logits.astype(np.float64))
    offset = OFFSET[plain] * np.abs(logits).max()
    alone = np.stack([_logits_alone(run, images[row], logits.shape[1], where) for row in rows])
    distances = _distances(alone, logits[rows])
    worst = np.argmax(distances)
    # Comparisons are written so that NaN, for which every comparison is false, is refused too.
    if distances[worst] <= offset + REPEATED[plain] * spread:
        return

    again = _logits_alone(run, images[rows[worst]], logits.shape[1], where)
    (repeated,) = _distances(again[None], alone[worst][None])
    if not repeated <= offset + REPEATED[plain] * spread:
        raise InputError(
            f"{where}: the logits of one image differ by {repeated:.3g} from run to run (range of all logits "
            f"{spread:.3g}), so the network is random; disable dropout and random layers in evaluation, or seed them"
        )
    if not distances[worst] <= offset + ALONE[plain] * spread:
        raise InputError(
            f"{where}: the logits of one image differ by {distances[worst]:.3g} between a batch and the image alone "
            f"(range of all logits {spread:.3g}), so they depend on the other images; disable batch statistics, such "
            "as batch normalisation in training mode, and noise seeded per batch in evaluation"
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
    with np.errstate(invalid="ignore"):
        differences = np.abs(first - second).max(axis=1)
    return np.where(np.isnan(differences), np.inf, differences)
