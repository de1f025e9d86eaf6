"""Images with an EXIF orientation: read as they are stored, or turned, whichever surely fits the labels better."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gfscore.core.errors import InputError
from gfscore.images.encoded import DifferentSizes, EncodedImages
from gfscore.networks.batch_invariance import spread_over
from gfscore.workflow.new_audit.data_files import NewData, most_shown, turned, with_rows_to_show
from gfscore.workflow.new_audit.new_model import NewModel
from gfscore.workflow.new_audit.preprocessing import Preprocessing, candidates
from gfscore.workflow.new_audit.preprocessing_trials import LabelledPixels, Trial, surely_better
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.new_audit.shown_images import (
    BATCH,
    Images,
    Labels,
    OrderedNetwork,
    affordable_rows,
    arithmetic_of,
    open_model,
)

STORED, EXIF = "stored", "exif"
"""Readings of an image, values of --orientation: as stored, as torchvision does, and turned by EXIF."""

READING_WORDS = {STORED: "read as stored", EXIF: "turned by it"}


def in_requested_orientation(data: NewData, request: Request) -> NewData:
    """Data in the orientation that a request names; InputError for images that are stored as arrays."""
    if request.orientation is None:
        return data
    if not isinstance(data.images, EncodedImages):
        raise InputError(
            f"--orientation {request.orientation}: the images of {request.data} are stored as arrays, which have no "
            "EXIF orientation; leave it out (make: ORIENTATION=)"
        )
    return turned(data) if request.orientation == EXIF else data


def in_better_orientation(
    data: NewData, models: Sequence[NewModel], request: Request, tell: Callable[[str], None]
) -> tuple[NewData, list[str]]:
    """Data in the orientation that surely fits the labels better, and a line on it, none without such images.

    Where neither reading is surely better for any model, images are read as stored.

    Parameters
    ----------
    data : NewData
        Read as stored, or in the orientation that the request names.
    models : sequence of NewModel
        Models that the images are shown to.
    request : Request
        Options.
    tell : callable
        Gets a line of progress now and then.

    Raises
    ------
    InputError
        Where one model surely fits the images as stored, and another the turned ones.
    """
    if not isinstance(data.images, EncodedImages):
        return data, []
    rows = np.flatnonzero(np.array(list(data.images.orientations())) > 1)
    if not rows.size:
        return data, []
    counted = f"EXIF      {len(rows):,} of {len(data.images):,} images have an orientation"
    if request.orientation is not None:
        return data, [f"{counted}: {READING_WORDS[request.orientation]}, as asked"]

    shown_rows = rows[spread_over(len(rows), most_shown(data.images))]
    turned_data = turned(data)
    stored_images = np.concatenate(list(data.images.select(shown_rows).batches(BATCH)))
    try:
        turned_images = np.concatenate(list(turned_data.images.select(shown_rows).batches(BATCH)))
        same_size = turned_images.shape == stored_images.shape
    except DifferentSizes:
        same_size = False
    if not same_size:
        smaller = min(data.images.image_shape[1:])
        return data, [
            f"{counted}: read as stored, since turned they have another size; to turn them: --orientation exif "
            f"--size {smaller} (make: ORIENTATION=exif SIZE={smaller})"
        ]
    readings = {STORED: stored_images, EXIF: turned_images}
    labels = data.images.labels[shown_rows].astype(np.int64)
    reading, words = _better_reading(models, data, readings, labels, request=request, tell=tell)
    if reading == EXIF:
        data, _ = with_rows_to_show(turned_data)
    return data, [f"{counted}: {READING_WORDS[reading]}{words}"]


def _better_reading(
    models: Sequence[NewModel],
    data: NewData,
    readings: Mapping[str, Images],
    labels: Labels,
    *,
    request: Request,
    tell: Callable[[str], None],
) -> tuple[str, str]:
    # Reading that surely fits the labels better, STORED where neither does, and why, in words.
    decided: dict[str, str] = {}
    accuracies = []
    for model in models:
        tell(f"showing {len(labels)} images to {model.name}, as stored and turned")
        trials = _trials_of_readings(model, data, readings, labels, request=request)
        stored_best = max(trials[STORED], key=_accuracy)
        exif_best = max(trials[EXIF], key=_accuracy)
        accuracy = f"{model.name}: {exif_best.accuracy:.1%} right turned, {stored_best.accuracy:.1%} as stored"
        accuracies.append(accuracy)
        if _beats_all(exif_best, trials[STORED]):
            decided[EXIF] = accuracy
        elif _beats_all(stored_best, trials[EXIF]):
            decided[STORED] = accuracy
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


def _trials_of_readings(
    model: NewModel, data: NewData, readings: Mapping[str, Images], labels: Labels, *, request: Request
) -> dict[str, list[Trial]]:
    # For each reading of the same images a trial of every preprocessing that comes into question: that of the option or
    # of the model's files, else all candidates. For networks that take long, on fewer images.
    channels = data.images.image_shape[0]
    if request.preprocessing:
        ways = {request.preprocessing: Preprocessing.named(request.preprocessing, channels=channels)}
    elif model.input.pixels is not None:
        ways = {"stated": model.input.pixels.preprocessing}
    else:
        ways = {name: Preprocessing.named(name, channels=channels) for name in candidates(channels)}

    with arithmetic_of(model) as threads:
        stored_images = readings[STORED]
        opened = open_model(model, data, stored_images, request=request, threads=threads)
        network = OrderedNetwork.of(opened.classifier, model, data, request)
        rows = affordable_rows(len(labels), len(ways) * len(readings), network, stored_images)
        trials = {}
        for reading, images in readings.items():
            shown = LabelledPixels(network.logits, images[rows], labels[rows])
            trials[reading] = [shown.trial(name, way, where=model.path) for name, way in ways.items()]
    return trials


def _accuracy(trial: Trial) -> float:
    return trial.accuracy


def _beats_all(best: Trial, trials: Sequence[Trial]) -> bool:
    # Whether the best trial of one reading is surely better than every trial of the other. Corrected for the choice of
    # the best among as many, and for the two directions.
    tests = 2 * len(trials) ** 2
    return all(surely_better(best, trial, tests=tests) for trial in trials)
