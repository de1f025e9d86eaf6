"""Attacks on a torch module or a function of images, whose results `audit_values` takes."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.declaration import AttackSettings
from gfscore.attacks.registry import BALL_ATTACKS, ball_mistakes, expand, parse_attack
from gfscore.core.errors import InputError
from gfscore.core.settings import first_fault
from gfscore.measures.adversarial import KIND, Adversarial
from gfscore.notebook import inputs

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError as error:
    raise InputError("attack needs torch, which is not installed; pip install 'gfscore[attacks]'") from error

from pydantic import ValidationError

from gfscore.networks.batch_invariance import SAMPLES, require_invariant_in_memory
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import out_of_memory
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.draws import seeds_of_samples

WHITE = 255
"""Largest pixel of 8 bits."""


def attack(
    model: nn.Module | Callable[[Tensor], Tensor],
    images: Any,
    labels: Any,
    eps: float | str = "8/255",
    *,
    norm: str = "linf",
    attacks: Sequence[str | dict[str, Any]] | None = None,
    batch_size: int = 128,
    seed: int = 0,
    device: str | None = None,
    progress: bool = True,
) -> NDArray[np.bool_]:
    """Which images a classifier still gets right under the worst of several attacks within a ball.

    Surviving proves nothing: the share of survivors is an upper bound on the robust accuracy.

    Parameters
    ----------
    model : torch.nn.Module or callable
        From images (n, C, H, W) in [0, 1] to logits (n, K), its own preprocessing included. A module is run in eval
        mode and left as it was; a function has to call its modules in eval mode.
    images : array-like (N, C, H, W)
        Pixels in [0, 1], or uint8 from 0 to 255: an array or a torch tensor.
    labels : array-like (N,)
        True classes, 0..K-1.
    eps : float or str
        Radius of the ball, in pixels of [0, 1] or a fraction such as "8/255".
    norm : {"linf", "l2"}
        Norm of the perturbations.
    attacks : sequence of str or dict, optional
        Names of attacks, or dicts of a name and settings ({"name": "pgd", "steps": 40}), which run in this order on the
        images that still stand. By default apgd-ce and square, as for the measure `adversarial`; "autoattack" is the
        ensemble.
    batch_size : int
        Images at a time.
    seed : int
        Seed of the random draws, which depend on an image's row: the same for any batch size.
    device : str, optional
        Torch device; by default the device of the module's weights, the CPU for a function.
    progress : bool
        Whether to say on stderr how far it is.

    Returns
    -------
    ndarray (N,) of bool
        Whether each image is right, and stays so: values for `audit_values` with value_range (0, 1).

    Raises
    ------
    InputError
        For wrong shapes, pixels outside [0, 1], labels out of range, unknown attacks, a model without gradients for
        attacks that need them, NaN logits, a model that changes its images in place, and one whose logits of an image
        are random or depend on the rest of the batch, as in training mode.
    """
    settings = _settings(eps, norm, attacks, seed)
    pixels = _pixels_of(images)
    true_classes = inputs.checked_labels(inputs.array_of(labels, name="labels"), None)
    if len(pixels) != len(true_classes):
        raise InputError(f"{len(pixels)} images for {len(true_classes)} labels; give one label per image")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}")

    measure_batch = KIND.load()
    seeds = seeds_of_samples(seed, KIND.name, np.arange(len(pixels)))
    survived = np.zeros(len(pixels), dtype=bool)
    started = time.monotonic()
    with _classifier_of(model, device) as classifier:
        _require_logits(classifier, pixels[:1], true_classes, settings.attacks)
        require_invariant_in_memory(classifier, pixels[: min(batch_size, SAMPLES)])
        for start in range(0, len(pixels), batch_size):
            batch = slice(start, start + batch_size)
            with _errors_with_remedies(batch_size):
                columns = measure_batch(
                    classifier,
                    pixels[batch],
                    true_classes[batch].astype(np.int64),
                    settings=settings,
                    seeds=seeds[batch],
                )
            survived[batch] = columns["value"] == 1
            if progress:
                done = min(start + batch_size, len(pixels))
                seconds_left = (time.monotonic() - started) / done * (len(pixels) - done)
                text = f"{done:,} of {len(pixels):,} images attacked, {survived.sum():,} survive, about "
                text += f"{seconds_left:.0f} s left"
                print(f"\r{text:<79}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    return survived


@contextmanager
def _errors_with_remedies(batch_size: int) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"these attacks need {error.name}, which is not installed; pip install 'gfscore[attacks]', or name attacks "
            "that need torch alone, such as apgd-ce"
        ) from error
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        raise InputError(f"out of memory with {batch_size} images at a time; give a smaller batch_size") from error


def _settings(eps: float | str, norm: str, attacks: Sequence[str | dict[str, Any]] | None, seed: int) -> Adversarial:
    entry: dict[str, Any] = {"eps": eps, "norm": norm, "seed": seed}
    if attacks is not None:
        entry["attacks"] = []
        for item in [attacks] if isinstance(attacks, str | dict) else attacks:
            attack_entry = {"name": item} if isinstance(item, str) else item
            if "name" not in attack_entry:
                raise InputError(f"attack {attack_entry!r} has no name; known: {', '.join(BALL_ATTACKS)}")
            entry["attacks"].append(parse_attack(attack_entry, BALL_ATTACKS).model_dump())
    try:
        settings = Adversarial.model_validate(entry)
    except ValidationError as error:
        raise InputError(f"{first_fault(error)}; got {error.errors()[0]['input']!r}") from error
    for _, words in ball_mistakes(settings.attacks, norm=settings.norm, eps=settings.eps, classes=float("inf")):
        raise InputError(words)
    return settings


def _pixels_of(images: Any) -> NDArray[np.float32]:
    pixels = inputs.array_of(images, name="images")
    if pixels.ndim != 4 or not len(pixels):
        raise InputError(f"images have shape {pixels.shape}; expected (samples, channels, height, width)")
    if pixels.dtype == np.uint8:
        return pixels.astype(np.float32) / np.float32(WHITE)
    if pixels.dtype.kind != "f":
        raise InputError(f"images have dtype {pixels.dtype}; give floats in [0, 1], or uint8")
    pixels = pixels.astype(np.float32)
    # Negated, so that NaN, for which every comparison is false, is refused too.
    if not (pixels.min() >= 0 and pixels.max() <= 1):
        raise InputError(
            f"pixels run from {pixels.min():g} to {pixels.max():g}; give them in [0, 1], and let the model normalise "
            "them"
        )
    return pixels


class _Function(nn.Module):
    # A function of images as a module; the buffer says on which device it is given them.

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("place", torch.zeros(()))

    def forward(self, images: Tensor) -> Tensor:
        output = self.function(images)
        if isinstance(output, np.ndarray):
            output = torch.from_numpy(output).to(images.device)
        if not isinstance(output, Tensor):
            raise InputError(f"the model returns a {type(output).__name__}; give a function of images to logits alone")
        return output


@contextmanager
def _classifier_of(model: nn.Module | Callable[[Tensor], Tensor], device: str | None) -> Iterator[Classifier]:
    # The classifier of a model, which meanwhile is in eval mode on the device, and whose weights take no gradients.
    if device is not None and device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device!r}: torch {torch.__version__} finds no CUDA device; leave it out for the CPU")
    network = model if isinstance(model, nn.Module) else _Function(model)
    modes = {module: module.training for module in network.modules()}
    weights = {weight: weight.requires_grad for weight in network.parameters()}
    classifier = from_network(network, architecture=type(model).__name__)
    device_before = classifier.device
    try:
        if device is not None:
            network.to(device)
        for weight in weights:
            weight.requires_grad_(False)
        with torch.enable_grad(), reproducible_arithmetic(threads=torch.get_num_threads()):
            yield classifier
    finally:
        for module, training in modes.items():
            module.training = training
        for weight, requires_grad in weights.items():
            weight.requires_grad_(requires_grad)
        if device is not None:
            network.to(device_before)


def _require_logits(
    classifier: Classifier, image: NDArray[np.float32], labels: NDArray[np.int32], attacks: Sequence[AttackSettings]
) -> None:
    # Asks the model for the logits of one image, before the first batch.
    logits = classifier.logits(image)
    if logits.ndim != 2 or len(logits) != 1 or logits.shape[1] < 2:
        raise InputError(
            f"the model returns shape {logits.shape} for 1 image; give a function of images to logits (1, classes)"
        )
    classes = logits.shape[1]
    inputs.checked_labels(labels, classes)
    expand(attacks, classes)
