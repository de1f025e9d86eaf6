"""Inference: logits of the images of a dataset, in reproducible arithmetic, and their identity."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.batch_invariance import (
    SAMPLES,
    WIDER,
    Tolerances,
    require_invariant,
    spread_over,
    tolerances_of,
)
from gfscore.networks.batches import computed_ahead, fitting_batch_size, in_batches
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import device_of, device_of_weights, move_to, refuse_small_gpu
from gfscore.networks.model_source import Manifest
from gfscore.networks.number_types import BATCH, search_agreement, searched_logits
from gfscore.networks.outputs import FLOAT32, Images, LabelledImages, Logits, StoredPixels
from gfscore.networks.precision import DRIFT_SAMPLES, FULL, drift, faster, reproducible_arithmetic

CHUNK_BYTES = 1 << 21
"""Smallest size of a chunk of images: handing over tiny ones between threads costs as much as the forward passes."""

AGREEMENT = 1e-4
"""Largest difference between the logits of a converted network and its original's, relative to the largest logit."""


def extract_logits(
    classifier: Classifier | torch.nn.Module,
    images: LabelledImages,
    *,
    batch_size: int | None = None,
    device: str,
    precision: str = FULL,
    where: str | None = None,
) -> tuple[NDArray[np.str_], NDArray[np.int32], Logits]:
    """Logits of all samples of an image set.

    When memory runs out, the batch size is halved, down to single images. Non-finite logits are returned, since
    score_models refuses them.

    Parameters
    ----------
    classifier : Classifier or torch.nn.Module
        A module maps (n, C, H, W) float32 in [0, 1] to (n, K), and is set to eval mode.
    images : ImageSet
    batch_size : int, optional
        Images per forward pass, by default chosen by `fitting_batch_size`.
    device : str
        "cpu", "cuda" or "auto" (see gfscore.networks.devices).
    precision : str
        Arithmetic, "float32", "tf32" or "bfloat16".
    where : str, optional
        The classifier, for messages; by default its architecture.

    Returns
    -------
    tuple of ndarray
        sample_id (N,) str, labels (N,) int32, logits (N, K) float32.

    Raises
    ------
    InputError
        For output that is not one row of logits per image, and for logits that are random or depend on the batch (see
        gfscore.networks.batch_invariance).
    """
    if not isinstance(classifier, Classifier):
        classifier = from_network(classifier)
    if where is None:
        where = f"the classifier ({classifier.architecture or type(classifier.network).__name__})"
    device = device_of(classifier, device)
    move_to(classifier, device, where=where)

    with (
        reproducible_arithmetic(threads=classifier.threads),
        faster(classifier, precision=precision, device=device),
        torch.inference_mode(),
    ):
        try:
            size = batch_size or fitting_batch_size(classifier, images.image_shape, device)
        except Exception as error:
            refuse_small_gpu(error, where=where)
            raise
        tolerances = tolerances_of(classifier.number_type) if precision == FULL else WIDER
        logits = _checked_logits(classifier, images, size, device=device, tolerances=tolerances, where=where)
    return images.sample_id, images.labels, logits


def _checked_logits(
    classifier: Classifier, images: LabelledImages, size: int, *, device: str, tolerances: Tolerances, where: str
) -> Logits:
    # Logits (N, K) by `size` images at a time, in chunks, which are checked one by one, to fail early.
    classes: int | None = None

    def logits_of(batch: Images | StoredPixels) -> Logits:
        return classifier.logits(batch, device=device)

    def batch_logits(batch: Images | StoredPixels) -> Logits:
        nonlocal classes
        logits = logits_of(batch)
        if classes is None and logits.ndim == 2:
            classes = logits.shape[1]
        if logits.shape != (len(batch), classes):
            raise InputError(
                f"{where}: returns shape {logits.shape} for {len(batch)} images, expected ({len(batch)}, "
                f"{classes or 'K'}): one row of logits per image, also for a single image (squeeze() drops that row); "
                "correct the architecture"
            )
        return logits

    repeated_rows = spread_over(len(images), SAMPLES)
    batches_per_chunk = max(1, CHUNK_BYTES // (size * 4 * math.prod(images.image_shape)))
    chunk_size = size * batches_per_chunk
    chunks: Iterator[Images | StoredPixels]
    if device == "cpu":
        chunks = images.batches(chunk_size)
    else:
        # A GPU gets what is stored, a quarter of the bytes, and from page-locked memory nearly twice as fast.
        chunks = (torch.from_numpy(stored).pin_memory().numpy() for stored in images.stored_batches(chunk_size))

    logits = []
    start = 0
    for chunk in computed_ahead(chunks):
        # A reduced batch size is kept for the next chunks.
        try:
            batches, size = in_batches(batch_logits, chunk, size)
        except Exception as error:
            refuse_small_gpu(error, where=where)
            raise
        chunk_logits = np.concatenate(batches)
        inside = (repeated_rows >= start) & (repeated_rows < start + len(chunk))
        rows = repeated_rows[inside] - start
        require_invariant(logits_of, chunk, rows, chunk_logits, tolerances=tolerances, where=where)
        logits.append(chunk_logits)
        start += len(chunk)
    return np.concatenate(logits)


# Checks of the logits


def measured_drift(
    classifier: Classifier,
    images: LabelledImages,
    logits: Logits,
    *,
    precision: str,
    device: str,
    where: str | None = None,
) -> dict[str, str]:
    """Differences of logits from those in float32, for their identity; empty for plain float32.

    Some of the images, DRIFT_SAMPLES at most, are computed again in float32.

    Parameters
    ----------
    classifier, images, precision, device, where
        See `extract_logits`, which made the logits.
    logits : ndarray
        (N, K).
    """
    if classifier.network is None or precision == FULL:
        return {}
    rows = spread_over(len(images), DRIFT_SAMPLES)
    _, labels, exact = extract_logits(classifier, images.select(rows), device=device, where=where)
    return {"dtype": precision, **drift(exact, logits[rows], labels)}


def require_agreement(
    classifier: Classifier, images: LabelledImages, logits: Logits, *, where: object
) -> dict[str, str]:
    """Conversion of a network in words, for the identity of its logits; empty for one that was not converted.

    Parameters
    ----------
    classifier : Classifier
    images : ImageSet
        All of them are computed again by the original.
    logits : ndarray
        Logits (N, K) of the classifier.
    where : object
        The model, for messages.

    Raises
    ------
    InputError
        If any logit differs from the original's by more than AGREEMENT times the largest absolute logit.
    """
    words = []
    if classifier.network is not None and classifier.number_type != FLOAT32:
        searched = searched_logits(classifier, images)
        words.append(search_agreement(classifier, searched, logits, where=where))
        logits = searched
    original = classifier.original
    if original is not None:
        exact = np.concatenate([original.run(batch) for batch in images.batches(BATCH)])
        largest = float(np.abs(exact).max())
        distance = float(np.abs(exact.astype(np.float64) - logits).max()) / (largest or 1.0)
        # NaN, for which every comparison is false, must be refused too.
        if not distance <= AGREEMENT:
            raise InputError(
                f"{where}: logits of the network that {original.converter} made of it differ from those of "
                f"{original.by} by {distance:.1e} of the largest logit, above {AGREEMENT:g}; set gradients: false and "
                "leave out measures that need gradients, or name the weights and the architecture that it was exported "
                "from"
            )
        words = [f"by {original.converter}", f"logits within {distance:.0e} of {original.by}'s", *words]
    return {"conversion": "; ".join(words)} if words else {}


def require_fit(classifier: Classifier, dataset: Manifest, *, source: object) -> None:
    """Refuse a classifier whose image shape or number of classes differs from a dataset's.

    What the classifier does not state is not compared.

    Parameters
    ----------
    classifier : Classifier
    dataset : mapping
        The manifest of fetch_dataset.
    source : object
        The checkpoint, for messages.

    Raises
    ------
    InputError
    """
    shape = classifier.image_shape
    name = dataset["dataset"]
    if shape is not None and list(shape) != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {list(shape)}, but {name} has {dataset['image_shape']}; evaluate it "
            "on images of that shape (models_of and preprocessing in the configuration)"
        )
    if classifier.classes is not None and classifier.classes != len(dataset["classes"]):
        raise InputError(
            f"{source}: made for {classifier.classes} classes, but {name} declares {len(dataset['classes'])}; correct "
            "`classes` or models_of in the configuration"
        )


def identity_of(
    dataset: Manifest,
    model: Manifest,
    *,
    device: str,
    preprocessing: str = "",
    number_type: str = FLOAT32,
    outputs: str = "",
) -> dict[str, str]:
    """Identity metadata of a logits file: names, digests and arithmetic.

    Parameters
    ----------
    dataset : mapping
        Manifest of fetch_dataset for the evaluated dataset.
    model : mapping
        Manifest of train_model or fetch_checkpoint.
    device : str
        "cpu" or "cuda".
    preprocessing, number_type, outputs : str
        Attributes of the classifier, in words.
    """
    identity = {
        "dataset": dataset["dataset"],
        "threat": model["threat"],
        "model": model["model"],
        "dataset_digest": dataset["digest"],
        "checkpoint_sha256": model["sha256"],
        "architecture": model["architecture"],
    }
    if "architecture_sha256" in model:
        # Networks defined in architectures/ are not identified by the versions of packages.
        identity["architecture_sha256"] = model["architecture_sha256"]
    if "offsets" in model:
        identity["offsets"] = model["offsets"]
    steps = [words for words in (dataset["preprocessing"], preprocessing) if words]
    identity["preprocessing"] = "; ".join(steps)
    if outputs:
        identity["outputs"] = outputs
    identity["dtype"] = number_type
    identity["device"] = device
    identity["torch"] = str(torch.__version__)
    return identity


def gradients_vanish(network: nn.Module, images: Images) -> bool:
    """Whether gradients of the logits with respect to the pixels are 0 on all images (n, C, H, W)."""
    pixels = torch.from_numpy(images).to(device_of_weights(network)).requires_grad_()
    with torch.enable_grad():
        logits = network(pixels)
        weights = torch.linspace(-1, 1, logits.shape[1], device=logits.device)
        (gradients,) = torch.autograd.grad((logits * weights).sum(), pixels)
    return not gradients.any()
