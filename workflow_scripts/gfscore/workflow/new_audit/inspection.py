"""Inspection of models and data: what they are, whether they fit, and the audit that would be run of them."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gfscore.core.errors import InputError, few
from gfscore.measures import kind_of, named_measures
from gfscore.networks.architecture_files import FOLDER_VARIABLE, PACKAGE
from gfscore.networks.device_choice import InferenceSettings, Network
from gfscore.networks.installed_gpus import NO_GPU, InstalledGpus, installed_gpus
from gfscore.networks.outputs import first_line
from gfscore.workflow.job_devices import choose, planned_logits, planned_measure
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.data_files import FoundData, find_data, looked_at, resized
from gfscore.workflow.new_audit.logit_files import inspect_logits, require_use_of_probabilities
from gfscore.workflow.new_audit.model_files import find_models
from gfscore.workflow.new_audit.request import FoundModel, Inspection, Request, module_name, name_from
from gfscore.workflow.new_audit.shown_images import Opened, as_asked, in_orientation, look_at

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
    require(request.device, installed)
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
    sizes = audit_file.sizes([one.seconds for one in opened], counts, radii=len(radii), minutes=request.minutes)
    why_not = _no_attacks(opened, sizes, request)
    measures = {} if why_not else audit_file.attack_measures(request.norm, radii, sizes)
    name = request.name or name_from(models[0].name if len(models) == 1 else Path(request.data).stem)
    said = [
        *(line for one in opened for line in [f"model     {one.found.name}: {one.found.words}", *one.said]),
        f"data      {_data_words(data, counts)}",
        *orientation,
        *lines(opened, measures, request.device, installed, counts=counts, clean=sizes.clean, shape=images.shape[1:]),
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
    few_words = f"; fewer than {audit_file.ENOUGH} in {sum(n < audit_file.ENOUGH for n in counts)} classes"
    empty = [name for name, count in zip(data.classes, counts, strict=True) if count == 0]
    if empty:
        few_words += f", none in {few(empty)}, so that no gate on every class can pass"
    size = f"{len(data.images):,} images of {width}x{height}{' grey' if c == 1 else ''}{how}"
    classes = f"{len(counts)} classes ({few(list(data.classes))})"
    return f"{data.words}, {size}, {classes}" + (few_words if min(counts) < audit_file.ENOUGH else "")


# ---- measures ----


def _no_attacks(opened, sizes, request):
    # Why an audit has no attacks, empty where it has.
    if not all(one.gradients for one in opened):
        return "no attacks, as gradients are missing"
    if sizes.seconds <= 60 * request.minutes + audit_file.LEAST:
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
    if sizes.adversarial is not None and sizes.adversarial < audit_file.ENOUGH:
        needed = math.ceil(request.minutes * audit_file.ENOUGH / sizes.adversarial)
        said.append(
            f"          for {audit_file.ENOUGH} attacked of each class: --minutes {needed} (make: MINUTES={needed})"
        )
    return [
        *said,
        f"gate      the worst class keeps at least {audit_file.ATTACKED} under the first attack; yours to decide",
    ]


def require(device: str, installed: InstalledGpus) -> None:
    """Raise InputError for "cuda" without a GPU that torch can use, and for "auto" with a driver that is too old."""
    if device == "cuda" and not installed.usable:
        raise InputError(
            f"--device cuda: {installed.reason or NO_GPU}; leave it out, or run it on a machine with a GPU"
        )
    if device == "auto" and installed.driver_too_old:
        raise InputError(installed.reason)


def lines(
    models: Sequence[Opened],
    measures: Mapping[str, Mapping[str, Any]],
    device: str,
    installed: InstalledGpus,
    *,
    counts: Sequence[int],
    clean: int | None,
    shape: tuple[int, ...],
) -> list[str]:
    """Lines that say which jobs of each model run on a GPU; none on a machine without one.

    `measures`: entries of the measures that attack, by name; `counts`: samples of each class, of which `clean` are
    classified, None for all; `shape` (C, H, W) of the images.
    """
    if not installed.usable:
        return [f"device    CPU: {installed.reason}"] if installed.reason else []
    samples = sum(count if clean is None else min(clean, count) for count in counts)
    batch_size = InferenceSettings().batch_size
    work = {"logits": planned_logits(samples)}
    for name, measure in named_measures(measures).items():
        work[name] = planned_measure(measure, samples, len(counts), batch_size)

    said = []
    for model in models:
        network = Network(Path(model.found.entry["path"]).stat().st_size, shape)
        on_gpu = []
        for name, planned in work.items():
            if choose(network, planned, device=device, installed=installed).gpu_percent:
                on_gpu.append(name)
        where = f"GPU ({installed.usable[0].name}) for {', '.join(on_gpu)}" if on_gpu and model.gradients else "CPU"
        if where != "CPU" and len(on_gpu) < len(work):
            where += "; CPU for the rest"
        searching = [name for name in on_gpu if name in measures and kind_of(measures[name]).fast_search]
        reason = {
            "auto": "where it saves more time than a job takes to start there",
            "cpu": "as --device says",
            "cuda": "as --device says",
        }
        said.append(f"device    {model.found.name}: {where}, {reason[device]}")
        if searching and model.gradients:
            said.append(
                "device    attacks search in TF32 where the GPU has it; what they find counts if float32 confirms it"
            )
    return said


def main(reply: Path) -> None:
    """Read the request, write the reply: {"error": words}, or the values of an Inspection."""
    request = Request.of_text(sys.stdin.read())
    # Records of digests and copied architectures belong to the audit, and it does not exist yet.
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER_VARIABLE] = _architectures(request, Path(folder))

        warnings.simplefilter("ignore")
        try:
            said = asdict(inspect(request, lambda line: print(line, flush=True)))
        except InputError as error:
            said = {"error": str(error)}
        except MemoryError:
            said = {"error": "not enough memory to open the model and 200 images; use a machine with more"}
        # Files of others, and the code that some are, may fail in any way, and end Python.
        except (Exception, SystemExit) as error:
            said = {"error": words_of(error, request)}
    reply.write_text(json.dumps(said), encoding="utf-8")


def words_of(error: BaseException, request: Request) -> str:
    """Message for an exception that nothing else explains: the files that were looked at, its type and first line."""
    files = ", ".join(filter(None, [*request.models, request.data]))
    return (
        f"{files}: one of these cannot be audited ({type(error).__name__}: {first_line(error)}); write it again by "
        "another tool, or describe it by hand (docs/add-a-model.md, docs/add-a-dataset.md)"
    )


def _architectures(request, folder):
    """Folder in which the file of --architecture stands beside those of the project, as it will after the copy."""
    inside = folder / PACKAGE
    inside.mkdir()
    for file in Path(PACKAGE).glob("*.py"):
        (inside / file.name).symlink_to(file.resolve())
    library, _, _ = (request.architecture or "").rpartition(":")
    file = Path(library)
    if library.endswith(".py") and file.is_file():
        target = inside / f"{module_name(file)}.py"
        target.unlink(missing_ok=True)
        target.write_bytes(file.read_bytes())
    return str(inside)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
