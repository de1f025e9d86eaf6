"""Opening the classifier of a manifest, with class offsets, one number for each class, added to its logits if any."""

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
        If there are not as many offsets as the classifier has classes.
    """
    values = np.asarray(offsets, dtype=np.float32)
    if classifier.classes is not None and values.shape != (classifier.classes,):
        raise InputError(
            f"{values.size} offsets for a classifier of {classifier.classes} classes; choose them on data of the same "
            "classes"
        )

    def add_to_logits(logits: Logits) -> Logits:
        return logits + values

    def forward(network: nn.Module, images: Tensor, offsets: Tensor) -> Tensor:
        return network(images) + offsets

    on_device = torch.tensor(values, device=classifier.device)
    return with_changed_logits(classifier, add_to_logits, forward, offsets=on_device)


def open_model(
    path_to_model: Path | str,
    path_to_checkpoint: Path | str | None,
    dataset: Manifest,
    *,
    adjustment: Adjustment | None = None,
) -> tuple[Classifier, Manifest]:
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
        Manifest of the model; with offsets, under the name of the adjusted model.

    Raises
    ------
    InputError
        For files that are not those of the manifest, a classifier that does not fit the dataset, and offsets that
        were chosen for another network.
    """
    manifest = read_json(path_to_model)
    classifier = open_classifier(
        manifest,
        path_to_checkpoint,
        image_shape=dataset["image_shape"],
        classes=len(dataset["classes"]),
        threads=threads_for(manifest, path_to_checkpoint),
    )
    require_fit(classifier, dataset, source=path_to_checkpoint or manifest["path"])
    if adjustment is None:
        return classifier, manifest
    offsets, adjusted_manifest = added_offsets(adjustment, manifest)
    return with_offsets(classifier, offsets), adjusted_manifest
