"""Where the jobs of a new audit run, in lines, and refusals of a device that this machine does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.measures import kind_of, named_measures
from gfscore.networks.device_choice import InferenceSettings, Network
from gfscore.networks.installed_gpus import NO_GPU, InstalledGpus
from gfscore.workflow.job_devices import choose, planned_logits, planned_measure
from gfscore.workflow.new_audit.shown_images import Opened


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
