"""Probabilistic robustness of a classifier: a sequential test in the neighbourhood of every image."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.attacks.gradient_ascent import logit_of, other_logits
from gfscore.attacks.perturbations import Perturbation, gaussian, l2_ball, linf_ball, one_corruption
from gfscore.core.errors import InputError, unknown_name
from gfscore.measures.probabilistic import Gaussian, L2Ball, LinfBall, Neighbours, OneCorruption, Probabilistic
from gfscore.measures.samples import SampleColumns
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.error_rates import SequentialTest, threshold
from gfscore.statistics.proportions import VALUES
from gfscore.statistics.sequential_tests import STATES, UNDECIDED, Boundaries, boundaries

REFERENCES = ("prediction", "label")
"""What a neighbour's class is compared with: h(x), "stability", or y, "correct and stable"."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Probabilistic,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Whether at most a share kappa of each image's neighbours is classified otherwise.

    With the test `anytime` an image is called robust, or not robust, wrongly with probability at most alpha over the
    neighbours.

    Parameters
    ----------
    classifier : Classifier
        With or without gradients.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Probabilistic
        Threshold, test, perturbation and reference.
    seeds : ndarray
        Seed of each sample, (n,) uint64.

    Returns
    -------
    dict
        Arrays (n,): prediction on the image; value, 1 for robust, else 0; censored, whether the test decided nothing;
        state, one of STATES; changes and draws, neighbours that were classified otherwise, and neighbours drawn.

    Raises
    ------
    InputError
        For a budget within which no image could be called robust, and for a test that errs too often for any bounds.
    """
    test = settings.sequential_test
    limits = make_boundaries(test)
    test.error_rate()  # refuses a test that errs too often
    base = BatchedClassifier(classifier, batch_size=settings.batch_size)
    outcome, predicted = run_tests(
        base,
        torch.from_numpy(images).to(base.device),
        torch.from_numpy(labels).to(base.device, torch.int64),
        boundaries=limits,
        perturbation=perturbation_of(settings.perturbation),
        reference=settings.reference,
        draws=Draws.of(seeds, base.device),
    )
    state = outcome.states()
    return {
        "prediction": predicted.cpu().numpy().astype(np.int32),
        "value": np.array([VALUES[name] for name in state], dtype=np.float64),
        "censored": state == "undecided",
        "state": state,
        "changes": outcome.changes.cpu().numpy(),
        "draws": outcome.draws.cpu().numpy(),
    }


def perturbation_of(settings: Neighbours) -> Perturbation:
    """Distribution of neighbours that the settings of a measure describe."""
    match settings:
        case LinfBall():
            return linf_ball(eps=settings.eps, clip=settings.clip)
        case L2Ball():
            return l2_ball(eps=settings.eps, clip=settings.clip)
        case Gaussian():
            return gaussian(sigma=settings.sigma, clip=settings.clip)
        case OneCorruption():
            return one_corruption(corruptions=settings.corruptions, severities=settings.severities)


def make_boundaries(test: SequentialTest) -> Boundaries:
    """Decision boundaries of a test; raises InputError for a budget within which nothing could be called robust."""
    test.require_budget()
    return boundaries(kappa=threshold(test.kappa), alpha=test.alpha, budget=test.budget, test=test.name)


@dataclass(frozen=True)
class Outcome:
    """Result of the tests of n images, tensors on their device.

    Parameters
    ----------
    codes : Tensor
        (n,) positions in STATES.
    changes, draws : Tensor
        (n,) int64 when the test stopped.
    neighbours : Tensor
        (n, C, H, W): the last neighbour drawn that was classified otherwise, or the image itself without one.
    """

    codes: Tensor
    changes: Tensor
    draws: Tensor
    neighbours: Tensor

    def states(self) -> NDArray[np.object_]:
        """Names of the states, (n,) array of str."""
        return np.array(STATES, dtype=object)[self.codes.cpu().numpy()]


def run_tests(
    base: BatchedClassifier,
    images: Tensor,
    labels: Tensor,
    *,
    boundaries: Boundaries,
    perturbation: Perturbation,
    reference: str,
    draws: Draws,
) -> tuple[Outcome, Tensor]:
    """Sequential test of every image.

    The boundary is looked at after every draw, however many are classified at once, and the k-th neighbour is the same
    whenever it is drawn, so neither outcome nor counts depend on what is drawn together, or beyond the decision;
    decided images leave the batch. A tie at the top counts against the reference label, and for a prediction against
    the true class.

    Parameters
    ----------
    base : BatchedClassifier
        The classifier that is tested.
    images, labels : Tensor
        (n, C, H, W) and (n,) int64, on its device.
    boundaries : Boundaries
        When a test ends.
    perturbation : Perturbation
        Distribution of the neighbours.
    reference : {"prediction", "label"}
        What a neighbour's class is compared with.
    draws : Draws
        Random numbers of the images, on the device.

    Returns
    -------
    outcome : Outcome
        States and counts.
    predicted : Tensor
        Predicted class of each image, (n,) int64.
    """
    if reference not in REFERENCES:
        raise InputError(unknown_name("reference", reference, REFERENCES))
    limits = boundaries.on(base.device)
    budget = boundaries.budget
    predicted = predict(base.logits(images), labels)
    reference_class = predicted if reference == "prediction" else labels

    codes = torch.full_like(labels, int(boundaries.decide(0, 0)))
    changes = torch.zeros_like(labels)
    count = torch.zeros_like(labels)
    neighbours = images.clone()
    active = torch.nonzero(codes == UNDECIDED).flatten()
    earlier_changes = changes[active]
    next_call = boundaries.robust_from(0)
    done = 0
    while done < budget and len(active):
        each = max(1, min(budget - done, base.batch_size // len(active)))
        rows = active.repeat_interleave(each)
        # Whole images are copied several times as fast as by an index.
        row_labels = labels.index_select(0, rows)
        drawn = perturbation(images.index_select(0, rows), row_labels, draws[active].copies(each, done))
        changed = predict(base.logits(drawn), row_labels) != reference_class.index_select(0, rows)
        changed = changed.reshape(-1, each)
        done += each
        # Near most images nothing changes, and without a change a test ends only by calling its image robust.
        if done < next_call and not changed.any():
            continue

        k = earlier_changes[:, None] + changed.cumsum(1)
        calls = limits.decide(k, slice(done - each + 1, done + 1))
        # The first draw that decides, else the last one.
        decided, first = (calls != UNDECIDED).max(1)
        stop = first.where(decided, each - 1)[:, None]
        _remember(neighbours, active, drawn.reshape(-1, each, *images.shape[1:]), changed, stop)
        changes[active] = k.gather(1, stop)[:, 0]
        count[active] = done - each + 1 + stop[:, 0]
        codes[active] = calls.gather(1, stop)[:, 0]

        undecided = torch.nonzero(~decided).flatten()
        active = active[undecided]
        earlier_changes = k[undecided, -1]
        if len(active):
            next_call = boundaries.robust_from(int(earlier_changes.min()))
    count[active] = done
    return Outcome(codes, changes, count, neighbours), predicted


def predict(logits: Tensor, labels: Tensor) -> Tensor:
    """Predicted classes (n,) int64 of tensors; a tie at the top counts against the true class."""
    best, rival = other_logits(logits, labels).max(1)
    return labels.where(logit_of(logits, labels) > best, rival)


def _remember(neighbours: Tensor, active: Tensor, drawn: Tensor, changed: Tensor, stop: Tensor) -> None:
    # Position of the last change up to the decision, -1 without one.
    position = torch.arange(changed.shape[1], device=changed.device)
    last = torch.where(changed & (position <= stop), position, -1).amax(1)
    # No selection by a mask, for which a GPU would have to be waited for.
    any_change = (last >= 0).reshape(-1, *[1] * (neighbours.ndim - 1))
    latest = drawn[torch.arange(len(active), device=active.device), last.clamp_min(0)]
    neighbours[active] = latest.where(any_change, neighbours[active])
