"""Inspection of models and data: what they are, whether they fit, and the audit that would be run of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.workflow.new_audit import audit_file, budget, pixels
from gfscore.workflow.new_audit.class_order import check_logits, check_order, match_classes
from gfscore.workflow.new_audit.data_files import FoundData, find_data, looked_at, resized
from gfscore.workflow.new_audit.found import FoundModel, name_from
from gfscore.workflow.new_audit.logit_members import logits_and_labels
from gfscore.workflow.new_audit.model_files import find_models
from gfscore.workflow.new_audit.request import Request

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

SMALL_SIDE = 32
"""Images of at least this side have the usual radius 8/255; digits and the like are attacked further."""

NO_ATTACKS = "clean accuracy and the attack-free score"

FAR = {"linf": ("8/255", "0.1"), "l2": ("0.5", "1.0")}
"""Usual radius of images of at least SMALL_SIDE, and of smaller ones, by norm."""

TRYING = 40.0
"""Seconds that a turn of trying every preprocessing may take for one model, with FEWEST images at least."""

FEWEST = 40

MEASURING = 1.0
"""Seconds in which passes are timed, three at least."""


@dataclass
class Inspection:
    """What was found: `name` and `text` of the audit, `said` in lines, files to copy by their new paths."""

    name: str
    text: str
    said: list[str]
    copies: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """A model that was shown images: its settings, what was found in lines, and the seconds that it takes per image."""

    found: FoundModel
    entry: Mapping[str, Any]
    said: list[str]
    gradients: bool
    seconds: float


def inspect(request: Request, tell: Callable[[str], None]) -> Inspection:
    """Look at models and data of a request; `tell` gets a line now and then.

    Raises InputError, naming the file, the cause and the remedy, for whatever an audit could not be made of.
    """
    models = find_models(request)
    if any(model.has_logits_only for model in models):
        return _of_logits(models, request)
    if request.architecture and not any("architecture" in model.entry for model in models):
        raise InputError(f"--architecture {request.architecture}: no model here is a file of weights; leave it out")
    if request.data is None:
        raise InputError("images are missing: give the file or folder of the data behind the models")
    data, rows = looked_at(find_data(request.data))
    data, rows = _in_size(data, rows, models, request)
    images = np.concatenate(list(data.images.select(rows).batches(64)))
    labels = data.images.labels[rows].astype(np.int64)
    opened = []
    for model in models:
        tell(f"showing {len(rows)} images to {model.name}")
        opened.append(_look_at(model, data, images, labels, request))
    radii = request.eps or (_usual_radius(data, request.norm),)
    counts = [int(count) for count in data.counts]
    sizes = budget.sizes([one.seconds for one in opened], counts, radii=len(radii), minutes=request.minutes)
    why_not = _no_attacks(opened, sizes, request)
    measures = {} if why_not else audit_file.attack_measures(request.norm, radii, sizes)
    name = request.name or name_from(models[0].name if len(models) == 1 else Path(request.data).stem)
    said = [
        *(line for one in opened for line in [f"model     {one.found.name}: {one.found.words}", *one.said]),
        f"data      {_data_words(data, counts)}",
        *(_measure_words(radii, request, sizes) if measures else [f"measures  {NO_ATTACKS}; {why_not}"]),
    ]
    copies = {new: old for one in opened for new, old in one.found.copies.items()}
    text = audit_file.audit_text(
        _head(request),
        name,
        data=audit_file.dataset_settings(data.entry, sizes),
        models={one.found.name: (one.entry, one.said[:2]) for one in opened},
        measures=measures,
        norm=request.norm,
    )
    return Inspection(name, text, said, copies)


def _head(request):
    given = " ".join([*request.models, *([request.data] if request.data else [])])
    return [f"Written by: gfscore audit {given}", "What is left out has its default: docs/configuring.md"]


# ---- images ----


def _in_size(data: FoundData, rows: Any, models: Sequence[FoundModel], request: Request) -> tuple[FoundData, Any]:
    shapes = {model.shape for model in models if model.shape}
    sides = {shape[1:] for shape in shapes}
    if len(sides) > 1:
        raise InputError(
            f"the models take images of several sizes ({few([f'{w}x{h}' for h, w in sorted(sides)])}); audit those of "
            "one size together"
        )
    _, height, width = data.images.image_shape
    wanted = (
        (request.size, request.size) if request.size else next(iter(sides), (height, width) if data.uniform else None)
    )
    if wanted is None:
        raise InputError(
            f"{request.data}: images of several sizes, and no model says which it takes; add --size (make: SIZE=)"
        )
    if data.uniform and wanted == (height, width):
        return data, rows
    stated = next((model.resize for model in models if model.resize and not request.size), None)
    how = dict(stated) if stated else {"method": "center_crop", "resize": wanted[0], "size": wanted[0]}
    if wanted[0] != wanted[1]:
        raise InputError(f"{request.data}: the model takes images of {wanted[1]}x{wanted[0]}; store them in that size")
    return resized(data, how), rows


def _usual_radius(data, norm):
    return FAR[norm][0 if min(data.images.image_shape[1:]) >= SMALL_SIDE else 1]


def _data_words(data, counts):
    c, height, width = data.images.image_shape
    resize = data.entry.get("preprocessing", {})
    how = f", {resize['method']} to {resize['size']} pixels" if resize else ""
    how += " as they have several sizes" if data.several else ""
    few_words = f"; fewer than {budget.ENOUGH} in {sum(n < budget.ENOUGH for n in counts)} classes"
    size = f"{len(data.images):,} images of {width}x{height}{' grey' if c == 1 else ''}{how}"
    classes = f"{len(counts)} classes ({few(list(data.classes))})"
    return f"{data.words}, {size}, {classes}" + (few_words if min(counts) < budget.ENOUGH else "")


# ---- a model ----


def _look_at(model: FoundModel, data: FoundData, images: Any, labels: Any, request: Request) -> Opened:
    where = model.entry["path"]
    entry = dict(model.entry)
    classifier, gradients, note = _opened(entry, data)
    outputs = classifier.classes or len(data.classes)
    indices, matched = match_classes(model.labels, data.classes, outputs, asked=request.labels, where=where)
    seconds = _seconds(classifier, images)

    def run(shown: NDArray[np.float32]) -> NDArray[np.float32]:
        logits = [classifier.logits(shown[start : start + 64]) for start in range(0, len(shown), 64)]
        return np.concatenate(logits)[:, indices]

    settings, pixel_words = _pixels(
        model, run, images, labels, data_classes=data.classes, seconds=seconds, request=request
    )
    shaped = {**settings, "image_shape": images.shape[1:]}
    logits = run(pixels.preprocess(images, shaped, where=where))
    check_logits(logits, labels, where=where)
    accuracy = check_order(logits, labels, data.classes, where=where)
    written = audit_file.model_settings(entry, settings, indices, outputs)
    said = [
        f"pixels    {pixels.words_of(settings)}: {pixel_words}",
        f"classes   {outputs} outputs, {matched}",
        f"answers   {accuracy:.1%} of {len(labels)} images right, {1000 * seconds:.2g} ms each{note}",
    ]
    return Opened(model, written, said, gradients, seconds)


def _opened(entry: dict[str, Any], data: FoundData) -> tuple[Classifier, bool, str]:
    """Classifier of an entry, which is completed, whether it has gradients, and what is to be said of that."""
    if entry["source"] != "onnx":
        return _classifier(entry, data), True, ""
    from gfscore.networks.inference import require_agreement

    plain = _classifier(entry, data)
    try:
        converted = _classifier({**entry, "gradients": True}, data)
        said = require_agreement(converted, data.images.select(_few_rows(data)), _logits_of(converted, data), where="")
    except InputError as error:
        return plain, False, f"; no gradients: {str(error).split(';', maxsplit=1)[0]}"
    entry["gradients"] = True
    return converted, True, f"; gradients {said['conversion'].split(';')[0]}"


def _few_rows(data):
    return np.arange(min(8, len(data.images)))


def _logits_of(classifier, data):
    return classifier.logits(np.concatenate(list(data.images.select(_few_rows(data)).batches(8))))


def _classifier(entry: Mapping[str, Any], data: FoundData) -> Classifier:
    """Classifier of an entry with neutral preprocessing."""
    from gfscore.networks.manifests import describe_checkpoint
    from gfscore.networks.model_source import model_sources
    from gfscore.networks.opening import open_classifier

    settings = model_sources()[entry["source"]].settings.model_validate(entry).explicit()
    manifest = describe_checkpoint(
        settings, identity=dict.fromkeys(("dataset", "threat", "model"), "new"), record=False
    )
    return open_classifier(manifest, image_shape=data.images.image_shape, classes=len(data.classes), threads=1)


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
    rows = np.linspace(0, len(labels) - 1, min(first, len(labels))).astype(int)

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


# ---- measures ----


def _no_attacks(opened, sizes, request):
    # Why an audit has no attacks, empty where it has.
    if not all(one.gradients for one in opened):
        return "no attacks, as gradients are missing"
    if sizes.seconds <= 60 * request.minutes + budget.LEAST:
        return ""
    minutes = math.ceil(sizes.seconds / 60)
    return f"no attacks, as one image of each class takes about {minutes} minutes: --minutes {minutes} has them"


def _measure_words(radii, request, sizes):
    def of(number: int | None) -> str:
        return "all samples" if number is None else f"{number} of each class"

    parts = [f"attacks at {request.norm} {', '.join(radii)} on {of(sizes.adversarial)}"]
    parts.append(f"distances on {of(sizes.minimal)}")
    if sizes.clean is not None:
        parts.append(f"clean accuracy on {of(sizes.clean)}")
    said = [f"measures  {'; '.join(parts)}; about {math.ceil(sizes.seconds / 60)} minutes"]
    if sizes.adversarial is not None and sizes.adversarial < budget.ENOUGH:
        needed = math.ceil(request.minutes * budget.ENOUGH / sizes.adversarial)
        said.append(
            f"          for {budget.ENOUGH} attacked of each class: --minutes {needed} (make: MINUTES={needed})"
        )
    return [
        *said,
        f"gate      the worst class keeps at least {audit_file.ATTACKED} under the first attack; yours to decide",
    ]


# ---- logits ----


def _of_logits(models: Sequence[FoundModel], request: Request) -> Inspection:
    for model in models:
        if not model.has_logits_only:
            raise InputError(f"{model.entry['path']}: a network beside files of logits; audit them apart")
    for option, value in (
        ("--architecture", request.architecture), ("--preprocessing", request.preprocessing), ("--size", request.size),
        ("--eps", request.eps), ("--norm", request.norm != "linf"), ("--trust-code", request.trust_code),
        ("--labels", request.labels if request.data else None),
    ):  # fmt: skip
        if value:
            raise InputError(
                f"{option}: logits have no use for it; leave it out, and order rows and columns as the labels"
            )
    data, read = logits_and_labels(models, request)
    true = data.images.labels.astype(np.int64)
    said, entries = [], {}
    for model, logits in zip(models, read, strict=True):
        check_logits(logits, true, where=model.entry["path"])
        remedy = "order the columns as the classes, or correct the labels"
        accuracy = check_order(logits, true, data.classes, where=model.entry["path"], remedy=remedy)
        words = f"{model.words}, {accuracy:.1%} of {len(true):,} right"
        said.append(f"model     {model.name}: {words}")
        entries[model.name] = (model.entry, [words])
    counts = [int(count) for count in data.counts]
    said += [
        f"labels    {data.words}, {len(true):,} samples, {len(counts)} classes ({few(list(data.classes))})",
        f"measures  {NO_ATTACKS}; what attacks leave, logits cannot tell",
        f"gate      the worst class is right on {audit_file.ACCURATE}; yours to decide",
    ]
    paths = dict.fromkeys(Path(model.entry["path"]) for model in models)
    first = next(iter(paths))
    # Of several files, that of their folder.
    name = request.name or name_from(first.name.split(".")[0] if len(paths) == 1 else first.resolve().parent.name)
    text = audit_file.audit_text(_head(request), name, data=data.entry, models=entries, measures={}, norm=request.norm)
    return Inspection(name, text, said)
