"""Inspection of models and data: what they are, whether they fit, and the audit that would be run of them.

Runs in a process of its own, python -m gfscore.workflow.new_audit.inspection REPLY, with the request on its input: a
model of somebody else may crash, or take all memory, and the process that waits says so. Lines of progress go to
standard output, the result as JSON to the file REPLY.
"""

import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.numbers import counted
from gfscore.core.settings import as_number
from gfscore.measures import named_measures
from gfscore.measures.proven import Proven
from gfscore.networks.architecture_files import FOLDER_VARIABLE, PACKAGE
from gfscore.networks.device_choice import InferenceSettings, Network
from gfscore.networks.installed_gpus import NO_GPU, InstalledGpus, installed_gpus
from gfscore.networks.model_source import Settings
from gfscore.networks.outputs import first_line
from gfscore.workflow.job_devices import choose, planned_logits, planned_measure
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.data_files import NewData, find_data, resized, with_rows_to_show
from gfscore.workflow.new_audit.logit_files import inspect_logits
from gfscore.workflow.new_audit.model_files import find_models
from gfscore.workflow.new_audit.model_outputs import require_use_of_probabilities
from gfscore.workflow.new_audit.new_model import NewModel, Resize
from gfscore.workflow.new_audit.orientation import in_better_orientation, in_requested_orientation
from gfscore.workflow.new_audit.request import Inspection, Request, module_name, name_from
from gfscore.workflow.new_audit.shown_images import ShownModel, look_at

SMALL_SIDE = 32
"""Images of at least this side have the usual radius 8/255; digits and the like are attacked further."""

FAR = {"linf": ("8/255", "0.1"), "l2": ("0.5", "1.0")}
"""Usual radius of images of at least SMALL_SIDE, and of smaller ones, by norm."""

DEVICE_REASONS = {
    "auto": "where it saves more time than a job takes to start there",
    "cpu": "as --device says",
    "cuda": "as --device says",
}


def inspect(request: Request, tell: Callable[[str], None]) -> Inspection:
    """Inspect the models and data of a request.

    Parameters
    ----------
    request : Request
        Files and options.
    tell : callable
        Gets a line of progress now and then.

    Raises
    ------
    InputError
        Naming the file, the cause and the remedy, for whatever an audit could not be made of.
    """
    models = find_models(request)
    if any(model.has_logits_only for model in models):
        return inspect_logits(models, request)
    if request.architecture and not any("architecture" in model.entry for model in models):
        raise InputError(f"--architecture {request.architecture}: no model here is a file of weights; leave it out")
    installed = installed_gpus()
    require_device(request.device, installed)
    assert request.data is not None  # by require_paths

    data = in_requested_orientation(find_data(request.data, request), request)
    data, rows = _in_size(data, models, request)
    data, orientation_lines = in_better_orientation(data, models, request, tell)
    images = np.concatenate(list(data.images.select(rows).batches(64)))
    labels = data.images.labels[rows].astype(np.int64)
    large, small = FAR[request.norm]
    radii = request.eps or (large if min(data.images.image_shape[1:]) >= SMALL_SIDE else small,)
    proof = Proven.model_validate(
        {"norm": request.norm, "eps": float(as_number(radii[0])), "budget": audit_file.PROOF_BUDGET}
    )
    shown_models = []
    for model in models:
        tell(f"showing {len(rows)} images to {model.name}")
        shown_models.append(look_at(model, data, images, labels, request, proof=proof))
    require_use_of_probabilities(request, [model.entry for model in shown_models])

    counts = [int(count) for count in data.counts]
    sizes, proof_words = _sizes(shown_models, counts, len(radii), request.minutes)
    obstacle = _obstacle_to_attacks(shown_models, sizes, request)
    measures = {} if obstacle else audit_file.robustness_measures(request.norm, radii, sizes)

    lines = []
    copies: dict[str, str] = {}
    for shown_model in shown_models:
        model = shown_model.model
        notes = model.input.note + _note_on_size(model.input.resize, data)
        lines.append(f"model     {model.name}: {model.words}{notes}")
        lines += shown_model.lines
        copies.update(shown_model.model.copies)
    lines.append(f"data      {_data_words(data, counts)}")
    lines += orientation_lines
    lines += device_lines(
        shown_models, measures, request.device, installed, counts=counts, clean=sizes.clean, shape=images.shape[1:]
    )
    if obstacle:
        lines += audit_file.lines_without_attacks(obstacle)
    else:
        lines += _measure_lines(radii, request, sizes, proof_words)

    entries = []
    for shown_model in shown_models:
        # Without the line on its answers, which are others at every look.
        entries.append(audit_file.ModelEntry(shown_model.model.name, shown_model.entry, shown_model.lines[:-1]))
    name_source = models[0].name if len(models) == 1 else Path(request.data).stem
    audit = audit_file.NewAudit(
        name=request.name or name_from(name_source),
        data=audit_file.with_subset(data.entry, sizes.clean),
        models=entries,
        measures=measures,
        device=request.device,
    )
    return audit.inspection(lines, copies)


# ---- images ----


def _in_size(data: NewData, models: Sequence[NewModel], request: Request) -> tuple[NewData, NDArray[np.int64]]:
    # Data in the size that the models take, and rows to show. All images are decoded once, unless they have several
    # sizes and the first happens to have the right one.
    sides = {model.input.shape[1:] for model in models if model.input.shape}
    if len(sides) > 1:
        names = [f"{width}x{height}" for height, width in sorted(sides)]
        raise InputError(f"the models take images of several sizes ({few(names)}); audit those of one size together")

    stated = [model.input.resize for model in models if model.input.resize]
    _, height, width = data.images.image_shape
    size = (request.size, request.size) if request.size else next(iter(sides), None)
    if size in (None, (height, width)):
        data, rows = with_rows_to_show(data)
        if data.uniform:
            return data, rows
    if size is None:
        if not stated:
            raise InputError(
                f"{request.data}: images of several sizes, and no model says which it takes; add --size (make: SIZE=)"
            )
        size = (stated[0].size, stated[0].size)
    if size[0] != size[1]:
        raise InputError(f"{request.data}: the model takes images of {size[1]}x{size[0]}; store them in that size")
    resize = Resize("center_crop", size[0], size[0])
    if not request.size:
        resize = next((way for way in stated if way.size == size[0]), resize)
    return with_rows_to_show(resized(data, resize))


def _note_on_size(stated: Resize | None, data: NewData) -> str:
    # How the files of a model bring images to its size, where something else is done: images of one size may be taken
    # as they are stored, and several models share their images.
    if stated is None:
        return ""
    done = data.entry.get("preprocessing", {})
    default = {"interpolation": "bilinear"}
    entry = {**default, **stated.entry()}
    if "size" in done:
        if {**default, **done, "orientation": None} == {**entry, "orientation": None}:
            return ""
    elif entry.get("resize", entry["size"]) == entry["size"] == data.images.image_shape[1]:
        return ""
    words = f"{entry['method']} to {entry['size']} pixels"
    if "resize" in entry:
        words += f" after a resize to {entry['resize']}"
    return f"; its files say {words} ({entry['interpolation']}), which is not what is done here"


def _data_words(data: NewData, counts: Sequence[int]) -> str:
    channels, height, width = data.images.image_shape
    size = f"{len(data.images):,} images of {width}x{height}"
    if channels == 1:
        size += " grey"
    resize = data.entry.get("preprocessing", {})
    if "size" in resize:
        size += f", {resize['method']} to {resize['size']} pixels"
    words = f"{data.words}, {size}, {len(counts)} classes ({few(list(data.classes))})"
    if min(counts) >= audit_file.FEW_SAMPLES:
        return words

    small_classes = sum(count < audit_file.FEW_SAMPLES for count in counts)
    words += f"; fewer than {audit_file.FEW_SAMPLES} in {small_classes} classes"
    empty = [name for name, count in zip(data.classes, counts, strict=True) if count == 0]
    if empty:
        words += f", none in {few(empty)}, so that no gate on every class can pass"
    return words


# ---- measures ----


def _sizes(
    shown_models: Sequence[ShownModel], counts: Sequence[int], attack_count: int, minutes: float
) -> tuple[audit_file.Sizes, str]:
    # Samples of each class, with proofs where they are worth their time, and a line on proofs.
    forward_seconds = [model.seconds for model in shown_models]
    without_proofs = audit_file.sizes(forward_seconds, counts, attack_count=attack_count, minutes=minutes)
    for model in shown_models:
        if model.proofs.obstacle:
            return without_proofs, f"none: {model.proofs.obstacle} ({model.model.name})"
    proof_seconds = [model.proofs.seconds for model in shown_models]
    tried = sum(model.proofs.tried for model in shown_models)
    proven = sum(model.proofs.proven for model in shown_models)
    words = f"{proven} of {tried} images proven in a trial, {sum(proof_seconds) / len(proof_seconds):.2g} s each"
    with_proofs = audit_file.sizes(
        forward_seconds, counts, attack_count=attack_count, minutes=minutes, proof_seconds=proof_seconds
    )
    share = f"{audit_file.PROVEN_SHARE:.0%} of the time"
    if not audit_file.proofs_leave_enough_attacks(with_proofs, without_proofs, counts):
        words = f"none: {words}, so that {share} is too little for those that are attacked; more --minutes"
        return without_proofs, words
    return with_proofs, f"of the samples that are attacked: {words}; up to {share}"


def _obstacle_to_attacks(shown_models: Sequence[ShownModel], sizes: audit_file.Sizes, request: Request) -> str:
    # Why an audit has no attacks, empty where it has.
    if not all(model.gradients for model in shown_models):
        return "no attacks, as gradients are missing"
    if sizes.seconds <= 60 * request.minutes + audit_file.LEAST_SECONDS:
        return ""
    minutes = math.ceil(sizes.seconds / 60)
    time = counted(minutes, "minute")
    return f"no attacks, as one image of each class takes about {time}: --minutes {minutes} has them"


def _measure_lines(radii: Sequence[str], request: Request, sizes: audit_file.Sizes, proof_words: str) -> list[str]:
    measures = [
        f"attacks at {request.norm} {', '.join(radii)} on {_samples_words(sizes.adversarial)}",
        f"distances on {_samples_words(sizes.minimal)}",
    ]
    if sizes.clean is not None:
        measures.append(f"clean accuracy on {_samples_words(sizes.clean)}")
    lines = [f"measures  {'; '.join(measures)}; about {counted(math.ceil(sizes.seconds / 60), 'minute')}"]
    if sizes.adversarial is not None and sizes.adversarial < audit_file.FEW_SAMPLES:
        wanted = audit_file.FEW_SAMPLES
        needed = math.ceil(request.minutes * wanted / sizes.adversarial)
        lines.append(f"          for {wanted} attacked of each class: --minutes {needed} (make: MINUTES={needed})")
    lines.append(f"proofs    {proof_words}")
    least = audit_file.GATE_ROBUST_ACCURACY
    if sizes.proven:
        words = f"is at least {least} robust: PASS takes proofs, FAIL attacks, else INCONCLUSIVE"
    else:
        words = f"keeps at least {least} under the first attack"
    lines.append(f"gate      the worst class {words}; yours to decide")
    return lines


def _samples_words(per_class: int | None) -> str:
    return "all samples" if per_class is None else f"{per_class} of each class"


# ---- devices ----


def require_device(device: str, installed: InstalledGpus) -> None:
    """Raise InputError for "cuda" without a GPU that torch can use, and for "auto" with a driver that is too old."""
    if device == "cuda" and not installed.usable:
        raise InputError(
            f"--device cuda: {installed.reason or NO_GPU}; leave it out, or run it on a machine with a GPU"
        )
    if device == "auto" and installed.driver_too_old:
        raise InputError(installed.reason)


def device_lines(
    models: Sequence[ShownModel],
    measures: Mapping[str, Settings],
    device: str,
    installed: InstalledGpus,
    *,
    counts: Sequence[int],
    clean: int | None,
    shape: tuple[int, ...],
) -> list[str]:
    """Lines that say which jobs of each model run on a GPU; none on a machine without one.

    Parameters
    ----------
    models : sequence of ShownModel
        Models of the audit.
    measures : mapping
        Entries of the measures that attack, by name.
    device : {"auto", "cpu", "cuda"}
        Where the models run.
    installed : InstalledGpus
        GPUs of this machine.
    counts : sequence of int
        Samples of each class.
    clean : int or None
        Samples of each class that are classified; None for all.
    shape : tuple of int
        (C, H, W) of the images.
    """
    if not installed.usable:
        return [f"device    CPU: {installed.reason}"] if installed.reason else []
    attacks = named_measures(measures)
    samples = sum(count if clean is None else min(clean, count) for count in counts)
    batch_size = InferenceSettings().batch_size
    work = {"logits": planned_logits(samples)}
    for name, measure in attacks.items():
        work[name] = planned_measure(measure, samples, len(counts), batch_size)

    lines = []
    for model in models:
        network = Network(Path(model.model.path).stat().st_size, shape)
        on_gpu = []
        for name, planned in work.items():
            if choose(network, planned, device=device, installed=installed).gpu_percent:
                on_gpu.append(name)
        words = "CPU"
        if on_gpu and model.gradients:
            words = f"GPU ({installed.usable[0].name}) for {', '.join(on_gpu)}"
            if len(on_gpu) < len(work):
                words += "; CPU for the rest"
        lines.append(f"device    {model.model.name}: {words}, {DEVICE_REASONS[device]}")
        searching = [name for name in on_gpu if name in attacks and attacks[name].kind.fast_search]
        if searching and model.gradients:
            lines.append(
                "device    attacks search in TF32 where the GPU has it; what they find counts if float32 confirms it"
            )
    return lines


# ---- the process ----


def main(reply: Path) -> None:
    """Read the request, write the reply: {"error": words}, or the values of an Inspection."""
    request = Request.from_json(sys.stdin.read())
    # Records of digests and copied architectures belong to the audit, and it does not exist yet.
    with tempfile.TemporaryDirectory() as folder:
        # The file of --architecture stands beside those of the project, as it will after the copy.
        package = Path(folder, PACKAGE)
        package.mkdir()
        for file in Path(PACKAGE).glob("*.py"):
            (package / file.name).symlink_to(file.resolve())
        library, _, _ = (request.architecture or "").rpartition(":")
        file = Path(library)
        if library.endswith(".py") and file.is_file():
            target = package / f"{module_name(file)}.py"
            target.unlink(missing_ok=True)
            target.write_bytes(file.read_bytes())
        os.environ[FOLDER_VARIABLE] = str(package)

        warnings.simplefilter("ignore")
        try:
            values = asdict(inspect(request, lambda line: print(line, flush=True)))
        except InputError as error:
            values = {"error": str(error)}
        except MemoryError:
            values = {"error": "not enough memory to open the model and 200 images; use a machine with more"}
        # Files of others, and the code that some are, may fail in any way, and end Python.
        except (Exception, SystemExit) as error:
            values = {"error": words_of(error, request)}
    reply.write_text(json.dumps(values), encoding="utf-8")


def words_of(error: BaseException, request: Request) -> str:
    """Message for an exception that nothing else explains: the files that were inspected, its type and first line."""
    files = ", ".join(filter(None, [*request.models, request.data]))
    return (
        f"{files}: one of these cannot be audited ({type(error).__name__}: {first_line(error)}); write it again by "
        "another tool, or describe it by hand (docs/add-a-model.md, docs/add-a-dataset.md)"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
