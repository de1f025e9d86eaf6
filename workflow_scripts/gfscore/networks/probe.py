"""Classifiers of the source `probe`: logistic regression on pooled features of a frozen timm backbone.

Source: linear evaluation of DINOv2 (Oquab et al. 2023, section 7.1), with scikit-learn's solver in place of SGD.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.checkpoints import changed_by_loading, load_weights, weights_of
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import device_of
from gfscore.networks.inference import extract_logits
from gfscore.networks.outputs import classes_given, first_line
from gfscore.networks.preprocessing import description, preprocessed
from gfscore.networks.timm_models import build_timm
from gfscore.networks.wrappers import around
from gfscore.statistics.margins import predictions

if TYPE_CHECKING:
    import torch
    from torch import nn


def open_backbone(settings: Mapping[str, Any], path: Path | str, *, image_shape: Sequence[int]) -> Classifier:
    """Frozen network from images (n, C, h, w) in [0, 1] to pooled features (n, d), as a Classifier with d "classes".

    `settings` are those of the source `timm`, `path` is the file of the backbone's weights, whose digest was verified
    before; the weights of its classifier layer are ignored. `image_shape` (C, h, w) is that of the data; images of
    another size than the backbone's are resized. Raises InputError for another number of channels, and as the source
    `timm` does.
    """
    from gfscore.networks.checkpoints import load_checkpoint

    channels, *size = settings["image_shape"]
    if image_shape[0] != channels:
        raise InputError(
            f"{path}: the backbone takes {channels} channels (image_shape), but the images have {image_shape[0]}; "
            "evaluate it on other data"
        )
    network: Any = build_timm(settings, path, classes=0)
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    named = network.pretrained_cfg.get("classifier") or ()
    heads = (named,) if isinstance(named, str) else named
    weights = {name: value for name, value in weights.items() if name.rpartition(".")[0] not in heads}
    network = preprocessed(load_weights(network, weights, path).eval(), settings, where=path)
    backbone = from_network(_resizing(network, tuple(size)), architecture=settings["architecture"])
    classes_given(backbone.logits, image_shape, where=path)
    return backbone


def fit_probe(
    backbone: Classifier,
    train: Any,
    test: Any,
    *,
    classes: int,
    penalty: float,
    iterations: int,
    threads: int = 1,
    device: str = "auto",
) -> tuple[nn.Linear, dict[str, Any]]:
    """Head of a probe, a torch Linear(d, K), and the results of the fit, a mapping for JSON with accuracies in 0..1.

    `backbone` as from `open_backbone`, used on `device`, "auto" for a GPU if there is one; `train` and `test` are
    ImageSets with labels in 0..`classes`-1. Deterministic for a given machine and number of threads.
    """
    from threadpoolctl import threadpool_limits

    how: dict[str, Any] = {"device": device_of(backbone, device), "threads": threads}
    _, labels, features = extract_logits(backbone, train, **how)
    with threadpool_limits(threads):
        head, taken = fit_head(features, labels, classes=classes, penalty=penalty, iterations=iterations)
    _, test_labels, test_features = extract_logits(backbone, test, **how)
    return head, {
        "features": features.shape[1],
        "iterations": taken,
        "converged": taken < iterations,
        "train_accuracy": _accuracy(head, features, labels),
        "clean_accuracy": _accuracy(head, test_features, test_labels),
        # attacks through the backbone are a matter of the measures, not of this step
        "robust_accuracy": None,
    }


def fit_head(
    features: NDArray[np.floating], labels: NDArray[np.integer], *, classes: int, penalty: float, iterations: int
) -> tuple[nn.Linear, int]:
    """Multinomial logistic regression: a torch Linear(d, K), and the number of iterations.

    Minimises the cross-entropy summed over the samples plus `penalty` / 2 times the squared norm of the weights
    (without the bias) by at most `iterations` steps of L-BFGS. Takes `features` (N, d) and `labels` (N,), all of
    0..`classes`-1 present. The problem is convex, so no seed is needed. Raises InputError for features that are not
    finite. Source: scikit-learn, LogisticRegression, C = 1 / `penalty`.
    """
    import torch
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if not np.isfinite(features).all():
        raise InputError("the backbone returns non-finite features; check its weights, mean and std")
    model = LogisticRegression(C=1 / penalty, solver="lbfgs", max_iter=iterations)
    with warnings.catch_warnings():
        # The manifest states whether it converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features.astype(np.float64), labels)
    weight, bias = model.coef_, model.intercept_
    if classes == 2:
        # scikit-learn then returns one row, the difference of the two logits.
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    head: Any = torch.nn.Linear(weight.shape[1], classes)
    head.load_state_dict({"weight": torch.from_numpy(weight).float(), "bias": torch.from_numpy(bias).float()})
    head.recipe = {"architecture": "linear", "features": weight.shape[1], "classes": classes}
    return head.requires_grad_(False).eval(), int(model.n_iter_.max())


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier of backbone and head, with gradients from the pixels of the data to the logits.

    `settings` as for `open_backbone`, with `path` of the backbone's weights; `path` is the head written by train_probe.
    The digests of both files were verified before. Raises InputError as `open_backbone` does, and for a file that is no
    head or was fitted on other features.
    """
    del threads
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    backbone: Any = open_backbone(settings, settings["path"], image_shape=image_shape)
    try:
        stored = load_file(path)
        head = torch.nn.Linear(*reversed(stored["weight"].shape))  # type: ignore[arg-type]
        if changed := changed_by_loading(stored, head.state_dict()):
            raise TypeError(f"{changed[0]} holds {stored[changed[0]].dtype}")
        head.load_state_dict(stored)
    except (SafetensorError, RuntimeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is no head of a probe ({first_line(error)}); delete it and fit it again") from error
    network = torch.nn.Sequential(backbone.network, head)
    shape: Any = tuple(image_shape)
    classifier = from_network(
        network,
        architecture=name_of(settings),
        image_shape=shape,
        classes=head.out_features,
        preprocessing=words_of(settings),
    )
    classes_given(classifier.logits, image_shape, where=path)
    return classifier


def name_of(settings: Mapping[str, Any]) -> str:
    """Architecture of a probe in words."""
    return f"linear probe on {settings['architecture']}"


def words_of(settings: Mapping[str, Any]) -> str:
    """Preprocessing of a probe in words."""
    height, width = settings["image_shape"][1:]
    return f"resized to {height}x{width} where the size differs (bilinear, antialiased), {description(settings)}"


def _resizing(network, size):
    import torch

    def forward(network: nn.Module, images: torch.Tensor) -> torch.Tensor:
        if tuple(images.shape[-2:]) != size:
            # Part of the classifier, so that attacks perturb the pixels of the data.
            images = torch.nn.functional.interpolate(images, size, mode="bilinear", antialias=True)
        return network(images)

    return around(network, forward)


def _accuracy(head, features, labels):
    logits = features @ head.weight.numpy().T + head.bias.numpy()
    return float(np.mean(predictions(logits, labels) == labels))
