"""Models opened and shown labelled images: their preprocessing, their classes, what they answer and how fast.

Also images with an EXIF orientation: read as they are stored, or turned, whichever surely fits the labels better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.images.encoded import DifferentSizes
from gfscore.networks.batch_invariance import SAMPLES, require_invariant, rounds_finely, spread_over
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import Classifier, open_classifier
from gfscore.networks.device_choice import threads_for_size
from gfscore.networks.inference import require_agreement
from gfscore.networks.model_source import model_sources
from gfscore.networks.number_types import number_words
from gfscore.networks.onnx_files import model_files
from gfscore.networks.outputs import require_head
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.workflow.new_audit import audit_file, pixels
from gfscore.workflow.new_audit.class_order import check_logits, check_order, match_classes
from gfscore.workflow.new_audit.data_files import NewData, most_shown, turned, with_rows_to_show
from gfscore.workflow.new_audit.logit_files import open_for_logits
from gfscore.workflow.new_audit.request import NewModel, Request

Images = NDArray[np.float32]
"""(n, C, H, W), pixels in [0, 1]."""

Labels = NDArray[np.int64]
"""(n,)."""

TRYING = 40.0
"""Seconds that a turn of trying every preprocessing may take for one model, with FEWEST images at least."""

FEWEST = 40

BATCH = 64
"""Images that a model is shown at a time."""

COMPARED = 8
"""Images on which a network is compared with the one that it was converted from; in the audit it is on all."""

MEASURING = 1.0
"""Seconds in which passes are timed, three at least."""

MOST_PASSES = 50
"""Passes that are timed at most."""

TIMED = 32
"""Images of a pass that is timed."""

STORED, EXIF = "stored", "exif"
"""Readings of an image, values of --orientation: as stored, as torchvision does, and turned by EXIF."""

READING_WORDS = {STORED: "read as stored", EXIF: "turned by it"}


@dataclass(frozen=True)
class ShownModel:
    """A model that was shown images.

    Parameters
    ----------
    model : NewModel
        The model as its files describe it.
    entry : mapping
        Its settings in the audit.
    lines : list of str
        What the user is told.
    gradients : bool
        Whether it has gradients.
    seconds : float
        Of a forward pass of one image.
    """

    model: NewModel
    entry: Mapping[str, Any]
    lines: list[str]
    gradients: bool
    seconds: float


def look_at(model: NewModel, data: NewData, images: Images, labels: Labels, request: Request) -> ShownModel:
    """Open a model and show it labelled images of the data.

    Raises
    ------
    InputError
        Naming its file, for what no audit could be made of: outputs that are no classes, probabilities, unknown
        preprocessing, classes that do not match, answers no better than guessing.
    """
    entry = dict(model.entry)
    with _arithmetic_of(model) as threads:
        plain, output_words = _open_for_logits(entry, model, data, images, request=request, threads=threads)
        classifier, gradients, note = _with_gradients(entry, data, threads, plain)
        outputs = classifier.classes or len(data.classes)
        indices, matched_by = match_classes(
            model.labels, data.classes, outputs, option=request.labels, where=model.path
        )
        seconds = _seconds_of_a_pass(classifier, images)

        def run(pictures: Images) -> Images:
            return _logits_in_batches(classifier, pictures)[:, indices]

        settings, pixel_words = _pixels(
            model, run, images, labels, classes=data.classes, seconds=seconds, request=request
        )
        pictures = pixels.prepared(images, settings, where=model.path)
        logits = run(pictures)
        check_logits(logits, labels, where=model.path)
        rows = spread_over(len(pictures), SAMPLES)
        require_invariant(run, pictures, rows, logits, plain=rounds_finely(classifier.number_type), where=model.path)
        if classifier.head is not None:
            require_head(classifier.head, pictures, where=model.path)
            output_words.append(f"checked on {len(images)} images")
        accuracy = check_order(logits, labels, data.classes, where=model.path)

    lines = []
    if output_words:
        lines.append(f"outputs   {'; '.join(output_words)}")
    lines.append(f"pixels    {pixels.words_of(settings)}: {pixel_words}")
    lines.append(f"classes   {_outputs_words(indices, outputs)}, {matched_by}")
    lines.append(f"answers   {accuracy:.1%} of {len(labels)} images right, {1000 * seconds:.2g} ms each{note}")
    written = audit_file.model_settings(entry, settings, indices, outputs)
    return ShownModel(model, written, lines, gradients, seconds)


@contextmanager
def _arithmetic_of(model: NewModel) -> Iterator[int]:
    # Threads as in the steps of the audit, whose time is to be foreseen.
    files = model_files(model.path) if model.entry["source"] == "onnx" else [Path(model.path)]
    threads = threads_for_size(sum(file.stat().st_size for file in files))
    with reproducible_arithmetic(threads=threads):
        yield threads


def _open_for_logits(
    entry: dict[str, Any], model: NewModel, data: NewData, images: Images, *, request: Request, threads: int
) -> tuple[Classifier, list[str]]:
    def open_entry(settings: Mapping[str, Any]) -> Classifier:
        return _classifier(settings, data, threads)

    return open_for_logits(entry, model, request, classes=data.classes, images=images, open_entry=open_entry)


def _classifier(entry: Mapping[str, Any], data: NewData, threads: int) -> Classifier:
    # Classifier of an entry with neutral preprocessing.
    settings = model_sources()[entry["source"]].settings.model_validate(entry).explicit()
    identity = dict.fromkeys(("dataset", "threat", "model"), "new")
    manifest = describe_checkpoint(settings, identity=identity, record=False)
    return open_classifier(manifest, image_shape=data.images.image_shape, classes=len(data.classes), threads=threads)


def _with_gradients(
    entry: dict[str, Any], data: NewData, threads: int, plain: Classifier
) -> tuple[Classifier, bool, str]:
    # Classifier of an entry, which is completed, whether it has gradients, and what the user is told of that.
    numbers = f"; {number_words(plain)}" if number_words(plain) else ""
    compared = data.images.select(np.arange(min(COMPARED, len(data.images))))
    pictures = np.concatenate(list(compared.batches(COMPARED)))
    if entry["source"] != "onnx":
        require_agreement(plain, compared, plain.logits(pictures), where=entry["path"])
        return plain, True, numbers
    try:
        converted = _classifier({**entry, "gradients": True}, data, threads)
        agreement = require_agreement(converted, compared, converted.logits(pictures), where="")
    except InputError as error:
        reason = str(error).split(";", maxsplit=1)[0]
        return plain, False, f"; no gradients: {reason}{numbers}"
    entry["gradients"] = True
    if numbers:
        numbers = f"; {number_words(converted)}"
    conversion = agreement["conversion"].split(";")[0]
    return converted, True, f"; gradients {conversion}{numbers}"


def _outputs_words(indices: Sequence[int], outputs: int) -> str:
    if len(indices) == outputs:
        return f"{outputs} outputs"
    return f"{len(indices)} of {outputs} outputs"


def _logits_in_batches(classifier: Classifier, images: Images) -> NDArray[np.float32]:
    logits = []
    for start in range(0, len(images), BATCH):
        logits.append(classifier.logits(images[start : start + BATCH]))
    return np.concatenate(logits)


def _seconds_of_a_pass(classifier: Classifier, images: Images) -> float:
    # The least of several passes: what other work on the machine takes is no property of the network.
    batch = images[:TIMED]
    seconds: list[float] = []
    end = time.monotonic() + MEASURING
    while len(seconds) < 3 or (time.monotonic() < end and len(seconds) < MOST_PASSES):
        started = time.perf_counter()
        classifier.logits(batch)
        seconds.append(time.perf_counter() - started)
    return min(seconds) / len(batch)


def _affordable(passes: float, images: int) -> int:
    # Images on which every preprocessing is tried: fewer where a pass takes long.
    return int(np.clip(TRYING / passes, FEWEST, images))


def _pixels(
    model: NewModel,
    run: pixels.Run,
    images: Images,
    labels: Labels,
    *,
    classes: Sequence[str],
    seconds: float,
    request: Request,
) -> tuple[Mapping[str, Any], str]:
    # Settings of the preprocessing, and how they were chosen, in words.
    channels = images.shape[1]
    names = pixels.candidates(channels)
    first = _affordable(len(names) * seconds, len(labels))
    rows = spread_over(len(labels), first)

    if request.preprocessing:
        settings = pixels.settings_of(request.preprocessing, channels=channels)
        trials = pixels.try_all(run, images[rows], labels[rows], names)
        trial = pixels.try_one(run, images[rows], labels[rows], "as asked", settings, where=model.path)
        better = pixels.surely_better(trial, trials)
        words = f"as asked, although {better[0].name} is surely better" if better else "as asked"
        return settings, words

    if model.pixels is not None:
        settings = dict(model.pixels.settings)
        name = f"stated by {model.pixels.source}"
        trial = pixels.try_one(run, images[rows], labels[rows], name, settings, where=model.path)
        trials = pixels.try_all(run, images[rows], labels[rows], names)
        pixels.check_pixels(trial, trials, where=model.path)
        return settings, f"{model.pixels.source}, checked on {len(rows)} images"

    final, discarded = pixels.try_in_turns(run, images, labels, names, first=first)
    if len(final) > 1:
        # Where the classes are in another order nothing fits, and the best of all ways says nothing.
        pictures = pixels.prepared(images, final[0].settings, where=model.path)
        check_order(run(pictures), labels, classes, where=model.path)
    chosen = pixels.choose_pixels(final, discarded, classes=len(np.unique(labels)), where=model.path)
    return chosen.settings, chosen.source


# ---- images with an EXIF orientation ----


def in_requested_orientation(data: NewData, request: Request) -> NewData:
    """Data in the orientation that a request names; InputError for images that are stored as arrays."""
    if request.orientation is None:
        return data
    if data.images.orientations is None:
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
    rows = _turned_rows(data)
    if not rows.size:
        return data, []
    counted = f"EXIF      {len(rows):,} of {len(data.images):,} images have an orientation"
    if request.orientation is not None:
        return data, [f"{counted}: {READING_WORDS[request.orientation]}, as asked"]

    shown_rows = rows[spread_over(len(rows), most_shown(data.images))]
    turned_data = turned(data)
    readings = _both_readings(data, turned_data, shown_rows)
    if readings is None:
        smaller = min(data.images.image_shape[1:])
        return data, [
            f"{counted}: read as stored, since turned they have another size; to turn them: --orientation exif "
            f"--size {smaller} (make: ORIENTATION=exif SIZE={smaller})"
        ]
    labels = data.images.labels[shown_rows].astype(np.int64)
    reading, words = _better_reading(models, data, readings, labels, request=request, tell=tell)
    if reading == EXIF:
        data, _ = with_rows_to_show(turned_data)
    return data, [f"{counted}: {READING_WORDS[reading]}{words}"]


def _turned_rows(data: NewData) -> NDArray[np.int64]:
    # Rows (n,) of the images that have an orientation other than that of their stored pixels.
    if data.images.orientations is None:
        return np.arange(0)
    return np.flatnonzero(np.array(list(data.images.orientations())) > 1)


def _both_readings(data: NewData, turned_data: NewData, rows: NDArray[np.int64]) -> tuple[Images, Images] | None:
    # Images of some rows, as stored and turned; None where their sizes then differ.
    stored_images = np.concatenate(list(data.images.select(rows).batches(BATCH)))
    try:
        turned_images = np.concatenate(list(turned_data.images.select(rows).batches(BATCH)))
    except DifferentSizes:
        return None
    if turned_images.shape != stored_images.shape:
        return None
    return stored_images, turned_images


def _better_reading(
    models: Sequence[NewModel],
    data: NewData,
    readings: Sequence[Images],
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
        stored_trials, exif_trials = _trials_of_readings(model, data, readings, labels, request=request)
        stored_best = max(stored_trials, key=_accuracy)
        exif_best = max(exif_trials, key=_accuracy)
        accuracy = f"{model.name}: {exif_best.accuracy:.1%} right turned, {stored_best.accuracy:.1%} as stored"
        accuracies.append(accuracy)
        if _beats_all(exif_best, stored_trials):
            decided[EXIF] = accuracy
        elif _beats_all(stored_best, exif_trials):
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
    model: NewModel, data: NewData, readings: Sequence[Images], labels: Labels, *, request: Request
) -> list[list[pixels.Trial]]:
    # For each reading of the same images a trial of every preprocessing that comes into question. For networks that
    # take long, on fewer images.
    candidates = _candidates(model, data.images.image_shape[0], request)
    with _arithmetic_of(model) as threads:
        entry = dict(model.entry)
        classifier, _ = _open_for_logits(entry, model, data, readings[0], request=request, threads=threads)
        outputs = classifier.classes or len(data.classes)
        indices, _ = match_classes(model.labels, data.classes, outputs, option=request.labels, where=model.path)

        def run(pictures: Images) -> Images:
            return _logits_in_batches(classifier, pictures)[:, indices]

        passes = len(candidates) * len(readings) * _seconds_of_a_pass(classifier, readings[0])
        rows = spread_over(len(labels), _affordable(passes, len(labels)))
        trials = []
        for images in readings:
            trials_of_reading = []
            for name, settings in candidates.items():
                trial = pixels.try_one(run, images[rows], labels[rows], name, settings, where=model.path)
                trials_of_reading.append(trial)
            trials.append(trials_of_reading)
    return trials


def _candidates(model: NewModel, channels: int, request: Request) -> dict[str, dict[str, Any]]:
    # The preprocessing of the option or of the model's files, else all candidates.
    if request.preprocessing:
        return {request.preprocessing: pixels.settings_of(request.preprocessing, channels=channels)}
    if model.pixels is not None:
        return {"stated": dict(model.pixels.settings)}
    return {name: pixels.settings_of(name, channels=channels) for name in pixels.candidates(channels)}


def _accuracy(trial: pixels.Trial) -> float:
    return trial.accuracy


def _beats_all(best: pixels.Trial, trials: Sequence[pixels.Trial]) -> bool:
    # Whether the best trial of one reading is surely better than every trial of the other. Corrected for the choice of
    # the best among as many, and for the two directions.
    tests = 2 * len(trials) ** 2
    return all(pixels.clearly_better(best, trial, tests=tests) for trial in trials)
