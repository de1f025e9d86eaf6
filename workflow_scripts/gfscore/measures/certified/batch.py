"""Certified radii of a batch: randomized smoothing, and attacks on its certificates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.gradient_ascent import per_image, steepest
from gfscore.attacks.search import slope_of
from gfscore.core.errors import InputError
from gfscore.core.tensors import Tensor
from gfscore.measures.certified import HALF
from gfscore.measures.certified.radii import fewest_votes
from gfscore.measures.certified.smoothing import certify, count_votes
from gfscore.networks.classifier import Classifier
from gfscore.networks.inference import BatchedClassifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.proportions import lower_shares

CERTIFICATE, ATTACK = range(2)
"""Streams of noise: the attack draws the same whatever the certificate took."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Certified radius of every sample: CERTIFY of Cohen et al. 2019, one array (n,) per column.

    `settings["smoothing"]` holds sigma (pixels in [0, 1]), selection_samples n0, estimation_samples n, alpha,
    batch_size (noisy copies classified at a time) and sandwich (see smoothed_attacks, null for none). Each certificate
    holds with probability at least 1 - alpha over the noise, for the smoothed classifier, also for perturbations that
    leave [0, 1]; noisy copies are not clipped. `prediction` is the class of the smoothed classifier, -1 for an
    abstention. `attacked` says that the sandwich attacked the certificate, `refuted` that it was caught wrong.
    """
    import torch

    smoothing = settings["smoothing"]
    base = BatchedClassifier(classifier, batch_size=smoothing["batch_size"])
    noise = Draws.of(seeds, base.device)
    x = torch.from_numpy(images).to(base.device)
    columns = certify(base, x, smoothing=smoothing, noise=noise.stream(CERTIFICATE))
    right = columns["prediction"] == labels
    attacked = refuted = np.zeros(len(labels), dtype=bool)
    if smoothing["sandwich"] is not None:
        attacked = ~columns["abstained"]
        refuted = attack_certificates(base, x, columns, smoothing=smoothing, noise=noise.stream(ATTACK))
    return columns | {
        "value": np.where(right, columns["radius"], 0.0),
        "censored": np.zeros(len(labels), dtype=bool),
        "attacked": attacked,
        "refuted": refuted,
    }


INSIDE = 1 - 1e-4
"""Share of the certified radius that is searched: the certificate speaks of the open ball, in exact arithmetic."""

STEP = 2.5
"""Step size times number of steps, in radii (Madry et al. 2018)."""

CONFIRMATION = 1e-3
"""Error probability of one confirmation, as a share of alpha: small, so that the allowance for alpha holds."""


def attack_certificates(
    base: BatchedClassifier,
    images: Tensor,
    certified: Mapping[str, NDArray[Any]],
    *,
    smoothing: Mapping[str, Any],
    noise: Draws,
) -> NDArray[np.bool_]:
    """Which certificates an attack refutes, (n,) bool; abstentions are not attacked.

    Takes a BatchedClassifier with gradients, images as a tensor (n, C, H, W), the columns of smoothing.certify, and
    `smoothing` with sandwich = {steps, gradient_draws}: so many steps of projected gradient ascent, each along the
    gradient averaged over so many noisy copies. A certificate is refuted by a perturbation shorter than its radius at
    which the class's probability under fresh noise (estimation_samples draws) is below 1/2, at an error probability of
    alpha/1000; a certificate that holds with p_A >= lower_bound keeps it above 1/2 there. Failing to refute proves
    nothing. Perturbations may leave [0, 1], as the certificate allows. Raises InputError without gradients.
    """
    import torch

    if base.classifier.network is None:
        raise InputError(
            "smoothing: sandwich: this classifier gives no gradients, so its certificates cannot be attacked; write "
            "sandwich: null"
        )
    refuted = np.zeros(len(images), dtype=bool)
    rows = np.flatnonzero(~certified["abstained"])
    if not len(rows):
        return refuted
    kept = torch.from_numpy(rows).to(base.device)
    classes = torch.from_numpy(certified["prediction"][rows].astype(np.int64)).to(base.device)
    radius = torch.from_numpy(INSIDE * certified["radius"][rows]).to(base.device, torch.float32)
    adversarial = pgd_of_smoothed(
        base, images[kept], classes, radius, sigma=smoothing["sigma"], noise=noise[kept], **smoothing["sandwich"]
    )
    # Refuted only by noise that the attack has not seen.
    fresh = noise[kept].stream(smoothing["sandwich"]["steps"])
    refuted[rows] = _below_half(base, adversarial, classes, smoothing=smoothing, noise=fresh)
    return refuted


def pgd_of_smoothed(
    base: BatchedClassifier,
    images: Tensor,
    classes: Tensor,
    radius: Tensor,
    *,
    steps: int,
    gradient_draws: int,
    sigma: float,
    noise: Draws,
) -> Tensor:
    """Images within an l2 distance `radius` (n,) of their own where the smoothed classifier leaves `classes` (n,).

    Ascends the probability of the other classes, averaged over fresh noise at each step, from the image itself. Steps
    shrink linearly, since averaged gradients stay noisy. Source: Salman et al. 2019, section 2.2, but for the steps.
    """
    delta = images.new_zeros(images.shape)
    for step in range(steps):
        gradient = _gradient(base, images + delta, classes, draws=gradient_draws, sigma=sigma, noise=noise.stream(step))
        length = 2 * STEP * radius / steps * (1 - step / steps)
        delta = _shorten(delta + steepest(gradient, norm="l2") * per_image(length, images), radius)
    return images + delta


def _gradient(base, images, classes, *, draws, sigma, noise):
    # Of the logarithm of the other classes' mean probability over the noise. In logarithms, so that it does not vanish
    # where the network is sure of itself.
    import torch
    from torch.nn.functional import softplus

    parts = []
    for rows in torch.arange(len(images), device=images.device).split(max(1, base.batch_size // draws)):
        points = images[rows].detach().requires_grad_()
        drawn = noise[rows].copies(draws).normal(points.shape[1:], std=sigma)
        logits = base.classifier.network(points.repeat_interleave(draws, 0) + drawn).float()
        own = classes[rows].repeat_interleave(draws)[:, None]
        margin = logits.gather(1, own)[:, 0] - logits.scatter(1, own, -float("inf")).logsumexp(1)
        others = -softplus(margin).reshape(-1, draws).logsumexp(1)
        parts.append(slope_of(others.sum(), points))
    return torch.cat(parts)


def _below_half(base, images, classes, *, smoothing, noise):
    draws, alpha = smoothing["estimation_samples"], CONFIRMATION * smoothing["alpha"]
    how = {"sigma": smoothing["sigma"], "needed": 0}
    screening, counting = noise.stream(0), noise.stream(1)
    screened, _ = count_votes(base, images, classes, draws=smoothing["selection_samples"], noise=screening, **how)
    suspect = screened <= HALF * smoothing["selection_samples"]
    below = np.zeros(len(images), dtype=bool)
    if fewest_votes(draws, alpha=alpha) <= draws and suspect.any():
        votes, _ = count_votes(base, images[suspect], classes[suspect], draws=draws, noise=counting[suspect], **how)
        against = draws - votes.cpu().numpy()
        below[suspect.cpu().numpy()] = lower_shares(against, draws, alpha=alpha) > HALF
    return below


def _shorten(delta, radius):
    length = delta.flatten(1).norm(dim=1).clamp_min(1e-37)
    return delta * per_image((radius / length).clamp_max(1), delta)
