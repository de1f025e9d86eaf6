"""Images with an EXIF orientation: read as they are stored, or turned, whichever surely fits the labels better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.images.encoded import DifferentSizes
from gfscore.networks.batch_invariance import spread_over
from gfscore.workflow.new_audit.data_files import FoundData, looked_at, most_looked_at, turned
from gfscore.workflow.new_audit.found import FoundModel
from gfscore.workflow.new_audit.pixels import Trial, clearly_better
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.new_audit.shown_images import trials_of_readings

STORED, EXIF = "stored", "exif"
"""Readings of an image, values of --orientation: as stored, as torchvision does, and turned by EXIF."""

READ = {STORED: "read as stored", EXIF: "turned by it"}
"""What is said of a reading."""


def as_asked(data: FoundData, request: Request) -> FoundData:
    """Data in the orientation that a request names; InputError for images that are stored as arrays."""
    if request.orientation is None:
        return data
    if data.images.orientations is None:
        raise InputError(
            f"--orientation {request.orientation}: the images of {request.data} are stored as arrays, which have no "
            "EXIF orientation; leave it out (make: ORIENTATION=)"
        )
    return turned(data) if request.orientation == EXIF else data


def in_orientation(
    data: FoundData, models: Sequence[FoundModel], request: Request, tell: Callable[[str], None]
) -> tuple[FoundData, list[str]]:
    """Data in the orientation that surely fits the labels better, and a line on it, none without such images.

    Where neither reading is surely better for any model, images are read as stored.

    Raises
    ------
    InputError
        Where one model surely fits the images as stored, and another the turned ones.
    """
    rows = _turned_rows(data)
    if not rows.size:
        return data, []
    counted = f"EXIF      {len(rows):,} of {len(data.images):,} images have an orientation"
    if request.orientation is not None:
        return data, [f"{counted}: {READ[request.orientation]}, as asked"]

    shown_rows = rows[spread_over(len(rows), most_looked_at(data.images))]
    turned_data = turned(data)
    readings = _both_readings(data, turned_data, shown_rows)
    if readings is None:
        side = min(data.images.image_shape[1:])
        return data, [
            f"{counted}: read as stored, since turned they have another size; to turn them: --orientation exif "
            f"--size {side} (make: ORIENTATION=exif SIZE={side})"
        ]
    labels = data.images.labels[shown_rows].astype(np.int64)
    reading, words = _better_reading(models, data, readings, labels, request=request, tell=tell)
    if reading == EXIF:
        data, _ = looked_at(turned_data)
    return data, [f"{counted}: {READ[reading]}{words}"]


def _turned_rows(data: FoundData) -> NDArray[np.int64]:
    """Rows (n,) of the images that have an orientation other than that of their stored pixels."""
    if data.images.orientations is None:
        return np.arange(0)
    return np.flatnonzero(np.array(list(data.images.orientations())) > 1)


def _both_readings(
    data: FoundData, turned_data: FoundData, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Images (n, C, H, W) of some rows, as stored and turned; None where their sizes then differ."""
    stored_images = np.concatenate(list(data.images.select(rows).batches(64)))
    try:
        turned_images = np.concatenate(list(turned_data.images.select(rows).batches(64)))
    except DifferentSizes:
        return None
    return (stored_images, turned_images) if turned_images.shape == stored_images.shape else None


def _better_reading(
    models: Sequence[FoundModel],
    data: FoundData,
    readings: Sequence[NDArray[np.float32]],
    labels: NDArray[np.int64],
    *,
    request: Request,
    tell: Callable[[str], None],
) -> tuple[str, str]:
    """Reading that surely fits the labels better, STORED where neither does, and why, in words."""
    decided: dict[str, str] = {}
    accuracies = []
    for model in models:
        tell(f"showing {len(labels)} images to {model.name}, as stored and turned")
        stored_trials, exif_trials = trials_of_readings(model, data, readings, labels, request=request)
        stored_best = max(stored_trials, key=_accuracy)
        exif_best = max(exif_trials, key=_accuracy)
        accuracies.append(f"{model.name}: {exif_best.accuracy:.1%} right turned, {stored_best.accuracy:.1%} as stored")
        if _beats_all(exif_best, stored_trials):
            decided[EXIF] = accuracies[-1]
        elif _beats_all(stored_best, exif_trials):
            decided[STORED] = accuracies[-1]
    if len(decided) > 1:
        raise InputError(
            f"{request.data}: images with an EXIF orientation surely fit one model better turned ({decided[EXIF]}) "
            f"and another as stored ({decided[STORED]}); audit these models apart, or add --orientation exif or "
            "--orientation stored (make: ORIENTATION=)"
        )
    for reading, accuracy in decided.items():
        return reading, f", surely better on {len(labels)} of them ({accuracy})"
    return STORED, (
        f" as torchvision does, since neither is surely better on {len(labels)} of them ({accuracies[0]}); "
        "--orientation exif turns them (make: ORIENTATION=exif)"
    )


def _accuracy(trial: Trial) -> float:
    return trial.accuracy


def _beats_all(best: Trial, others: Sequence[Trial]) -> bool:
    """Whether the best trial of one reading is surely better than every trial of the other.

    Corrected for the choice of the best among as many, and for the two directions.
    """
    tests = 2 * len(others) ** 2
    return all(clearly_better(best, other, tests=tests) for other in others)
