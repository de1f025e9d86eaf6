"""Classifiers of the source `probe`: logistic regression on pooled features of a frozen timm backbone.

Source: linear evaluation of DINOv2 (Oquab et al. 2023, section 7.1), with scikit-learn's solver in place of SGD.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.checkpoints import load_checkpoint, load_weights, weights_of
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.device_choice import threads_for
from gfscore.networks.devices import device_of
from gfscore.networks.inference import extract_logits
from gfscore.networks.model_source import Settings
from gfscore.networks.outputs import LabelledImages, class_count, first_line
from gfscore.networks.preprocessing import description, image_shape_of, preprocessed
from gfscore.networks.timm_models import build_timm
from gfscore.networks.wrappers import wrap
from gfscore.statistics.margins import predictions

# Opening


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier of backbone and last layer, with gradients from the pixels of the data to the logits.

    Parameters
    ----------
    settings : mapping
        Entry of the model, see `open_backbone`, with `path` of the backbone's weights.
    path : Path or str
        The last layer, written by train_model. The digests of both files were verified before.
    image_shape : tuple of int
        Shape (C, h, w) of the data.
    classes, threads
        Not used.

    Raises
    ------
    InputError
        See `open_backbone`; also for a file that holds no last layer, or one that was fitted on other features.
    """
    del classes, threads
    backbone = open_backbone(settings, settings["path"], image_shape=image_shape)
    assert backbone.network is not None  # of timm
    try:
        weights = load_file(path)
        outputs, features = weights["weight"].shape
        layer = nn.Linear(features, outputs)
        layer.load_state_dict(weights)
    except (SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is no head of a probe ({first_line(error)}); delete it and fit it again") from error

    classifier = from_network(
        nn.Sequential(backbone.network, layer),
        architecture=name_of(settings),
        image_shape=image_shape,
        classes=outputs,
        preprocessing=words_of(settings),
    )
    class_count(classifier.logits, image_shape, where=path)
    return classifier


def open_backbone(settings: Settings, path: Path | str, *, image_shape: Sequence[int]) -> Classifier:
    """Frozen network from images (n, C, h, w) in [0, 1] to pooled features (n, d), as a classifier with d "classes".

    Parameters
    ----------
    settings : mapping
        Settings of the source `timm`.
    path : Path or str
        File of the backbone's weights, whose digest was verified before; the weights of its classifier layer are
        ignored.
    image_shape : sequence of int
        Shape (C, h, w) of the data; images of another size than the backbone's are resized.

    Raises
    ------
    InputError
        For another number of channels, and as the source `timm` does.
    """
    channels, height, width = image_shape_of(settings)
    if image_shape[0] != channels:
        raise InputError(
            f"{path}: the backbone takes {channels} channels (image_shape), but the images have {image_shape[0]}; "
            "evaluate it on other data"
        )
    network = build_timm(settings, path, classes=0)
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    # One layer, several, or none, by the configuration of timm.
    configuration: Any = network.pretrained_cfg
    classifier_layers = configuration.get("classifier") or ()
    if isinstance(classifier_layers, str):
        classifier_layers = (classifier_layers,)
    backbone_weights = {}
    for name, value in weights.items():
        if name.rpartition(".")[0] not in classifier_layers:
            backbone_weights[name] = value
    network = load_weights(network, backbone_weights, path).eval()

    # Resizing belongs to the classifier, so that attacks perturb the pixels of the data.
    def forward(network: nn.Module, images: Tensor) -> Tensor:
        if tuple(images.shape[-2:]) != (height, width):
            images = nn.functional.interpolate(images, (height, width), mode="bilinear", antialias=True)
        return network(images)

    network = wrap(preprocessed(network, settings, where=path), forward)
    backbone = from_network(network, architecture=settings["architecture"])
    class_count(backbone.logits, image_shape, where=path)
    return backbone


def name_of(settings: Settings) -> str:
    """Architecture of a probe in words."""
    return f"linear probe on {settings['architecture']}"


def words_of(settings: Settings) -> str:
    """Preprocessing of a probe in words."""
    _, height, width = image_shape_of(settings)
    return f"resized to {height}x{width} where the size differs (bilinear, antialiased), {description(settings)}"


# Fit


def fit(
    train: LabelledImages,
    test: LabelledImages,
    *,
    classes: int,
    settings: None,
    attack: None,
    backbone: Path | str,
    device: str,
    progress: object,
) -> tuple[nn.Linear, dict[str, object], dict[str, object]]:
    """Fit the last layer of a probe on a backbone that was fetched.

    Parameters
    ----------
    train, test : ImageSet
        With labels in 0..`classes`-1.
    classes : int
        K.
    settings, attack, progress
        Not used: the settings stand in the manifest of the backbone.
    backbone : Path or str
        Manifest of fetch_checkpoint.
    device : str
        Of the backbone; "auto" for a GPU if there is one.

    Returns
    -------
    layer : torch.nn.Linear
    metadata : dict
        Digest and settings of the backbone.
    manifest : dict
        Backbone and results of the fit.

    Raises
    ------
    InputError
        When the backbone differs from its manifest, or does not fit the data.
    """
    del settings, attack, progress
    described = read_json(backbone)
    require_digest(described["path"], described["sha256"])
    fit_settings = described["settings"]
    features = open_backbone(fit_settings, described["path"], image_shape=train.image_shape)
    layer, results = fit_probe(
        replace(features, threads=threads_for(described)),
        train,
        test,
        classes=classes,
        penalty=fit_settings["penalty"],
        iterations=fit_settings["iterations"],
        device=device,
    )
    metadata = {"backbone": described["sha256"], "settings": fit_settings}
    manifest = {key: described[key] for key in ("source", "settings", "files", "pinned")}
    return layer, metadata, {**manifest, "architecture": name_of(fit_settings), **results}


def fit_probe(
    backbone: Classifier,
    train: LabelledImages,
    test: LabelledImages,
    *,
    classes: int,
    penalty: float,
    iterations: int,
    device: str = "auto",
) -> tuple[nn.Linear, dict[str, Any]]:
    """Fit the last layer of a probe; deterministic for a given machine and number of threads.

    Parameters
    ----------
    backbone : Classifier
        Backbone, see `open_backbone`.
    train, test : ImageSet
        With labels in 0..`classes`-1.
    classes : int
        K.
    penalty, iterations
        See `fit_head`.
    device : str
        Of the backbone; "auto" for a GPU if there is one.

    Returns
    -------
    tuple
        The layer Linear(d, K), and the results of the fit, a mapping for JSON with accuracies in 0..1.
    """
    # Only here, as scikit-learn takes longer to import than small networks take to classify.
    from threadpoolctl import threadpool_limits

    device = device_of(backbone, device)
    _, labels, features = extract_logits(backbone, train, device=device)
    with threadpool_limits(backbone.threads):
        layer, steps = fit_head(features, labels, classes=classes, penalty=penalty, iterations=iterations)
    _, test_labels, test_features = extract_logits(backbone, test, device=device)
    results = {
        "features": features.shape[1],
        "iterations": steps,
        "converged": steps < iterations,
        "train_accuracy": _accuracy(layer, features, labels),
        "clean_accuracy": _accuracy(layer, test_features, test_labels),
        # Attacks through the backbone are a matter of the measures, not of this step.
        "robust_accuracy": None,
    }
    return layer, results


def fit_head(
    features: NDArray[np.floating], labels: NDArray[np.integer], *, classes: int, penalty: float, iterations: int
) -> tuple[nn.Linear, int]:
    """Multinomial logistic regression by L-BFGS.

    Minimises the cross-entropy summed over the samples plus `penalty` / 2 times the squared norm of the weights
    (without the bias). The problem is convex, so no seed is needed.

    Parameters
    ----------
    features : ndarray
        (N, d).
    labels : ndarray of int
        (N,), all of 0..`classes`-1 present.
    classes : int
        K.
    penalty : float
        1 / C of scikit-learn's LogisticRegression.
    iterations : int
        Largest number of steps.

    Returns
    -------
    tuple
        The layer Linear(d, K), and the number of steps.

    Raises
    ------
    InputError
        For features that are not finite.
    """
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
        weight = np.concatenate([-weight, weight]) / 2
        bias = np.concatenate([-bias, bias]) / 2
    dimension = weight.shape[1]
    layer = nn.Linear(dimension, classes)
    layer.load_state_dict({"weight": torch.from_numpy(weight).float(), "bias": torch.from_numpy(bias).float()})
    recipe = {"architecture": "linear", "features": dimension, "classes": classes}
    layer.recipe = recipe  # type: ignore[assignment]
    return layer.requires_grad_(False).eval(), int(model.n_iter_.max())


def _accuracy(layer: nn.Linear, features: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    logits = features @ layer.weight.numpy().T + layer.bias.numpy()
    return float(np.mean(predictions(logits, labels) == labels))
