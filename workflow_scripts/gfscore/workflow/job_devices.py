"""Where a job that shows images to a classifier runs: on the CPU, or on a part of a GPU of this machine.

Decided where a run is planned, from the size of the network, its images and the passes that are planned.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gfscore.core.names import enumeration
from gfscore.core.settings import Subset
from gfscore.measures import NamedMeasure
from gfscore.networks.device_choice import START_SECONDS, Network, checkpoint_size, gpu_pays, memory_mb, percent_of
from gfscore.networks.installed_gpus import NO_GPU, InstalledGpus
from gfscore.networks.sources.trained import Trained
from gfscore.projection.mappers.declared import MapperSettings
from gfscore.workflow.entries import PlannedOffsets
from gfscore.workflow.plan import Run

FEEDING_CORES = 2
"""Cores of a job on a GPU: one that prepares images, one that launches."""

LOGITS_BATCH = 1024
"""Images that extract_logits classifies at a time on a GPU at most."""

MOVES = 2
"""Directions in which a search along a latent dimension goes."""


@dataclass(frozen=True)
class Planned:
    """Work of a job: forward passes of single images, images at a time, and whether the network is differentiated."""

    forwards: float
    batch_size: int
    gradients: bool


@dataclass(frozen=True)
class JobDevice:
    """Device of a job, "auto", "cpu" or "cuda", and the percentage of one GPU that it takes, 0 for none."""

    device: str
    gpu_percent: int = 0


def choose(network: Network, planned: Planned, *, device: str, installed: InstalledGpus) -> JobDevice:
    """Device of a job on a machine with some GPUs.

    Parameters
    ----------
    network : Network
        Size of its network and of its images.
    planned : Planned
        Passes that it makes.
    device : str
        Setting `inference: device`: "cpu" and "cuda" decide, "auto" leaves it to the rule of `gpu_pays`.
    installed : InstalledGpus
        What there is.
    """
    if device == "cpu":
        return JobDevice(device)
    if not installed.usable:
        return without_gpu(device)
    if device == "auto" and not gpu_pays(network, planned.forwards):
        return JobDevice("cpu")
    largest = max(gpu.memory_mb or math.inf for gpu in installed.usable)
    if device == "auto" and memory_mb(network, 1, gradients=planned.gradients) > largest:
        # Its step would end with the advice to run on the CPU.
        return JobDevice("cpu")
    memory = memory_mb(network, planned.batch_size, gradients=planned.gradients)
    # The smallest GPU: which one a job gets is decided when it starts.
    smallest = min(installed.usable, key=lambda gpu: gpu.memory_mb or 0)
    return JobDevice(device, percent_of(memory, smallest.memory_mb))


def without_gpu(device: str) -> JobDevice:
    """Device of a job on a machine where no GPU is known: "auto" is the CPU.

    What torch may find for itself has no parts that jobs could share.
    """
    return JobDevice("cpu" if device == "auto" else device)


def words_of(installed: InstalledGpus, device: str) -> str:
    """What a run says of the GPUs of its machine, in a line; `device` is the setting `inference: device`."""
    kinds = Counter((gpu.name, gpu.memory_mb) for gpu in installed.usable)
    cards = []
    for (name, mib), count in kinds.items():
        several = f"{count} x " if count > 1 else ""
        memory = f" ({mib:,} MiB)" if mib else ""
        cards.append(f"{several}{name}{memory}")
    rule = {
        "auto": f"a job takes a part of one if that saves more than the {START_SECONDS:g} s that it takes to start",
        "cpu": "not used, as device is cpu",
        "cuda": "every job of a model takes a part of one, as device is cuda",
    }
    return f"GPU: {enumeration(cards)}: {rule[device]}"


# ---- passes of a job ----


def planned_logits(samples: int) -> Planned:
    """Work of extract_logits on so many samples."""
    return Planned(samples, LOGITS_BATCH, gradients=False)


def planned_measure(measure: NamedMeasure, samples: int, classes: int, batch_size: int) -> Planned:
    """Work of a measure on a dataset of so many samples and classes; `batch_size` is the setting of inference.

    Parameters
    ----------
    measure : NamedMeasure
        Its kind says how many passes a sample takes.
    samples, classes : int
        Numbers of samples and classes of the dataset.
    batch_size : int
        Setting `inference: batch_size`, images at a time.
    """
    kind, settings = measure.kind, measure.settings
    measured = samples_of(measure.subset, samples, classes)
    forwards = measured * (1 + kind.forward_passes(settings, classes))
    images_at_once = kind.images_at_once(settings, batch_size, classes)
    return Planned(forwards, images_at_once, gradients=kind.gradients(settings))


def planned_offsets(offsets: PlannedOffsets, samples: int, classes: int, batch_size: int) -> Planned:
    """Work of choose_offsets on a dataset of so many samples and classes: an attack in each round."""
    planned = planned_measure(offsets.measure, samples, classes, batch_size)
    return replace(planned, forwards=planned.forwards * offsets.settings.rounds)


def planned_projection(mapper: MapperSettings, samples: int, classes: int) -> Planned:
    """Work of project_attributes with a mapper on a dataset of so many samples and classes.

    Parameters
    ----------
    mapper : MapperSettings
        Its latent dimensions and attributes are searched, each in both directions.
    samples, classes : int
        Numbers of samples and classes of the dataset.
    """
    search = mapper.search
    attributes = getattr(mapper, "attributes", None) or ()
    moves = (mapper.latent + len(attributes)) * (MOVES * search.steps + MOVES * search.bisections)
    searched = samples_of(search.drawable_subset(samples=samples, classes=classes), samples, classes)
    return Planned(searched * moves, search.batch_size, gradients=False)


def samples_of(subset: Subset | None, samples: int, classes: int) -> int:
    """Samples of a subset of so many samples and classes; at most those that there are."""
    if subset is None:
        return samples
    if subset.every:
        return math.ceil(samples / subset.every)
    if subset.per_class:
        return min(samples, subset.per_class * classes)
    return min(samples, subset.samples or samples)


# ---- from the files of a run ----


@dataclass(frozen=True)
class RecordedDataset:
    """What the manifest of fetch_dataset says of a dataset: number of samples and classes, shape of its images."""

    samples: int
    classes: int
    image_shape: tuple[int, ...]

    @classmethod
    def read(cls, path: str) -> RecordedDataset:
        """From a manifest; FileNotFoundError where it is not made yet."""
        manifest = _manifest(path)
        return cls(manifest["samples"], len(manifest["classes"]), tuple(manifest["image_shape"]))


def useful_cores(measure: NamedMeasure, path_to_dataset: str) -> int:
    """Cores of use to a job: one for each batch where the measure's kind works on several samples at once, else one.

    FileNotFoundError where the manifest of the dataset is not made yet.
    """
    if measure.kind.most_cores == 1:
        return 1
    dataset = RecordedDataset.read(path_to_dataset)
    batches = math.ceil(samples_of(measure.subset, dataset.samples, dataset.classes) / measure.kind.most_at_once)
    return max(1, min(batches, measure.kind.most_cores))


def recorded_size(path_to_model: str, path_to_checkpoint: str | None) -> int:
    """Bytes of the network of a manifest; FileNotFoundError where it is not made yet."""
    if path_to_checkpoint:
        return Path(path_to_checkpoint).stat().st_size
    return checkpoint_size(_manifest(path_to_model))


def _manifest(path: str) -> Any:
    # Not read_json: Snakemake has to see that the file is missing, and the job reports one that is damaged.
    return json.loads(Path(path).read_text(encoding="utf-8"))


# ---- what cannot run ----


def gpu_mistakes(run: Run, installed: InstalledGpus) -> list[str]:
    """What keeps the audits of a run from the device that their settings name, a sentence with the remedy for each.

    Steps that an earlier run has finished need no device.

    Parameters
    ----------
    run : Run
    installed : InstalledGpus
        GPUs of this machine.
    """
    if installed.usable:
        return []
    device = run.settings.inference.device
    if installed.driver_too_old and device == "auto":
        return [installed.reason]

    remedies: dict[str, str] = {}
    if device == "cuda":
        remedies["inference"] = "set device: auto or cpu (gfscore audit: --device), or run it on a machine with a GPU"
    # Training that is not finished yet.
    remedy = "set device: cpu there, which is much slower, or run it on a machine with a GPU"
    for audit in run.selected:
        for model in audit.task_models:
            settings = model.settings
            if isinstance(settings, Trained) and settings.training.device == "cuda" and _is_missing(model.manifest):
                remedies[f"models: {model.zoo_path}: training"] = remedy
        for mapper in audit.mappers:
            if mapper.settings.device == "cuda" and _is_missing(mapper.manifest):
                remedies[f"mappers: {mapper.name}"] = remedy
        for dataset in audit.datasets:
            generator = dataset.generator
            if generator and generator.device == "cuda" and _is_missing(str(dataset.generator_manifest)):
                remedies[f"datasets: {dataset.name}: generator"] = remedy
    reason = installed.reason or NO_GPU
    return [f"{key_path}: device is cuda, but {reason}; {remedy}" for key_path, remedy in remedies.items()]


def _is_missing(manifest: str) -> bool:
    return not Path(manifest).exists()
