"""Probabilistic robustness of a classifier: a sequential test in the neighbourhood of every image."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.perturbations import Perturbation, make_perturbation
from gfscore.core.errors import InputError, unknown
from gfscore.core.tensors import Tensor
from gfscore.networks.classifier import Classifier
from gfscore.networks.inference import BatchedClassifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.error_rates import error_rate, require_budget, threshold
from gfscore.statistics.proportions import VALUES
from gfscore.statistics.sequential_tests import STATES, UNDECIDED, Boundaries, boundaries

REFERENCES = ("prediction", "label")
"""What a neighbour's class is compared with: h(x), "stability", or y, "correct and stable"."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Whether at most a share kappa of each image's neighbours is classified otherwise, one array (n,) per column.

    `settings` holds kappa (a number or the name of a preset), alpha, test and budget (see
    gfscore.statistics.sequential_tests), perturbation (see gfscore.attacks.perturbations), reference (one of
    REFERENCES) and batch_size (neighbours classified at a time). With the test `anytime` an image is called robust, or
    not robust, wrongly with probability at most alpha over the neighbours. Raises InputError for a budget within which
    no image could be called robust, and for a test that errs too often for any bounds.
    """
    import torch

    limits = make_boundaries(settings)
    error_rate(settings)
    base = BatchedClassifier(classifier, batch_size=settings["batch_size"])
    x, y = torch.from_numpy(images).to(base.device), torch.from_numpy(labels).to(base.device, torch.int64)
    outcome, predicted = run_tests(
        base,
        x,
        y,
        boundaries=limits,
        perturbation=make_perturbation(settings["perturbation"]),
        reference=settings["reference"],
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


def make_boundaries(settings: Mapping[str, Any]) -> Boundaries:
    """Decision boundaries of settings kappa, alpha, budget and test; InputError for a budget that is too small."""
    require_budget(settings)
    kappa = threshold(settings["kappa"])
    return boundaries(kappa=kappa, **{key: settings[key] for key in ("alpha", "budget", "test")})


@dataclass(frozen=True)
class Outcome:
    """Result of the tests of n images, tensors on their device.

    `codes` (n,) positions in STATES; `changes` and `draws` (n,) int64 when the test stopped; `neighbours` (n, C, H, W)
    the last neighbour seen that was classified otherwise, or the image itself where there was none.
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
    """Sequential test of every image: `(Outcome, predictions (n,) int64)`.

    Takes a BatchedClassifier, tensors `images` (n, C, H, W) and `labels` (n,), Boundaries, a Perturbation, the
    `reference` and the images' random numbers, `draws`, on their device. The boundary is looked at after every draw,
    however many are classified at once, and the k-th neighbour is the same whenever it is drawn, so neither outcome nor
    counts depend on what is drawn together, or beyond the decision; decided images leave the batch. A tie at the top
    counts against the reference label, and for a prediction against the true class.
    """
    import torch

    if reference not in REFERENCES:
        raise InputError(unknown("reference", reference, REFERENCES))
    limits, budget = boundaries.on(base.device), boundaries.budget
    predicted = predict(base.logits(images), labels)
    wanted = predicted if reference == "prediction" else labels
    codes = torch.full_like(labels, int(boundaries.decide(0, 0)))
    changes, count = torch.zeros_like(labels), torch.zeros_like(labels)
    neighbours = images.clone()
    active, done = torch.nonzero(codes == UNDECIDED).flatten(), 0
    before, next_call = changes[active], boundaries.robust_from(0)
    while done < budget and len(active):
        each = max(1, min(budget - done, base.batch_size // len(active)))
        rows = active.repeat_interleave(each)
        # Whole images are copied several times as fast as by an index.
        own = labels.index_select(0, rows)
        drawn = perturbation(images.index_select(0, rows), own, draws[active].copies(each, done))
        changed = (predict(base.logits(drawn), own) != wanted.index_select(0, rows)).reshape(-1, each)
        done += each
        # Near most images nothing changes, and without a change a test ends only by calling its image robust.
        if done < next_call and not changed.any():
            continue
        k = before[:, None] + changed.cumsum(1)
        calls = limits.decide(k, slice(done - each + 1, done + 1))
        # The first draw that decides, else the last one.
        decided, first = (calls != UNDECIDED).max(1)
        stop = first.where(decided, each - 1)[:, None]
        _remember(neighbours, active, drawn.reshape(-1, each, *images.shape[1:]), changed, stop)
        changes[active], count[active] = k.gather(1, stop)[:, 0], done - each + 1 + stop[:, 0]
        codes[active] = calls.gather(1, stop)[:, 0]
        going_on = torch.nonzero(~decided).flatten()
        active, before = active[going_on], k[going_on, -1]
        if len(active):
            next_call = boundaries.robust_from(int(before.min()))
    count[active] = done
    return Outcome(codes, changes, count, neighbours), predicted


def predict(logits: Tensor, labels: Tensor) -> Tensor:
    """Predicted classes (n,) int64 of tensors; a tie at the top counts against the true class."""
    own = logits.gather(1, labels[:, None])[:, 0]
    best, rival = logits.scatter(1, labels[:, None], -float("inf")).max(1)
    return labels.where(own > best, rival)


def _remember(neighbours, active, drawn, changed, stop):
    import torch

    # Position of the last change up to the decision, -1 without one.
    position = torch.arange(changed.shape[1], device=changed.device)
    last = torch.where(changed & (position <= stop), position, -1).amax(1)
    # No selection by a mask, for which a GPU would have to be waited for.
    seen = (last >= 0).reshape(-1, *[1] * (neighbours.ndim - 1))
    latest = drawn[torch.arange(len(active), device=active.device), last.clamp_min(0)]
    neighbours[active] = latest.where(seen, neighbours[active])
