"""Inspection of models and data: what they are, whether they fit, and the audit that would be run of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gfscore.core.errors import InputError, few
from gfscore.networks.installed_gpus import installed_gpus
from gfscore.workflow.new_audit import audit_file, budget, devices
from gfscore.workflow.new_audit.data_files import FoundData, find_data, looked_at, resized
from gfscore.workflow.new_audit.found import FoundModel, Inspection, name_from
from gfscore.workflow.new_audit.logit_members import inspect_logits
from gfscore.workflow.new_audit.model_files import find_models
from gfscore.workflow.new_audit.orientation import as_asked, in_orientation
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.new_audit.shown_images import look_at
from gfscore.workflow.new_audit.shown_outputs import require_use_of_probabilities

SMALL_SIDE = 32
"""Images of at least this side have the usual radius 8/255; digits and the like are attacked further."""

FAR = {"linf": ("8/255", "0.1"), "l2": ("0.5", "1.0")}
"""Usual radius of images of at least SMALL_SIDE, and of smaller ones, by norm."""


def inspect(request: Request, tell: Callable[[str], None]) -> Inspection:
    """Look at models and data of a request; `tell` gets a line now and then.

    Raises InputError, naming the file, the cause and the remedy, for whatever an audit could not be made of.
    """
    models = find_models(request)
    if any(model.has_logits_only for model in models):
        return inspect_logits(models, request)
    if request.architecture and not any("architecture" in model.entry for model in models):
        raise InputError(f"--architecture {request.architecture}: no model here is a file of weights; leave it out")
    installed = installed_gpus()
    devices.require(request.device, installed)
    if request.data is None:
        raise InputError("images are missing: give the file or folder of the data behind the models")
    data, rows = looked_at(as_asked(find_data(request.data, request), request))
    data, rows = _in_size(data, rows, models, request)
    data, orientation = in_orientation(data, models, request, tell)
    images = np.concatenate(list(data.images.select(rows).batches(64)))
    labels = data.images.labels[rows].astype(np.int64)
    opened = []
    for model in models:
        tell(f"showing {len(rows)} images to {model.name}")
        opened.append(look_at(model, data, images, labels, request))
    radii = request.eps or (_usual_radius(data, request.norm),)
    require_use_of_probabilities(request, [one.entry for one in opened])
    counts = [int(count) for count in data.counts]
    sizes = budget.sizes([one.seconds for one in opened], counts, radii=len(radii), minutes=request.minutes)
    why_not = _no_attacks(opened, sizes, request)
    measures = {} if why_not else audit_file.attack_measures(request.norm, radii, sizes)
    name = request.name or name_from(models[0].name if len(models) == 1 else Path(request.data).stem)
    said = [
        *(line for one in opened for line in [f"model     {one.found.name}: {one.found.words}", *one.said]),
        f"data      {_data_words(data, counts)}",
        *orientation,
        *devices.lines(
            opened, measures, request.device, installed, counts=counts, clean=sizes.clean, shape=images.shape[1:]
        ),
        *(_measure_words(radii, request, sizes) if measures else audit_file.words_without_attacks(why_not)),
    ]
    copies = {new: old for one in opened for new, old in one.found.copies.items()}
    file = audit_file.audit_file(
        name,
        data={**data.entry, **audit_file.subset(sizes.clean)},
        models={one.found.name: (one.entry, one.said[:-1]) for one in opened},
        measures=measures,
        norm=request.norm,
        device=request.device,
    )
    return Inspection(name, file.text, file.sections, said, copies)


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
    how = f", {resize['method']} to {resize['size']} pixels" if "size" in resize else ""
    how += " as they have several sizes" if data.several else ""
    few_words = f"; fewer than {budget.ENOUGH} in {sum(n < budget.ENOUGH for n in counts)} classes"
    empty = [name for name, count in zip(data.classes, counts, strict=True) if count == 0]
    if empty:
        few_words += f", none in {few(empty)}, so that no gate on every class can pass"
    size = f"{len(data.images):,} images of {width}x{height}{' grey' if c == 1 else ''}{how}"
    classes = f"{len(counts)} classes ({few(list(data.classes))})"
    return f"{data.words}, {size}, {classes}" + (few_words if min(counts) < budget.ENOUGH else "")


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
