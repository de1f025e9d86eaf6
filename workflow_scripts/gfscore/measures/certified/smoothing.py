"""Randomized smoothing: certified l2 radii of the smoothed classifier by counting noisy predictions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.tensors import Tensor
from gfscore.measures.certified.radii import fewest_votes, radii
from gfscore.networks.inference import BatchedClassifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.proportions import lower_shares
from gfscore.tables.radius_files import ABSTAINED


def certify(
    base: BatchedClassifier, images: Tensor, *, smoothing: Mapping[str, Any], noise: Draws
) -> dict[str, NDArray[Any]]:
    """Columns prediction, radius, abstained, draws and lower_bound of a tensor of images, arrays (n,).

    The class is selected by n0 draws and its probability bounded from n separate draws by the exact one-sided
    Clopper-Pearson bound at alpha. Draws of a sample stop once it would abstain even if all remaining ones agreed,
    which changes no outcome; its `lower_bound` then counts the missing draws as votes against, so it holds too.
    Source: Cohen et al. 2019, section 3.2.2.
    """
    sigma, alpha, draws = smoothing["sigma"], smoothing["alpha"], smoothing["estimation_samples"]
    selection, estimation = noise.stream(0), noise.stream(1)
    selected = select(base, images, draws=smoothing["selection_samples"], sigma=sigma, noise=selection)
    needed = fewest_votes(draws, alpha=alpha)
    votes, drawn = count_votes(base, images, selected, draws=draws, needed=needed, sigma=sigma, noise=estimation)
    lower_bound = lower_shares(votes.cpu().numpy(), draws, alpha=alpha)
    radius = radii(lower_bound, sigma=sigma)
    abstained = radius == 0
    return {
        "prediction": np.where(abstained, ABSTAINED, selected.cpu().numpy()).astype(np.int32),
        "radius": radius,
        "abstained": abstained,
        "draws": drawn.cpu().numpy() + smoothing["selection_samples"],
        "lower_bound": lower_bound,
    }


def select(base: BatchedClassifier, images: Tensor, *, draws: int, sigma: float, noise: Draws) -> Tensor:
    """Class that each image's noisy copies are given most often, (n,) int64; the lowest of ties."""
    from torch.nn.functional import one_hot

    counts: Any = 0
    done = 0
    while done < draws:
        each = _copies_each(base, len(images), draws - done)
        votes, classes = noisy_classes(base, images, sigma=sigma, noise=noise.copies(each, done))
        counts = counts + one_hot(votes, classes).sum(1)
        done += each
    return counts.argmax(1)


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
    """How many noisy copies of each image are given its class, and how many were drawn: two (n,) int64 tensors.

    Takes `classes` (n,). An image is drawn `draws` times, or until it can no longer reach `needed` votes; what is
    classified beyond that, in one batch with the others, is not counted.
    """
    import torch

    votes = torch.zeros_like(classes)
    drawn = torch.zeros_like(classes)
    active, done = torch.arange(len(images), device=base.device), 0
    while done < draws and len(active):
        each = _copies_each(base, len(active), draws - done)
        own = noise[active].copies(each, done)
        found, _ = noisy_classes(base, images.index_select(0, active), sigma=sigma, noise=own)
        hits = votes[active][:, None] + (found == classes.index_select(0, active)[:, None]).cumsum(1)
        done += each
        missed = torch.arange(done - each + 1, done + 1, device=base.device) - hits
        # The first draw after which too few are left, else the last one.
        lost, first = (missed > draws - needed).max(1)
        stop = first.where(lost, each - 1)
        votes[active] = hits.gather(1, stop[:, None])[:, 0]
        drawn[active] = done - each + 1 + stop
        active = active[~lost]
    return votes, drawn


def noisy_classes(base: BatchedClassifier, images: Tensor, *, sigma: float, noise: Draws) -> tuple[Tensor, int]:
    """Classes that the base classifier gives to noisy copies of every image: `(votes (n, each) int64, K)`.

    A class does not depend on the label: it is the first of the largest logits.
    """
    logits = base.logits(noisy_copies(images, sigma=sigma, noise=noise))
    return logits.argmax(1).reshape(len(images), -1), logits.shape[1]


def noisy_copies(images: Tensor, *, sigma: float, noise: Draws) -> Tensor:
    """Copies of every image (n, C, H, W) with Gaussian noise, (n * each, C, H, W), image by image, by its copies."""
    drawn = noise.normal(images.shape[1:], std=sigma)
    return drawn.unflatten(0, (len(images), -1)).add_(images[:, None]).flatten(0, 1)


def _copies_each(base, images, remaining):
    # Small images share a batch, so that every pass is a full one.
    return max(1, min(remaining, base.batch_size // images))
