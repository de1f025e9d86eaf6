"""Whether the logits of an image are its own: the same at every run, and in whatever batch it stands.

A score, an attack and a digest of logits all rest on it. Layers left in training mode (dropout, batch normalisation),
statistics over a batch and defences that draw random numbers break it, and nothing else of a run would show it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.classifier import first_line

SAMPLES = 8
"""Images that are computed again: few enough to cost nothing, spread over all batches."""

REPEATED = {True: 1e-3, False: 0.05}
"""Largest difference of two runs on one image, in spreads of the logits, in plain float32 and in faster arithmetic."""

ALONE = {True: 0.05, False: 0.2}
"""The same between an image alone and among others. Other sums round differently, but only to 1e-5 in float32 and 0.05
in bfloat16; the rest is for networks that round by themselves (integers, adaptive solvers), from sample to sample."""

OFFSET = {True: 1e-5, False: 2**-5}
"""Difference that rounding makes of logits far from 0, relative to the largest."""


def rows_computed_twice(n: int) -> NDArray[np.int64]:
    """Rows of the images that are computed again, (m,) ascending, m <= SAMPLES, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, SAMPLES).astype(np.int64))


def require_invariant(
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    images: NDArray[np.float32],
    rows: NDArray[np.int64],
    logits: NDArray[np.float32],
    *,
    plain: bool,
    where: str,
) -> None:
    """Refuse a classifier that gives an image other logits alone than in its batch, or at another run, by InputError.

    `run` maps images (n, C, H, W) to logits, which of the batch `images` (b, C, H, W) were `logits` (b, K); `rows` of
    it are computed again, one by one. `plain` says whether the arithmetic is float32 as it is; `where` names the
    classifier. Logits that are not finite are not compared: score_models refuses them.
    """
    if not rows.size or not np.isfinite(logits).all():
        return
    largest = OFFSET[plain] * np.abs(logits).max()
    spread = np.ptp(logits.astype(np.float64))
    alone = np.stack([_single(run, images[row], logits.shape[1], where) for row in rows])
    distance = _distance(alone, logits[rows])
    worst = np.argmax(distance)
    # Written so that NaN, for which every comparison is false, is refused too.
    if distance[worst] <= largest + REPEATED[plain] * spread:
        return
    again = _single(run, images[rows[worst]], logits.shape[1], where)
    repeated = _distance(again[None], alone[worst][None])[0]
    if not repeated <= largest + REPEATED[plain] * spread:
        raise InputError(
            f"{where}: gives one image logits that differ by {repeated:.3g} from run to run (all logits span "
            f"{spread:.3g}): it draws random numbers; take dropout and random layers out of its evaluation, or fix them"
        )
    if not distance[worst] <= largest + ALONE[plain] * spread:
        raise InputError(
            f"{where}: gives one image logits that differ by {distance[worst]:.3g} between a batch and alone (all "
            f"logits span {spread:.3g}): other images in the batch have a say; take statistics over the batch, such "
            "as batch normalisation in training mode, or noise seeded per batch, out of its evaluation"
        )


def _single(run, image, classes, where):
    given = image[None].copy()
    try:
        logits = np.asarray(run(given), dtype=np.float64)
    # Whatever code a model consists of may raise anything; that it cannot take one image is what matters here.
    except Exception as error:
        raise InputError(
            f"{where}: fails on a single image ({first_line(error)}); let it take any number of images, one included"
        ) from error
    if not np.array_equal(given[0], image):
        raise InputError(
            f"{where}: changes the images that it is given, so that the next pass sees others; let it make new ones "
            "(x = x - mean, not x -= mean or x.sub_(mean))"
        )
    if logits.size != classes:
        raise InputError(f"{where}: gives one image {logits.size} values, but {classes} logits in a batch; give (n, K)")
    return logits.reshape(classes)


def _distance(first, second):
    with np.errstate(invalid="ignore"):
        difference = np.abs(first - second).max(axis=1)
    return np.where(np.isnan(difference), np.inf, difference)
