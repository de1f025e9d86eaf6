"""Certified radii of a batch: randomized smoothing, and attacks on its certificates.

The attack shows how far certificates are from what is true: what it finds, the certificate excluded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from gfscore.attacks.gradient_ascent import logit_of, other_logits, per_image, steepest
from gfscore.attacks.search import gradient_of
from gfscore.core.errors import InputError
from gfscore.measures.certified import HALF, Certified, Smoothing
from gfscore.measures.certified.radii import fewest_votes
from gfscore.measures.certified.smoothing import SELECTION, certify, count_votes, selection_votes
from gfscore.measures.samples import SampleColumns
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier
from gfscore.networks.precision import FULL, network_in, require_tf32
from gfscore.statistics.draws import Draws
from gfscore.statistics.proportions import lower_shares

CERTIFICATE, ATTACK = range(2)
"""Streams of noise: the attack draws the same whatever the certificate took."""

SCREENING, COUNTING = range(2)
"""Streams of noise: the draws that refute are not those that choose what is refuted."""

INSIDE = 1 - 1e-4
"""Share of the certified radius that is searched: the certificate speaks of the open ball, in exact arithmetic."""

STEP = 2.5
"""Step size times number of steps, in radii (Madry et al. 2018)."""

CONFIRMATION = 1e-3
"""Error probability of one confirmation, as a share of alpha: small, so that the allowance for alpha holds."""

SHORTEST = 1e-37
"""Length that replaces a shorter one before it divides."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Certified,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Certified radius of every sample: CERTIFY of the paper.

    Each certificate holds with probability at least 1 - alpha over the noise, for the smoothed classifier, also for
    perturbations that leave [0, 1]; noisy copies are not clipped.

    Parameters
    ----------
    classifier : Classifier
        With gradients where certificates are attacked.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Certified
        With `smoothing`.
    seeds : ndarray
        Seed of each sample, (n,) uint64.

    Returns
    -------
    dict
        Arrays (n,): value, the radius where the prediction is the label, else 0; prediction, the class of the smoothed
        classifier, -1 for an abstention; radius, pixels in [0, 1]; abstained; draws; lower_bound; drift, the share of
        the selection's noisy copies that float32 gives another class, NaN where they vote in float32; attacked, whether
        the sandwich attacked the certificate; refuted, whether it was caught wrong; censored, always false.

    Raises
    ------
    InputError
        For a precision that the classifier or its device does not have.

    References
    ----------
    Cohen et al. 2019.
    """
    smoothing = settings.smoothing
    assert smoothing is not None  # radii computed elsewhere are imported
    noise = Draws.of(seeds, torch.device(classifier.device))
    x = torch.from_numpy(images).to(classifier.device)

    attacked = np.zeros(len(labels), dtype=bool)
    refuted = attacked
    with voting_in(classifier, smoothing.precision) as voter:
        base = BatchedClassifier(voter, batch_size=smoothing.batch_size)
        columns = certify(base, x, smoothing=smoothing, noise=noise.stream(CERTIFICATE))
        if smoothing.sandwich is not None:
            attacked = ~columns["abstained"]
            refuted = attack_certificates(base, x, columns, smoothing=smoothing, noise=noise.stream(ATTACK))

    columns["drift"] = np.full(len(labels), np.nan)
    if smoothing.precision != FULL:
        columns["drift"] = drift(classifier, x, smoothing=smoothing, noise=noise.stream(CERTIFICATE))
    right = columns["prediction"] == labels
    columns["value"] = np.where(right, columns["radius"], 0.0)
    columns["censored"] = np.zeros(len(labels), dtype=bool)
    columns["attacked"] = attacked
    columns["refuted"] = refuted
    return columns


@contextmanager
def voting_in(classifier: Classifier, precision: str) -> Iterator[Classifier]:
    """Yield a classifier with the same weights that classifies noisy copies in another precision.

    Raises
    ------
    InputError
        Unless the precision is float32, for a classifier without a torch network or of another number type; for TF32
        on a device without it.
    """
    if precision == FULL:
        yield classifier
        return
    if classifier.network is None or classifier.number_type != FULL:
        raise InputError(
            f"smoothing: precision: {precision} needs a torch network in float32, which this classifier is not; write "
            "precision: float32"
        )
    require_tf32(
        precision, classifier.device, where="smoothing: precision", remedy="write precision: float32 or bfloat16"
    )
    with network_in(classifier.network, precision) as network:
        yield replace(classifier, network=network)


def drift(classifier: Classifier, images: Tensor, *, smoothing: Smoothing, noise: Draws) -> NDArray[np.float64]:
    """Share of each image's noisy copies, those that select its class, that float32 gives another class.

    Parameters
    ----------
    classifier : Classifier
        In float32.
    images : Tensor
        (n, C, H, W) on its device.
    smoothing : Smoothing
        With the precision that is compared.
    noise : Draws
        Noise of the certificates.

    Returns
    -------
    ndarray
        (n,) float64 in [0, 1].
    """
    votes = []
    for precision in (smoothing.precision, FULL):
        with voting_in(classifier, precision) as voter:
            base = BatchedClassifier(voter, batch_size=smoothing.batch_size)
            votes.append(
                selection_votes(
                    base,
                    images,
                    draws=smoothing.selection_samples,
                    sigma=smoothing.sigma,
                    noise=noise.stream(SELECTION),
                )[0]
            )
    fast, exact = votes
    return (fast != exact).double().mean(1).cpu().numpy()


def attack_certificates(
    base: BatchedClassifier,
    images: Tensor,
    certificates: SampleColumns,
    *,
    smoothing: Smoothing,
    noise: Draws,
) -> NDArray[np.bool_]:
    """Which certificates an attack refutes; abstentions are not attacked.

    A certificate is refuted by a perturbation shorter than its radius at which the class's probability under fresh
    noise (estimation_samples draws) is below 1/2, at an error probability of alpha/1000; a certificate that holds with
    p_A >= lower_bound keeps it above 1/2 there. Failing to refute proves nothing. Perturbations may leave [0, 1], as
    the certificate allows.

    Parameters
    ----------
    base : BatchedClassifier
        With gradients.
    images : Tensor
        (n, C, H, W) on its device.
    certificates : mapping
        Columns of gfscore.measures.certified.smoothing.certify, arrays (n,).
    smoothing : Smoothing
        With `sandwich`: steps of projected gradient ascent, each along the gradient averaged over noisy copies.
    noise : Draws
        Random numbers of the images.

    Returns
    -------
    ndarray
        (n,) bool.

    Raises
    ------
    InputError
        For a classifier without gradients.
    """
    if base.classifier.network is None:
        raise InputError(
            "smoothing: sandwich: this classifier gives no gradients, so its certificates cannot be attacked; write "
            "sandwich: null"
        )
    sandwich = smoothing.sandwich
    assert sandwich is not None
    refuted = np.zeros(len(images), dtype=bool)
    rows = np.flatnonzero(~certificates["abstained"])
    if len(rows) == 0:
        return refuted

    certified_rows = torch.from_numpy(rows).to(base.device)
    classes = torch.from_numpy(certificates["prediction"][rows].astype(np.int64)).to(base.device)
    radius = torch.from_numpy(INSIDE * certificates["radius"][rows]).to(base.device, torch.float32)
    row_noise = noise[certified_rows]
    adversarial = pgd_of_smoothed(
        base,
        images[certified_rows],
        classes,
        radius,
        steps=sandwich.steps,
        gradient_draws=sandwich.gradient_draws,
        sigma=smoothing.sigma,
        noise=row_noise,
    )
    # Refuted only by noise that the attack has not seen.
    fresh = row_noise.stream(sandwich.steps)
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
    """Images within an l2 distance `radius` of their own where the smoothed classifier leaves their classes.

    Ascends the probability of the other classes, averaged over fresh noise at each step, from the image itself. Steps
    shrink linearly, since averaged gradients stay noisy.

    Parameters
    ----------
    base : BatchedClassifier
        With gradients.
    images : Tensor
        (n, C, H, W) on its device.
    classes, radius : Tensor
        (n,) int64, and (n,) float32.
    steps, gradient_draws : int
        Steps, and noisy copies of each image in each of them.
    sigma : float
        Standard deviation of the noise.
    noise : Draws
        Random numbers of the images.

    Returns
    -------
    Tensor
        (n, C, H, W), which may leave [0, 1].

    References
    ----------
    Salman et al. 2019, section 2.2, but for the steps.
    """
    delta = images.new_zeros(images.shape)
    for step in range(steps):
        gradient = _gradient(base, images + delta, classes, draws=gradient_draws, sigma=sigma, noise=noise.stream(step))
        length = 2 * STEP * radius / steps * (1 - step / steps)
        moved = delta + steepest(gradient, norm="l2") * per_image(length, images)
        distance_moved = moved.flatten(1).norm(dim=1).clamp_min(SHORTEST)
        delta = moved * per_image((radius / distance_moved).clamp_max(1), moved)
    return images + delta


def _gradient(
    base: BatchedClassifier, images: Tensor, classes: Tensor, *, draws: int, sigma: float, noise: Draws
) -> Tensor:
    # Of the logarithm of the other classes' mean probability over the noise. In logarithms, so that it does not vanish
    # where the network is sure of itself.
    network = base.classifier.network
    assert network is not None
    gradients = []
    for rows in torch.arange(len(images), device=images.device).split(max(1, base.batch_size // draws)):
        points = images[rows].detach().requires_grad_()
        noisy = points.repeat_interleave(draws, 0) + noise[rows].copies(draws).normal(points.shape[1:], std=sigma)
        logits = network(noisy).float()
        copy_classes = classes[rows].repeat_interleave(draws)
        margin = logit_of(logits, copy_classes) - other_logits(logits, copy_classes).logsumexp(1)
        log_probability = -softplus(margin).reshape(-1, draws).logsumexp(1)
        gradients.append(gradient_of(log_probability.sum(), points))
    return torch.cat(gradients)


def _below_half(
    base: BatchedClassifier, images: Tensor, classes: Tensor, *, smoothing: Smoothing, noise: Draws
) -> NDArray[np.bool_]:
    # Whether the class's probability under noise is below 1/2, (n,). Few draws choose the images that are worth more.
    draws = smoothing.estimation_samples
    alpha = CONFIRMATION * smoothing.alpha
    below = np.zeros(len(images), dtype=bool)
    votes, _ = count_votes(
        base,
        images,
        classes,
        draws=smoothing.selection_samples,
        needed=0,
        sigma=smoothing.sigma,
        noise=noise.stream(SCREENING),
    )
    suspect = votes <= HALF * smoothing.selection_samples
    if fewest_votes(draws, alpha=alpha) > draws or not suspect.any():
        return below

    votes, _ = count_votes(
        base,
        images[suspect],
        classes[suspect],
        draws=draws,
        needed=0,
        sigma=smoothing.sigma,
        noise=noise.stream(COUNTING)[suspect],
    )
    against = draws - votes.cpu().numpy()
    below[suspect.cpu().numpy()] = lower_shares(against, draws, alpha=alpha) > HALF
    return below
