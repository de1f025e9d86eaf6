"""One measure of one model that is shown images: a job in batches, which survives interruption."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.images.image_set import ImageSet
from gfscore.images.manifests import open_described
from gfscore.images.subsets import subset_rows
from gfscore.measures import progress
from gfscore.measures.declaration import NetworkSettings
from gfscore.networks import devices, inference, passes
from gfscore.networks.adjusted import open_model
from gfscore.networks.batch_invariance import spread_over
from gfscore.networks.classifier import Classifier
from gfscore.networks.devices import GPU_SHARE, ONE_IMAGE
from gfscore.networks.offset_files import Adjustment
from gfscore.networks.precision import FULL, reproducible_arithmetic, search_precision
from gfscore.statistics.draws import seeds_of_samples
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import write_table
from gfscore.tables.table import Table

Columns = Mapping[str, ArrayLike]
"""Arrays by the column of a samples table."""

SampleKeywords = Callable[[NDArray[np.str_]], Mapping[str, object]]
"""From the identifiers (n,) of a batch to further keyword arguments of `measure_batch`."""


SHOWN = 8
"""Images on which gradients are looked at before a measure."""


def no_keywords(_sample_id: NDArray[np.str_]) -> Mapping[str, object]:
    """No further arguments of `measure_batch`."""
    return {}


@dataclass(frozen=True)
class MeasuringJob:
    """What one job measures, and where it writes.

    Parameters
    ----------
    dataset, model : path
        Manifests of the dataset and of the model.
    checkpoint : path or None
        Weights of the model; None where the manifest suffices.
    output : path
        File to write.
    progress : path
        Folder of finished batches, until the file is written.
    measure : str
        Name of the measure.
    settings : NetworkSettings
        Settings, which the table's identity holds; `kind`, `subset` and `seed` decide which samples are measured, and
        with which random numbers.
    batch_size : int
        Images at a time; a batch that does not fit into memory is halved.
    version : str
        Version of the measure's kind: batches of another version are not used.
    device : str
        "auto" is a GPU if there is one.
    gpu_percent : int, optional
        Share of the GPU that is held; None for the whole.
    adjustment : Adjustment, optional
        Offsets of the model; None for a model without.
    """

    dataset: Path | str
    model: Path | str
    checkpoint: Path | str | None
    output: Path | str
    progress: Path | str
    measure: str
    settings: NetworkSettings
    batch_size: int
    version: str
    device: str = "auto"
    gpu_percent: int | None = None
    adjustment: Adjustment | None = None

    @classmethod
    def from_snakemake(cls, job: Any, *, measure: str, settings: NetworkSettings) -> MeasuringJob:
        """Read Snakemake's description of a job that writes one file."""
        return cls(
            dataset=job.input.dataset,
            model=job.input.model,
            checkpoint=job.input.get("checkpoint") or None,
            output=job.output[0],
            progress=job.params.progress,
            measure=measure,
            settings=settings,
            batch_size=job.params.batch_size,
            version=job.params.version,
            device=job.resources.device,
            gpu_percent=job.resources.gpu_percent or None,
            adjustment=Adjustment.from_snakemake(job),
        )

    @property
    def weights(self) -> Path | str:
        """File that error messages about the model name."""
        return self.checkpoint or self.model


def measure_in_batches(
    job: MeasuringJob,
    measure_batch: Callable[..., Columns],
    *,
    table: Table,
    sample_keywords: SampleKeywords = no_keywords,
    require: Callable[..., None] | None = None,
    gradients_alone: bool = False,
    with_copies: bool = False,
    search: str = FULL,
) -> None:
    """Write the samples table of one measure of one model.

    Finished batches are kept until the table is written. Samples of a subset with a number per class are kept beyond
    that, for a later run with a larger subset.

    Parameters
    ----------
    job : MeasuringJob
        What is measured, and where it is written.
    measure_batch : callable
        measure_batch(classifier, images, labels, *, seeds): a Classifier, images (n, C, H, W) float32 in [0, 1], labels
        (n,) int64 and a seed of each sample, (n,) uint64. Returns one array per column of the table but sample_id,
        label and clean_prediction; with several rows per sample also `row`, the index of each row's sample in the
        batch.
    table : Table
        Samples table that the measure fills.
    sample_keywords : callable
        From the identifiers (n,) of a batch to further keyword arguments of `measure_batch`.
    require : callable, optional
        require(classifier, image_shape, *, where): raises InputError, before the first batch, for a classifier of the
        file `where` that cannot be measured.
    gradients_alone : bool
        Whether a classifier is refused whose gradients are 0 on all of some images, though its answers differ.
    with_copies : bool
        Whether `measure_batch` is given the corrupted copies of the batch, as `copies`, if the dataset has any.
    search : str
        Setting `inference: search`: where attacks search in another arithmetic than float32, the table's identity says
        so.
    """
    opened = open_job(job, with_copies=with_copies)
    images, identity, device = opened.images, opened.identity, opened.device
    if require is not None:
        require(opened.classifier, images.image_shape, where=job.weights)
    if gradients_alone:
        _require_gradients(opened.classifier, images, where=job.weights)
    classifier = searching_in(search, opened)

    # By its row in the dataset, so that a sample is drawn alike in any subset and batch.
    seeds = seeds_of_samples(job.settings.seed, job.settings.kind, opened.rows)
    kept_samples = progress.KeptSamples(job.progress, table, identity, version=job.version)
    every_sample = images.sample_id
    unmeasured = kept_samples.missing(every_sample)
    measured_before = len(every_sample) - len(unmeasured)
    if measured_before:
        images = images.select(unmeasured)
        seeds = seeds[unmeasured]

    with reproducible_arithmetic(threads=opened.classifier.threads), passes.counted(classifier) as counted_classifier:
        started = time.monotonic()
        frame = None
        if len(unmeasured):
            batches = Batches(
                images=images,
                seeds=seeds,
                classifier=counted_classifier,
                measure_batch=measure_batch,
                sample_keywords=sample_keywords,
                table=table,
                weights=job.weights,
                size=job.batch_size,
            )
            frame = progress.compute_in_parts(
                range(batches.count),
                batches.measure,
                table=table,
                folder=job.progress,
                identity={
                    **identity,
                    "batch_size": job.batch_size,
                    "version": job.version,
                    "kept": measured_before,
                },
            )
        earlier = f", {measured_before} more measured before" if measured_before else ""
        print(f"{len(unmeasured)} samples, {time.monotonic() - started:.1f} s on {device}{earlier}")
        write_table(job.output, table, kept_samples.complete(frame, every_sample), identity=identity)
        progress.remove_progress(job.progress)
        kept_samples.write()


def _require_gradients(classifier: Classifier, images: ImageSet, *, where: Path | str) -> None:
    # Attacks would find nothing, and the network look robust. One whose answers never differ is robust.
    if classifier.network is None:
        return
    shown = images.select(spread_over(len(images), SHOWN))
    pixels = np.concatenate(list(shown.batches(SHOWN)))
    logits = classifier.logits(pixels)
    if (logits == logits[0]).all() or not inference.gradients_vanish(classifier.network, pixels):
        return
    raise InputError(
        f"{where}: its gradients are 0 on all of {len(pixels)} images, so that attacks that follow them would find "
        "nothing, and it would look robust; add an attack without gradients (square), or leave the measure out"
    )


@dataclass(frozen=True)
class OpenedJob:
    """Images and classifier of a job.

    Attributes
    ----------
    images : ImageSet
        The images that are measured.
    rows : ndarray (N,) of int64
        Positions of the images in the dataset.
    classifier : Classifier
        On its device.
    identity : dict
        Identity of what is written: data, network, arithmetic, measure.
    """

    images: ImageSet
    rows: NDArray[np.int64]
    classifier: Classifier
    identity: dict[str, str]

    @property
    def device(self) -> str:
        """Device of the classifier."""
        return self.identity["device"]


def open_job(job: MeasuringJob, *, with_copies: bool = False) -> OpenedJob:
    """Images and classifier of a job, with corrupted copies of the images if the dataset has any.

    Raises InputError for a subset of one class alone, of which no audit can be made.
    """
    images, dataset = open_described(job.dataset, with_copies=with_copies)
    classifier, model = open_model(job.model, job.checkpoint, dataset, adjustment=job.adjustment)
    rows = np.arange(len(images.labels))
    if job.settings.subset is not None:
        # The settings of a projection stand in the entry of its mapper.
        is_projection = job.settings.kind == "projection"
        where = f"mappers: {job.measure}: search" if is_projection else f"measures: {job.measure}"
        rows = subset_rows(images.labels, job.settings.subset, where=where)
        images = images.select(rows)
        if len(np.unique(images.labels)) < 2:
            raise InputError(
                f"{where}: subset: all of its samples are of one class, and classes are compared; give another subset, "
                "such as per_class"
            )

    device = devices.device_of(classifier, job.device, gpu_percent=job.gpu_percent)
    devices.move_to(classifier, device, where=job.weights)
    if classifier.network is not None:
        # Else each pass keeps what gradients of the weights would take: of ConvNeXt twice the memory.
        classifier.network.requires_grad_(False)
    identity = inference.identity_of(dataset, model, device=device, **classifier.in_words)
    identity["measure"] = job.measure
    identity["settings"] = json.dumps(job.settings.explicit(), sort_keys=True)
    if images.copies:
        identity["corrupted_digest"] = dataset["corrupted"]["digest"]
    return OpenedJob(images, rows, classifier, identity)


def searching_in(search: str, opened: OpenedJob) -> Classifier:
    """Classifier whose attacks search as `inference: search` says; other types than float32 stand in the identity."""
    precision = search_precision(search, opened.classifier, device=opened.device)
    if precision != FULL:
        opened.identity["search"] = precision
        print(f"attacks search in {precision}; what they find counts if float32 confirms it")
    return replace(opened.classifier, search=precision)


@dataclass
class Batches:
    """The images of a job in batches, which are halved where memory runs out.

    Parameters
    ----------
    images : ImageSet
    seeds : ndarray
        Seed of each image, (N,) uint64.
    classifier : Classifier
        On its device.
    measure_batch, sample_keywords : callable
        See `measure_in_batches`.
    table : Table
        Columns of a batch.
    weights : path
        File that error messages about the model name.
    size : int
        Images of a batch.
    """

    images: ImageSet
    seeds: NDArray[np.uint64]
    classifier: Classifier
    measure_batch: Callable[..., Columns]
    table: Table
    weights: Path | str
    size: int
    sample_keywords: SampleKeywords = no_keywords
    _fitting: int = field(init=False)
    _numbered_batches: Iterator[tuple[int, NDArray[np.float32]]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the first batch."""
        self._fitting = self.size
        self._numbered_batches = enumerate(self.images.full_batches(self.size))

    @property
    def count(self) -> int:
        """Number of batches."""
        return -(-len(self.images) // self.size)

    def measure(self, number: int) -> pd.DataFrame:
        """Rows of a batch; batches are measured in ascending order, and those that were kept are skipped."""
        for index, batch in self._numbered_batches:
            if index == number:
                return self._halved(batch, number * self.size)
        raise AssertionError(f"there is no batch {number}")

    def _halved(self, batch: NDArray[np.float32], start: int) -> pd.DataFrame:
        # Rows of a batch that starts at the sample `start`; measured in halves where memory does not hold it.
        if len(batch) > self._fitting:
            half = (len(batch) + 1) // 2
            first = self._halved(batch[:half], start)
            second = self._halved(batch[half:], start + half)
            return pd.concat([first, second], ignore_index=True)
        try:
            return self._rows(batch, start)
        # onnxruntime's errors derive from Exception alone.
        except Exception as error:
            if not devices.out_of_memory(error):
                raise
            if len(batch) == 1 and not GPU_SHARE.lift_limit(ONE_IMAGE):
                devices.refuse_small_gpu(error, where=self.weights)
                raise
        # Behind the handler, as an error that is being handled keeps the tensors of what failed.
        if len(batch) == 1:
            # Without its limit the job may have room for more.
            self._fitting = self.size
        else:
            self._fitting = (len(batch) + 1) // 2
            print(f"out of memory with {len(batch)} images at a time: {self._fitting} from here")
        return self._halved(batch, start)

    def _rows(self, batch: NDArray[np.float32], start: int) -> pd.DataFrame:
        samples = slice(start, start + len(batch))
        sample_id = self.images.sample_id[samples]
        labels = np.asarray(self.images.labels[samples], dtype=np.int64)
        clean_prediction = predictions(self.classifier.logits(batch), labels)

        keywords = dict(self.sample_keywords(sample_id))
        if self.images.copies:
            keywords["copies"] = self.images.copies.select(np.arange(len(self.images))[samples])
        columns = dict(self.measure_batch(self.classifier, batch, labels, seeds=self.seeds[samples], **keywords))

        rows = np.asarray(columns.pop("row", np.arange(len(batch))))
        frame = {"sample_id": sample_id[rows], "label": labels[rows], "clean_prediction": clean_prediction[rows]}
        frame.update(columns)
        return pd.DataFrame(frame)[self.table.with_evidence(frame).column_names]
