"""Randomized smoothing: certified l2 radii of the smoothed classifier by counting noisy predictions."""

import numpy as np
import torch
from torch import Tensor

from gfscore.measures.certified import Smoothing
from gfscore.measures.certified.radii import fewest_votes, radii
from gfscore.measures.samples import SampleColumns
from gfscore.networks.batches import BatchedClassifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.proportions import lower_shares
from gfscore.tables.radius_files import ABSTAINED

SELECTION, ESTIMATION = range(2)
"""Streams of noise: the draws that bound a probability are not those that chose its class."""


def certify(base: BatchedClassifier, images: Tensor, *, smoothing: Smoothing, noise: Draws) -> SampleColumns:
    """Certificates of a batch of images: CERTIFY of the paper.

    The class is selected by n0 draws and its probability bounded from n separate draws by the exact one-sided
    Clopper-Pearson bound at alpha. Draws of a sample stop once it would abstain even if all remaining ones agreed,
    which changes no outcome; its `lower_bound` then counts the missing draws as votes against, so it holds too.

    Parameters
    ----------
    base : BatchedClassifier
        The classifier that is smoothed.
    images : Tensor
        (n, C, H, W) on its device.
    smoothing : Smoothing
        sigma, n0 (`selection_samples`), n (`estimation_samples`) and alpha.
    noise : Draws
        Random numbers of the images.

    Returns
    -------
    dict
        Arrays (n,): prediction, the class or ABSTAINED; radius; abstained; draws; lower_bound.

    References
    ----------
    Cohen et al. 2019, section 3.2.2.
    """
    draws = smoothing.estimation_samples
    selected = select(
        base, images, draws=smoothing.selection_samples, sigma=smoothing.sigma, noise=noise.stream(SELECTION)
    )
    votes, drawn = count_votes(
        base,
        images,
        selected,
        draws=draws,
        needed=fewest_votes(draws, alpha=smoothing.alpha),
        sigma=smoothing.sigma,
        noise=noise.stream(ESTIMATION),
    )
    lower_bound = lower_shares(votes.cpu().numpy(), draws, alpha=smoothing.alpha)
    radius = radii(lower_bound, sigma=smoothing.sigma)
    abstained = radius == 0
    return {
        "prediction": np.where(abstained, ABSTAINED, selected.cpu().numpy()).astype(np.int32),
        "radius": radius,
        "abstained": abstained,
        "draws": drawn.cpu().numpy() + smoothing.selection_samples,
        "lower_bound": lower_bound,
    }


def select(base: BatchedClassifier, images: Tensor, *, draws: int, sigma: float, noise: Draws) -> Tensor:
    """Class that each image's noisy copies are given most often, (n,) int64; the lowest of ties."""
    votes, classes = selection_votes(base, images, draws=draws, sigma=sigma, noise=noise)
    counts = torch.zeros(len(images), classes, dtype=torch.int64, device=base.device)
    counts.scatter_add_(1, votes, torch.ones_like(votes))
    return counts.argmax(1)


def selection_votes(
    base: BatchedClassifier, images: Tensor, *, draws: int, sigma: float, noise: Draws
) -> tuple[Tensor, int]:
    """Classes of each image's first noisy copies, (n, draws) int64, and their number K."""
    votes: list[Tensor] = []
    classes = 0
    done = 0
    while done < draws:
        each = _copies_each(base, len(images), draws - done)
        predicted, classes = noisy_classes(base, images, sigma=sigma, noise=noise.copies(each, done))
        votes.append(predicted)
        done += each
    return torch.cat(votes, 1), classes


def count_votes(
    base: BatchedClassifier,
    images: Tensor,
    classes: Tensor,
    *,
    draws: int,
    needed: int,
    sigma: float,
    noise: Draws,
) -> tuple[Tensor, Tensor]:
    """How many noisy copies of each image are given its class, and how many were drawn.

    An image is drawn `draws` times, or until it can no longer reach `needed` votes; what is classified beyond that, in
    one batch with the others, is not counted.

    Parameters
    ----------
    base : BatchedClassifier
        The classifier that is smoothed.
    images : Tensor
        (n, C, H, W) on its device.
    classes : Tensor
        (n,) int64, the class of each image that votes are counted for.
    draws : int
        Noisy copies of each image.
    needed : int
        Votes that decide; 0 to draw all copies.
    sigma : float
        Standard deviation of the noise.
    noise : Draws
        Random numbers of the images.

    Returns
    -------
    votes, drawn : Tensor
        (n,) int64 each.
    """
    votes = torch.zeros_like(classes)
    drawn = torch.zeros_like(classes)
    active = torch.arange(len(images), device=base.device)
    done = 0
    while done < draws and len(active):
        each = _copies_each(base, len(active), draws - done)
        predicted, _ = noisy_classes(
            base, images.index_select(0, active), sigma=sigma, noise=noise[active].copies(each, done)
        )
        agrees = predicted == classes.index_select(0, active)[:, None]
        hits = votes[active][:, None] + agrees.cumsum(1)
        done += each
        misses = torch.arange(done - each + 1, done + 1, device=base.device) - hits
        # The first draw after which too few are left, else the last one.
        lost, first = (misses > draws - needed).max(1)
        stop = first.where(lost, each - 1)
        votes[active] = hits.gather(1, stop[:, None])[:, 0]
        drawn[active] = done - each + 1 + stop
        active = active[~lost]
    return votes, drawn


def noisy_classes(base: BatchedClassifier, images: Tensor, *, sigma: float, noise: Draws) -> tuple[Tensor, int]:
    """Classes that the base classifier gives to noisy copies of every image, (n, each) int64, and their number K.

    A class does not depend on the label: it is the first of the largest logits.
    """
    logits = base.logits(noisy_copies(images, sigma=sigma, noise=noise))
    return logits.argmax(1).reshape(len(images), -1), logits.shape[1]


def noisy_copies(images: Tensor, *, sigma: float, noise: Draws) -> Tensor:
    """Copies of every image (n, C, H, W) with Gaussian noise, (n * each, C, H, W), image by image, by its copies."""
    copies = noise.normal(images.shape[1:], std=sigma).unflatten(0, (len(images), -1))
    return copies.add_(images[:, None]).flatten(0, 1)


def _copies_each(base: BatchedClassifier, images: int, remaining: int) -> int:
    # Small images share a batch, so that every pass is a full one.
    return max(1, min(remaining, base.batch_size // images))
