"""Models opened and shown labelled images: their preprocessing, their classes, what they answer and how fast."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from gfscore.core.errors import InputError
from gfscore.measures.proven import Proven
from gfscore.networks.batch_invariance import SAMPLES, require_invariant, spread_over, tolerances_of
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import Classifier, open_classifier
from gfscore.networks.device_choice import threads_for_size
from gfscore.networks.inference import gradients_vanish, require_agreement
from gfscore.networks.model_source import Settings, model_sources
from gfscore.networks.number_types import number_words
from gfscore.networks.onnx_files import model_files
from gfscore.networks.outputs import first_line, require_head
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.sources.transformers import parts_of
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.class_order import check_logits, check_order, match_classes
from gfscore.workflow.new_audit.data_files import NewData
from gfscore.workflow.new_audit.model_outputs import OpenedModel, open_for_logits
from gfscore.workflow.new_audit.new_model import NewModel, StatedPixels
from gfscore.workflow.new_audit.preprocessing import Preprocessing, candidates
from gfscore.workflow.new_audit.preprocessing_trials import LabelledPixels, better_trials, check_pixels, choose_pixels
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.new_audit.tried_proofs import TriedProofs, try_proofs

Images = NDArray[np.float32]
"""(n, C, H, W), pixels in [0, 1]."""

Labels = NDArray[np.int64]
"""(n,)."""

TRIAL_SECONDS = 40.0
"""Time that one trial of every preprocessing may take for a model."""

FEWEST = 40
"""Images of a trial at least, however long it takes."""

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
        Time of a forward pass of one image.
    proofs : TriedProofs
        Whether proofs are worth their time.
    """

    model: NewModel
    entry: Settings
    lines: list[str]
    gradients: bool
    seconds: float
    proofs: TriedProofs


def look_at(
    model: NewModel, data: NewData, images: Images, labels: Labels, request: Request, *, proof: Proven
) -> ShownModel:
    """Open a model and show it labelled images of the data.

    Parameters
    ----------
    model : NewModel
        The model as its files describe it.
    data : NewData
        Data that it is audited on.
    images : ndarray
        (n, C, H, W) float32, pixels in [0, 1]: some of each class.
    labels : ndarray
        (n,) int64, positions in the classes of the data.
    request : Request
        Options.
    proof : Proven
        The measure of proofs that the audit would have.

    Returns
    -------
    ShownModel
        The settings that the audit has for it, with preprocessing and outputs, and what it answered.

    Raises
    ------
    InputError
        Naming its file, for what no audit could be made of: outputs that are no classes, probabilities, unknown
        preprocessing, classes that do not match, answers no better than guessing.
    """
    with arithmetic_of(model) as threads:
        opened = open_model(model, data, images, request=request, threads=threads)
        opened, gradients, note = _with_gradients(opened, model, data, threads)
        network = OrderedNetwork.of(opened.classifier, model, data, request)
        seconds = _seconds_of_a_pass(opened.classifier, images)

        shown = LabelledPixels(network.logits, images, labels)
        pixels = _pixels(shown, model, classes=data.classes, seconds=seconds, request=request)
        pictures = pixels.preprocessing.apply(images, where=model.path)
        logits = shown.logits(pixels.preprocessing, where=model.path)
        check_logits(logits, labels, where=model.path)
        rows = spread_over(len(pictures), SAMPLES)
        tolerances = tolerances_of(opened.classifier.number_type)
        require_invariant(network.logits, pictures, rows, logits, tolerances=tolerances, where=model.path)
        output_words = list(opened.words)
        if opened.classifier.head is not None:
            require_head(opened.classifier.head, pictures, where=model.path)
            output_words.append(f"checked on {len(images)} images")
        accuracy = check_order(logits, labels, data.classes, where=model.path)
        entry = audit_file.model_settings(
            opened.settings, pixels.preprocessing, network.outputs, network.outputs_in_all
        )
        proofs = TriedProofs(obstacle="gradients are missing")
        if gradients:
            as_audited = _classifier(entry, data, threads)
            assert as_audited.network is not None
            obstacle = _obstacle_to_gradients(as_audited.network, images[rows])
            if obstacle:
                gradients, note = False, f"; no gradients: {obstacle}"
        if gradients:
            assert as_audited.network is not None
            correct = logits.argmax(1) == labels
            proofs = try_proofs(as_audited.network, images, labels, correct, settings=proof, pass_seconds=seconds)

    lines = []
    if output_words:
        lines.append(f"outputs   {'; '.join(output_words)}")
    lines.append(f"pixels    {pixels.preprocessing.words()}: {pixels.source}")
    lines.append(f"classes   {network.words}")
    lines.append(f"answers   {accuracy:.1%} of {len(labels)} images right, {1000 * seconds:.2g} ms each{note}")
    return ShownModel(model, entry, lines, gradients, seconds, proofs)


# ---- opening ----


@contextmanager
def arithmetic_of(model: NewModel) -> Iterator[int]:
    """Arithmetic of a model, and its threads, as in the steps of the audit, whose time is to be foreseen."""
    files = model_files(model.path) if model.entry["source"] == "onnx" else [Path(model.path), *parts_of(model.path)]
    threads = threads_for_size(sum(file.stat().st_size for file in files))
    with reproducible_arithmetic(threads=threads):
        yield threads


def open_model(model: NewModel, data: NewData, images: Images, *, request: Request, threads: int) -> OpenedModel:
    """A model that gives logits, without preprocessing.

    Parameters
    ----------
    model : NewModel
    data : NewData
        Names the classes.
    images : ndarray
        (n, C, H, W), pixels in [0, 1], by which outputs are told from probabilities.
    request : Request
        Options.
    threads : int
        Threads of torch.
    """

    def open_entry(settings: Settings) -> Classifier:
        return _classifier(settings, data, threads)

    return open_for_logits(model, request, classes=data.classes, images=images, open_entry=open_entry)


def _classifier(entry: Settings, data: NewData, threads: int) -> Classifier:
    # Classifier of an entry with neutral preprocessing.
    settings = model_sources()[entry["source"]].settings.model_validate(entry).explicit()
    identity = dict.fromkeys(("dataset", "threat", "model"), "new")
    manifest = describe_checkpoint(settings, identity=identity, record=False)
    return open_classifier(manifest, image_shape=data.images.image_shape, classes=len(data.classes), threads=threads)


def _with_gradients(opened: OpenedModel, model: NewModel, data: NewData, threads: int) -> tuple[OpenedModel, bool, str]:
    # The model with gradients where it has any, whether it has, and what the user is told of that.
    plain = opened.classifier
    compared = data.images.select(np.arange(min(COMPARED, len(data.images))))
    pictures = np.concatenate(list(compared.batches(COMPARED)))
    if model.entry["source"] != "onnx":
        require_agreement(plain, compared, plain.logits(pictures), where=model.path)
        return opened, True, _number_note(plain)
    settings = {**opened.settings, "gradients": True}
    try:
        converted = _classifier(settings, data, threads)
        as_stated = converted
        if model.input.pixels is not None:
            # Pixels in [0, 1] would be rounded to 0 and 1 by an input of 8 bits.
            as_stated = _classifier({**settings, **model.input.pixels.preprocessing.entry()}, data, threads)
        agreement = require_agreement(as_stated, compared, as_stated.logits(pictures), where=model.path)
    except InputError as error:
        reason = str(error).split(";", maxsplit=1)[0].removeprefix(f"{model.path}: ")
        return opened, False, f"; no gradients: {reason}{_number_note(plain)}"
    # Where the numbers of the file are those of the audit, nothing is said of the converted ones.
    numbers = _number_note(converted) if _number_note(plain) else ""
    conversion = agreement["conversion"].split(";")[0]
    with_gradients = replace(opened, classifier=converted, settings=settings)
    return with_gradients, True, f"; gradients {conversion}{numbers}"


def _obstacle_to_gradients(network: nn.Module, images: Images) -> str:
    # Why attacks could not follow the gradients of a network, empty where they can: they would find nothing, and the
    # network would look robust.
    try:
        vanish = gradients_vanish(network, images)
    # The code of a model may raise anything.
    except Exception as error:
        return f"it cannot be differentiated ({first_line(error)})"
    if vanish:
        return f"they are 0 on all of {len(images)} images"
    return ""


def _number_note(classifier: Classifier) -> str:
    words = number_words(classifier)
    return f"; {words}" if words else ""


@dataclass(frozen=True)
class OrderedNetwork:
    """A network whose outputs are brought into the order of the classes of the data.

    Parameters
    ----------
    classifier : Classifier
    outputs : list of int
        The output for each class.
    outputs_in_all : int
        Number of its outputs.
    matched_by : str
        In words how outputs and classes were matched.
    """

    classifier: Classifier
    outputs: list[int]
    outputs_in_all: int
    matched_by: str

    @classmethod
    def of(cls, classifier: Classifier, model: NewModel, data: NewData, request: Request) -> OrderedNetwork:
        """Match the outputs of a classifier; InputError where they do not match the classes."""
        count = classifier.classes or len(data.classes)
        outputs, words = match_classes(model.labels, data.classes, count, option=request.labels, where=model.path)
        return cls(classifier, outputs, count, words)

    @property
    def words(self) -> str:
        """The outputs in a few words."""
        count = f"{len(self.outputs)} of " if len(self.outputs) != self.outputs_in_all else ""
        return f"{count}{self.outputs_in_all} outputs, {self.matched_by}"

    def logits(self, pictures: Images) -> Images:
        """Logits (n, K) in the order of the classes, of images as the network takes them."""
        logits = []
        for start in range(0, len(pictures), BATCH):
            logits.append(self.classifier.logits(pictures[start : start + BATCH]))
        return np.concatenate(logits)[:, self.outputs]


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


def affordable_rows(images: int, ways: int, network: OrderedNetwork, pictures: Images) -> NDArray[np.int64]:
    """Rows of the images on which so many ways of preprocessing are tried: fewer where a pass takes long.

    Parameters
    ----------
    images : int
        Number of images.
    ways : int
        Passes that each of them takes.
    network : OrderedNetwork
    pictures : ndarray
        (n, C, H, W) on which a pass is timed.

    Returns
    -------
    ndarray
        (m,) int64, ascending; at least FEWEST of them where there are as many.
    """
    return _rows(images, ways * _seconds_of_a_pass(network.classifier, pictures))


def _rows(images: int, seconds: float) -> NDArray[np.int64]:
    return spread_over(images, int(np.clip(TRIAL_SECONDS / seconds, FEWEST, images)))


# ---- preprocessing ----


def _pixels(
    shown: LabelledPixels, model: NewModel, *, classes: Sequence[str], seconds: float, request: Request
) -> StatedPixels:
    # The preprocessing, and how it was chosen, in words.
    channels = shown.images.shape[1]
    names = candidates(channels)
    rows = _rows(len(shown.labels), len(names) * seconds)
    some = shown.subset(rows)

    if request.preprocessing:
        preprocessing = Preprocessing.named(request.preprocessing, channels=channels)
        trials = some.trials(names)
        better = better_trials(some.trial("as asked", preprocessing, where=model.path), trials)
        words = f"as asked, although {better[0].name} is surely better" if better else "as asked"
        return StatedPixels(preprocessing, words)

    stated = model.input.pixels
    if stated is not None:
        trial = some.trial(f"stated by {stated.source}", stated.preprocessing, where=model.path)
        check_pixels(trial, some.trials(names), where=model.path)
        return StatedPixels(stated.preprocessing, f"{stated.source}, checked on {len(rows)} images")

    final, discarded = shown.trials_in_turns(names, first=len(rows))
    if len(final) > 1:
        # Where the classes are in another order nothing fits, and the best of all ways says nothing.
        logits = shown.logits(final[0].preprocessing, where=model.path)
        check_order(logits, shown.labels, classes, where=model.path)
    return choose_pixels(final, discarded, classes=len(np.unique(shown.labels)), where=model.path)
