"""Measures that need images and a classifier: one job per (model, dataset), in batches that survive interruption."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gfscore.core.files import read_json
from gfscore.images.manifests import open_described
from gfscore.images.subsets import subset_rows
from gfscore.measures import progress
from gfscore.networks import devices, inference, passes
from gfscore.networks.classifier import open_classifier
from gfscore.networks.device_choice import threads_for
from gfscore.networks.devices import lift_limit
from gfscore.networks.precision import FULL, reproducible_arithmetic, search_precision
from gfscore.statistics.draws import seeds_of_samples
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import write_table
from gfscore.tables.table import Table


def measure_in_batches(
    files: Mapping[str, Any],
    path_to_samples: str | Path,
    path_to_progress: str | Path,
    measure_batch: Callable[..., dict[str, Any]],
    *,
    table: Table,
    measure: str,
    settings: Mapping[str, Any],
    how: Mapping[str, Any],
    of_samples: Callable[[Any], dict[str, Any]] = lambda sample_id: {},
    with_copies: bool = False,
    device: str = "auto",
    gpu_percent: int | None = None,
    search: str = FULL,
) -> None:
    """Write the samples table of one measure of one model.

    `files` maps dataset, model and checkpoint (or None) to paths, as extract_logits takes them. `measure_batch(
    classifier, images, labels, *, settings, seeds)` takes a Classifier, images (n, C, H, W) float32 in
    [0, 1], labels (n,) int64 and a seed of each sample, (n,) uint64, and returns one array per column of `table`
    but sample_id, label and clean_prediction; with several rows per sample also `row`, the index of each row's sample
    in the batch. `settings` are the measure's entry in config.yaml, of which `subset` and `seed` are used here; `how`
    holds batch_size and version. `of_samples` maps the identifiers (n,) of a batch to more keyword arguments of
    `measure_batch`; `with_copies`: where the dataset brings corrupted copies, those of the batch are one, `copies`.
    Finished batches are kept in `path_to_progress` until the table is written; of a subset of so many of each class its
    samples stay there, for a larger one. A batch that does not fit into memory is halved. `device` "auto" is a GPU if
    there is one, of which `gpu_percent` are held. `search` is the setting `inference: search`: where attacks search in
    another arithmetic than float32, the table's identity says so.
    """
    images, rows, classifier, identity = _opened(
        files, settings, measure, with_copies, device=device, gpu_percent=gpu_percent
    )
    threads, device = identity.pop("threads"), identity["device"]
    where = files["checkpoint"] or files["model"]
    precision = search_precision(search, classifier, device=device)
    if precision != FULL:
        identity["search"] = precision
        print(f"attacks search in {precision}; what they find counts if float32 confirms it")
    classifier = replace(classifier, search=precision)
    # Of its row in the dataset, so that a sample is drawn alike in any subset and batch.
    seeds = seeds_of_samples(settings["seed"], settings["kind"], rows)
    kept = progress.KeptSamples(path_to_progress, table, identity, version=how["version"])
    todo = kept.missing(images.sample_id)
    asked, images = images.sample_id, images.select(todo) if len(todo) < len(images) else images
    seeds = seeds[todo]
    size, numbered = how["batch_size"], enumerate(images.full_batches(how["batch_size"]))
    measure_batch = partial(measure_batch, settings=settings)

    def compute(part: int) -> pd.DataFrame:
        # Parts are computed in ascending order; batches of those that were kept are skipped.
        batch = next(batch for number, batch in numbered if number == part)
        of = {"images": images, "seeds": seeds, "of_samples": of_samples, "table": table, "where": where}
        return _measured(batch, part * size, measure_batch=measure_batch, classifier=running, **of)

    with reproducible_arithmetic(threads=threads), passes.counted(classifier) as running:
        started = time.monotonic()
        made = None
        if len(todo):
            made = progress.in_parts(
                range(-(-len(images) // size)),
                compute,
                table=table,
                folder=path_to_progress,
                identity={**identity, **how, "kept": len(asked) - len(todo)},
            )
        taken = f", {len(asked) - len(todo)} more measured before" if len(todo) < len(asked) else ""
        print(f"{len(todo)} samples, {time.monotonic() - started:.1f} s on {device}{taken}")
        write_table(path_to_samples, table, kept.completed(made, asked), identity=identity)
        progress.forget(path_to_progress)
        kept.keep()


def _opened(files, settings, measure, with_copies, *, device, gpu_percent):
    # The images that are asked for, their rows in the dataset, the classifier on its device, and the identity of the
    # table with the number of threads.
    images, dataset = open_described(files["dataset"], with_copies=with_copies)
    rows = np.arange(len(images.labels))
    model = read_json(files["model"])
    of_data = {"image_shape": dataset["image_shape"], "classes": len(dataset["classes"])}
    threads = threads_for(model, files["checkpoint"])
    classifier = open_classifier(model, files["checkpoint"], **of_data, threads=threads)
    inference.require_fit(classifier, dataset, source=files["checkpoint"] or model["path"])
    if settings["subset"] is not None:
        rows = subset_rows(images.labels, settings["subset"], where=f"measures: {measure}")
        images = images.select(rows)
    device = devices.device_of(classifier, device, gpu_percent=gpu_percent)
    devices.move_to(classifier, device, where=files["checkpoint"] or model["path"])
    identity: dict[str, Any] = inference.identity_of(dataset, model, device=device, **classifier.in_words)
    identity |= {"measure": measure, "settings": json.dumps(settings, sort_keys=True)}
    if images.copies:
        identity["corrupted_digest"] = dataset["corrupted"]["digest"]
    return images, rows, classifier, identity | {"threads": threads}


def _measured(batch, start, *, where, **how):
    # Rows of a batch whose first sample is the one numbered `start`; of halves where memory runs out.
    frame = None
    try:
        frame = _rows(batch, start, **how)
    # onnxruntime's errors derive from Exception alone.
    except Exception as error:
        if not devices.out_of_memory(error):
            raise
        if len(batch) == 1 and not lift_limit():
            devices.refuse_small_gpu(error, where=where)
            raise
    # Only here, as an error that is being handled keeps the tensors of what failed.
    if frame is None and len(batch) == 1:
        return _measured(batch, start, where=where, **how)
    if frame is None:
        half = (len(batch) + 1) // 2
        print(f"out of memory with {len(batch)} images at a time: {half} from here")
        first = _measured(batch[:half], start, where=where, **how)
        second = _measured(batch[half:], start + half, where=where, **how)
        frame = pd.concat([first, second], ignore_index=True)
    return frame


def _rows(batch, start, *, measure_batch, classifier, images, seeds, of_samples, table):
    here = slice(start, start + len(batch))
    labels = np.asarray(images.labels[here], dtype=np.int64)
    clean = predictions(classifier.logits(batch), labels)
    own = of_samples(images.sample_id[here])
    if images.copies:
        own["copies"] = images.copies.select(np.arange(len(images))[here])
    columns = dict(measure_batch(classifier, batch, labels, seeds=seeds[here], **own))
    rows = columns.pop("row", np.arange(len(batch)))
    shared = {"sample_id": images.sample_id[start + rows], "label": labels[rows], "clean_prediction": clean[rows]}
    return pd.DataFrame(shared | columns)[table.column_names]


def of_job(job: Any, *, named_by: str = "measure") -> dict[str, Any]:
    """What `measure_in_batches` takes besides the function, from Snakemake's description of a job, as a mapping.

    `named_by` is the wildcard that names what is measured.
    """
    given, settings = job.input, job.params
    return {
        "files": {"dataset": given.dataset, "model": given.model, "checkpoint": given.get("checkpoint") or None},
        "path_to_samples": job.output.samples,
        "path_to_progress": settings.progress,
        "measure": job.wildcards[named_by],
        "settings": settings.settings,
        "how": {"batch_size": settings.batch_size, "version": settings.version},
        "device": job.resources.device,
        "gpu_percent": job.resources.gpu_percent or None,
    }
