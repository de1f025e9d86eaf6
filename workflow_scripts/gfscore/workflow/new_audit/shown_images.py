"""Models opened and shown labelled images: their preprocessing, their classes, what they answer and how fast."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.batch_invariance import SAMPLES, require_invariant, rounds_finely, spread_over
from gfscore.networks.outputs import require_head
from gfscore.workflow.new_audit import audit_file, pixels
from gfscore.workflow.new_audit.class_order import check_logits, check_order, match_classes
from gfscore.workflow.new_audit.data_files import FoundData
from gfscore.workflow.new_audit.logit_files import open_for_logits
from gfscore.workflow.new_audit.request import FoundModel, Request

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier
from collections.abc import Callable

from gfscore.images.encoded import DifferentSizes
from gfscore.workflow.new_audit.data_files import looked_at, most_looked_at, turned
from gfscore.workflow.new_audit.pixels import Trial, clearly_better

TRYING = 40.0
"""Seconds that a turn of trying every preprocessing may take for one model, with FEWEST images at least."""

FEWEST = 40

BATCH = 64
"""Images that a model is shown at a time."""

COMPARED = 8
"""Images on which a network is compared with the one that it was converted from; in the audit it is on all."""

MEASURING = 1.0
"""Seconds in which passes are timed, three at least."""


@dataclass(frozen=True)
class Opened:
    """A model that was shown images: its settings, what was found in lines, and the seconds that it takes per image."""

    found: FoundModel
    entry: Mapping[str, Any]
    said: list[str]
    gradients: bool
    seconds: float


def look_at(model: FoundModel, data: FoundData, images: Any, labels: Any, request: Request) -> Opened:
    """Open a model and show it images (n, C, H, W) of the data with labels (n,).

    Raises InputError, naming its file, for what no audit could be made of: outputs that are no classes, probabilities,
    preprocessing that is not known, classes that do not match, answers no better than guessing.
    """
    from gfscore.networks.precision import reproducible_arithmetic

    threads = _threads_of(model)
    with reproducible_arithmetic(threads=threads):
        return _shown(model, data, images, labels, request, threads=threads)


def _threads_of(model: FoundModel) -> int:
    # As in the steps of the audit, whose time is to be foreseen.
    from gfscore.networks.device_choice import threads_for_size
    from gfscore.networks.onnx_files import model_files

    files = model_files(model.entry["path"]) if model.entry["source"] == "onnx" else [Path(model.entry["path"])]
    return threads_for_size(sum(file.stat().st_size for file in files))


def _shown(model, data, images, labels, request, *, threads):
    where = model.entry["path"]
    entry = dict(model.entry)
    plain, output_words = open_for_logits(
        entry,
        model,
        request,
        classes=data.classes,
        images=images,
        opened=lambda settings: _classifier(settings, data, threads),
    )
    classifier, gradients, note = _opened(entry, data, threads, plain)
    outputs = classifier.classes or len(data.classes)
    indices, matched = match_classes(model.labels, data.classes, outputs, asked=request.labels, where=where)
    seconds = _seconds(classifier, images)

    def run(shown: NDArray[np.float32]) -> NDArray[np.float32]:
        return _logits_in_batches(classifier, shown)[:, indices]

    settings, pixel_words = _pixels(
        model, run, images, labels, data_classes=data.classes, seconds=seconds, request=request
    )
    shaped = {**settings, "image_shape": images.shape[1:]}
    shown = pixels.preprocess(images, shaped, where=where)
    logits = run(shown)
    check_logits(logits, labels, where=where)
    rows, fine = spread_over(len(shown), SAMPLES), rounds_finely(classifier.number_type)
    require_invariant(run, shown, rows, logits, plain=fine, where=where)
    if classifier.head is not None:
        require_head(classifier.head, shown, where=where)
        output_words.append(f"checked on {len(images)} images")
    accuracy = check_order(logits, labels, data.classes, where=where)
    written = audit_file.model_settings(entry, settings, indices, outputs)
    said = [
        *([f"outputs   {'; '.join(output_words)}"] if output_words else []),
        f"pixels    {pixels.words_of(settings)}: {pixel_words}",
        f"classes   {_outputs_words(indices, outputs)}, {matched}",
        f"answers   {accuracy:.1%} of {len(labels)} images right, {1000 * seconds:.2g} ms each{note}",
    ]
    return Opened(model, written, said, gradients, seconds)


def _outputs_words(indices: Sequence[int], outputs: int) -> str:
    return f"{outputs} outputs" if len(indices) == outputs else f"{len(indices)} of {outputs} outputs"


def trials_of_readings(
    model: FoundModel, data: FoundData, readings: Sequence[Any], labels: Any, *, request: Request
) -> list[list[pixels.Trial]]:
    """Trials of a model on the same images read in several ways.

    Parameters
    ----------
    model, data, request
        As `look_at` takes them.
    readings : sequence of arrays
        The images (n, C, H, W) in each way, pixels in [0, 1].
    labels : array
        True classes (n,).

    Returns
    -------
    list of lists
        For each reading a trial of every preprocessing that comes into question: the one that is asked for or stated,
        else all candidates. For networks that take long, on fewer images.
    """
    from gfscore.networks.precision import reproducible_arithmetic

    where, channels = model.entry["path"], data.images.image_shape[0]
    if request.preprocessing:
        candidates = {request.preprocessing: pixels.settings_of(request.preprocessing, channels=channels)}
    elif model.pixels is not None:
        candidates = {"stated": dict(model.pixels.settings)}
    else:
        names = pixels.candidates(channels)
        candidates = {name: pixels.settings_of(name, channels=channels) for name in names}
    threads = _threads_of(model)
    with reproducible_arithmetic(threads=threads):
        classifier, _ = open_for_logits(
            dict(model.entry),
            model,
            request,
            classes=data.classes,
            images=readings[0],
            opened=lambda settings: _classifier(settings, data, threads),
        )
        outputs = classifier.classes or len(data.classes)
        indices, _ = match_classes(model.labels, data.classes, outputs, asked=request.labels, where=where)
        passes = len(candidates) * len(readings)
        most = int(np.clip(TRYING / (passes * _seconds(classifier, readings[0])), FEWEST, len(labels)))
        rows = spread_over(len(labels), most)

        trials = []
        for images in readings:
            of_reading = []
            for name, settings in candidates.items():
                shaped = {**settings, "image_shape": images.shape[1:]}
                shown = pixels.preprocess(images[rows], shaped, where=where)
                answers = _logits_in_batches(classifier, shown)[:, indices].argmax(axis=1)
                of_reading.append(pixels.Trial(name, settings, answers == labels[rows]))
            trials.append(of_reading)
    return trials


def _opened(entry: dict[str, Any], data: FoundData, threads: int, plain: Classifier) -> tuple[Classifier, bool, str]:
    """Classifier of an entry, which is completed, whether it has gradients, and what is to be said of that."""
    from gfscore.networks.inference import require_agreement
    from gfscore.networks.number_types import number_words

    numbers = f"; {number_words(plain)}" if number_words(plain) else ""
    few_images = data.images.select(np.arange(min(COMPARED, len(data.images))))
    pixels_of_few = np.concatenate(list(few_images.batches(COMPARED)))
    if entry["source"] != "onnx":
        require_agreement(plain, few_images, plain.logits(pixels_of_few), where=entry["path"])
        return plain, True, numbers
    try:
        converted = _classifier({**entry, "gradients": True}, data, threads)
        said = require_agreement(converted, few_images, converted.logits(pixels_of_few), where="")
    except InputError as error:
        return plain, False, f"; no gradients: {str(error).split(';', maxsplit=1)[0]}{numbers}"
    entry["gradients"] = True
    numbers = f"; {number_words(converted)}" if numbers else ""
    return converted, True, f"; gradients {said['conversion'].split(';')[0]}{numbers}"


def _logits_in_batches(classifier: Classifier, images: NDArray[np.float32]) -> NDArray[np.float32]:
    logits = []
    for start in range(0, len(images), BATCH):
        logits.append(classifier.logits(images[start : start + BATCH]))
    return np.concatenate(logits)


def _classifier(entry: Mapping[str, Any], data: FoundData, threads: int) -> Classifier:
    """Classifier of an entry with neutral preprocessing."""
    from gfscore.networks.checkpoint_files import describe_checkpoint
    from gfscore.networks.classifier import open_classifier
    from gfscore.networks.model_source import model_sources

    settings = model_sources()[entry["source"]].settings.model_validate(entry).explicit()
    manifest = describe_checkpoint(
        settings, identity=dict.fromkeys(("dataset", "threat", "model"), "new"), record=False
    )
    return open_classifier(manifest, image_shape=data.images.image_shape, classes=len(data.classes), threads=threads)


def _seconds(classifier, images):
    # The least of several passes: what other work on the machine takes is no property of the network.
    batch = images[:32]
    taken: list[float] = []
    until = time.monotonic() + MEASURING
    while len(taken) < 3 or (time.monotonic() < until and len(taken) < 50):
        started = time.perf_counter()
        classifier.logits(batch)
        taken.append(time.perf_counter() - started)
    return min(taken) / len(batch)


def _pixels(
    model: FoundModel,
    run: pixels.Run,
    images: Any,
    labels: Any,
    *,
    data_classes: Sequence[str],
    seconds: float,
    request: Request,
) -> tuple[Mapping[str, Any], str]:
    """Settings of the preprocessing, and how they were found, in words."""
    where, channels = model.entry["path"], images.shape[1]
    names, classes = pixels.candidates(channels), len(np.unique(labels))
    # Fewer images where each takes long.
    first = int(np.clip(TRYING / (len(names) * seconds), FEWEST, len(labels)))
    rows = spread_over(len(labels), first)

    def trial(name: str, settings: Mapping[str, Any]) -> pixels.Trial:
        shaped = {**settings, "image_shape": images.shape[1:]}
        logits = run(pixels.preprocess(images[rows], shaped, where=where))
        return pixels.Trial(name, settings, logits.argmax(axis=1) == labels[rows])

    if request.preprocessing:
        settings = pixels.settings_of(request.preprocessing, channels=channels)
        trials = pixels.try_all(run, images[rows], labels[rows], names)
        better = pixels.surely_better(trial("as asked", settings), trials)
        return settings, "as asked" + (f", although {better[0].name} is surely better" if better else "")
    if model.pixels is None:
        left, out = pixels.try_in_turns(run, images, labels, names, first=first)
        if len(left) > 1:
            # Where the classes are in another order nothing fits, and the best of all ways says nothing.
            shaped = {**left[0].settings, "image_shape": images.shape[1:]}
            check_order(run(pixels.preprocess(images, shaped, where=where)), labels, data_classes, where=where)
        chosen = pixels.choose_pixels(left, out, classes=classes, where=where)
        return chosen.settings, chosen.said_by
    stated = dict(model.pixels.settings)
    own = trial(f"stated by {model.pixels.said_by}", stated)
    pixels.check_pixels(own, pixels.try_all(run, images[rows], labels[rows], names), where=where)
    return stated, f"{model.pixels.said_by}, checked on {len(rows)} images"


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
