"""Classifiers with class offsets: one number per class is added to the logits of another classifier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.outputs import Run
from gfscore.networks.wrappers import wrap


def with_offsets(classifier: Classifier, offsets: ArrayLike) -> Classifier:
    """Classifier whose logits are those of another plus one number per class.

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

    def shifted(run: Run) -> Run:
        return lambda images: run(images) + numbers

    if classifier.network is not None:
        network = wrap(classifier.network, forward, offsets=torch.tensor(numbers))
        classifier = replace(classifier, network=network)
    if classifier.run is not None:
        classifier = replace(classifier, run=shifted(classifier.run))
    if classifier.original is not None:
        classifier = replace(classifier, original=replace(classifier.original, run=shifted(classifier.original.run)))
    return classifier
