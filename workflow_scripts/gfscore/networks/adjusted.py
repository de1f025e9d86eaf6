"""Opening the classifier of a manifest, and adding class offsets, one number for each class, to its logits."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.networks.classifier import Classifier, open_classifier, with_changed_logits
from gfscore.networks.device_choice import threads_for
from gfscore.networks.inference import require_fit
from gfscore.networks.model_source import Manifest
from gfscore.networks.offset_files import Adjustment, added_offsets
from gfscore.networks.outputs import Logits


def with_offsets(classifier: Classifier, offsets: ArrayLike) -> Classifier:
    """Classifier with one number per class added to the logits of another.

    The offsets are part of the network, as the bias of its last layer is: gradients, noisy copies and whatever else
    looks at the network sees them.

    Parameters
    ----------
    classifier : Classifier
        With or without gradients.
    offsets : array_like of shape (K,)
        In the unit of the logits.

    Raises
    ------
    InputError
        For another number of offsets than the classifier has classes.
    """
    numbers = np.asarray(offsets, dtype=np.float32)
    if classifier.classes is not None and numbers.shape != (classifier.classes,):
        raise InputError(
            f"{numbers.size} offsets for a classifier of {classifier.classes} classes; choose them on data of the same "
            "classes"
        )

    def forward(network: nn.Module, images: Tensor, offsets: Tensor) -> Tensor:
        return network(images) + offsets

    def shifted(logits: Logits) -> Logits:
        return logits + numbers

    constant = torch.tensor(numbers, device=classifier.device)
    return with_changed_logits(classifier, shifted, forward, offsets=constant)


def open_model(
    path_to_model: Path | str,
    path_to_checkpoint: Path | str | None,
    dataset: Manifest,
    *,
    adjustment: Adjustment | None = None,
) -> tuple[Classifier, Manifest, int]:
    """Classifier of a manifest that fits a dataset, on the CPU.

    Parameters
    ----------
    path_to_model : path
        Manifest of train_model or fetch_checkpoint.
    path_to_checkpoint : path or None
        Weights; None where the manifest names the file.
    dataset : mapping
        Manifest of fetch_dataset.
    adjustment : Adjustment, optional
        Offsets of the model; None for a model without.

    Returns
    -------
    classifier : Classifier
    manifest : mapping
        Manifest of the model; with offsets it has the name of the model with offsets.
    threads : int
        Threads that its arithmetic takes.

    Raises
    ------
    InputError
        For files that are not those of the manifest, a classifier that does not fit the dataset, and offsets that
        were chosen for another network.
    """
    manifest = read_json(path_to_model)
    threads = threads_for(manifest, path_to_checkpoint)
    classifier = open_classifier(
        manifest,
        path_to_checkpoint,
        image_shape=dataset["image_shape"],
        classes=len(dataset["classes"]),
        threads=threads,
    )
    require_fit(classifier, dataset, source=path_to_checkpoint or manifest["path"])
    if adjustment is None:
        return classifier, manifest, threads
    numbers, adjusted_manifest = added_offsets(adjustment, manifest)
    return with_offsets(classifier, numbers), adjusted_manifest, threads
