"""Proofs of robustness in balls around images: intervals, linear bounds, then branch and bound, cheapest first."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.proofs.balls import Ball, ball
from gfscore.proofs.branching import BranchAndBound, RelaxedMargins, Tree
from gfscore.proofs.certificates import Certificate, Claim, LayerProof, TreeProof, image_digest
from gfscore.proofs.layers import IMAGE, Interval, LayeredNetwork
from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.slopes import rounded
from gfscore.proofs.tightening import CPU, RATE, Tightening, as_branches, margins

LAYER_STEPS = 10
"""Steps of the optimisation of slopes for bounds on inputs of activations."""

MARGIN_STEPS = 40
"""Steps of the optimisation of slopes for bounds on margins."""

BATCHES = {"cpu": 128, "cuda": 4096}
"""Subproblems that are split at once, by type of device."""

IMAGES_AT_ONCE = 64
"""Images whose intervals are computed at once."""

ALL = slice(None)


class Method(StrEnum):
    """What decides whether a ball is proven, in the order in which they are tried."""

    PREDICTION = "prediction"
    """The image itself is misclassified."""

    IBP = "ibp"
    """Interval arithmetic."""

    CROWN = "crown"
    """Linear bounds."""

    ALPHA = "alpha"
    """Linear bounds with optimised slopes."""

    BRANCHES = "branches"
    """Branch and bound, by a proof or a counterexample."""


@dataclass(frozen=True)
class Proof:
    """Result for one image and its ball.

    Attributes
    ----------
    proven : bool
        Whether all points of the ball have the label as their class, in real arithmetic with the network's weights.
    lower : float
        Lower bound of z_y - z_j over the ball and all other classes j, also where it is not positive.
    decided_by : Method or None
        What proved the last margin, or found the image or a point of the ball misclassified; None where nothing did.
    branches : int
        Parts that the ball was split into, over all margins.
    evaluations : int
        Bounds of single functions that were computed.
    certificate : Certificate or None
        None without a proof.
    counterexample : ndarray or None
        Pixels (C, H, W) float32 in the ball, up to their rounding, that are not classified as the label in float32.
    """

    proven: bool
    lower: float
    decided_by: Method | None
    branches: int
    evaluations: int
    certificate: Certificate | None
    counterexample: NDArray[np.float32] | None = None


def prove(
    network: LayeredNetwork,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    norm: str,
    eps: float,
    budget: int,
    device: str = CPU,
    cores: int = 1,
) -> Iterator[Proof]:
    """Prove image by image that all points of a ball around it have its label as their class.

    Parameters
    ----------
    network : LayeredNetwork
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    norm : str
        "linf" or "l2".
    eps : float
        Radius of the balls, which are cut with [0, 1].
    budget : int
        Bounds of single functions that may be evaluated for one image. Intervals and CROWN are always computed. Slopes
        are optimised only if the budget suffices for all of them. It is checked before every round of splits.
    device : str
        Torch device of branch and bound.
    cores : int
        Number of images that are processed at once, each on one core.

    Yields
    ------
    Proof
        In the order of the images; the same for every batch and any number of cores.
    """
    for start in range(0, len(images), IMAGES_AT_ONCE):
        batch = slice(start, start + IMAGES_AT_ONCE)
        balls = [ball(image, eps, norm) for image in images[batch]]
        yield from prove_in(network, balls, images[batch], labels[batch], budget=budget, device=device, cores=cores)


def prove_in(
    network: LayeredNetwork,
    balls: list[Ball],
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    budget: int,
    device: str = CPU,
    cores: int = 1,
) -> Iterator[Proof]:
    """Prove for each image that all points of a given ball have its label as their class.

    Parameters
    ----------
    network, images, labels, budget, device, cores
        See `prove`.
    balls : list of Ball
        One around each image.
    """
    lower = _interval_margins(network, balls, labels)

    def proof_of(index: int) -> Proof:
        image, image_ball = images[index], balls[index]
        claim = Claim(
            network=network.graph.digest,
            image=image_digest(image),
            label=int(labels[index]),
            norm=image_ball.norm,
            eps=float(image_ball.eps),
        )
        return _Search(network, image_ball, claim, lower[:, index]).run(image, budget, device)

    threads = torch.get_num_threads()
    # One thread of torch for each image: its products are too small to be shared, and sums keep their order.
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield from pool.map(proof_of, range(len(balls)))
        finally:
            pool.shutdown(cancel_futures=True)
            # Otherwise threads that start later would have one thread of torch, too.
            torch.set_num_threads(threads)


def surely_misclassified(network: LayeredNetwork, points: Array, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether points certainly are misclassified in real arithmetic; a tie is a misclassification.

    Parameters
    ----------
    network : LayeredNetwork
    points : ndarray
        (n, C, H, W) float64.
    labels : ndarray
        (n,) int64.

    Returns
    -------
    ndarray
        (n,) bool; False where rounding errors leave it open.
    """
    result = np.zeros(len(points), dtype=bool)
    for row, point in enumerate(points):
        pixels = point.reshape(-1, 1)
        bounds = _output_intervals(network, pixels, pixels)
        label = int(labels[row])
        _, upper = margins(network, label, _rivals(network, label)).interval(bounds)
        result[row] = bool((upper <= 0).any())
    return result


def _output_intervals(network: LayeredNetwork, low: Array, high: Array) -> dict[int, Interval]:
    # Bounds of the outputs of all layers by interval arithmetic, from bounds of the pixels (d, n).
    bounds = {IMAGE: (low, high)}
    for number, layer in enumerate(network.layers):
        bounds[number] = layer.activation.interval(*layer.before.interval(bounds))
    return bounds


def _interval_margins(network: LayeredNetwork, balls: list[Ball], labels: NDArray[np.int64]) -> Array:
    # Lower bounds of the margins over all classes but the label, (K - 1, n), by interval arithmetic.
    low = np.stack([image_ball.low for image_ball in balls], axis=1)
    high = np.stack([image_ball.high for image_ball in balls], axis=1)
    bounds = _output_intervals(network, low, high)
    result = np.empty((network.classes - 1, len(balls)))
    for label in np.unique(labels):
        columns = np.flatnonzero(labels == label)
        label_bounds = {source: (lower[:, columns], upper[:, columns]) for source, (lower, upper) in bounds.items()}
        lower, _ = margins(network, int(label), _rivals(network, int(label))).interval(label_bounds)
        result[:, columns] = lower
    return result


def _rivals(network: LayeredNetwork, label: int) -> NDArray[np.int64]:
    classes = np.arange(network.classes)
    return classes[classes != label]


@dataclass
class _Search:
    # The search for a proof in one ball. `lower`: best bound so far of the margin over each rival, (K - 1,). `trees`:
    # splits of the margins that branch and bound was needed for, by index of the rival.

    network: LayeredNetwork
    ball: Ball
    claim: Claim
    lower: Array
    trees: dict[int, Tree] = field(default_factory=dict)
    evaluations: int = 0
    counterexample: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        self.rivals = _rivals(self.network, self.claim.label)
        self.tightening = Tightening(self.network, self.ball)

    def run(self, image: NDArray[np.float32], budget: int, device: str) -> Proof:
        decided_by = self._decide(image, budget, device)
        proven = decided_by not in (None, Method.PREDICTION) and self.counterexample is None
        return Proof(
            proven=proven,
            lower=float(self.lower.min()),
            decided_by=decided_by,
            branches=sum(len(tree.parts) for tree in self.trees.values() if tree.is_split),
            evaluations=self.evaluations,
            certificate=self._certificate() if proven else None,
            counterexample=self.counterexample,
        )

    def _decide(self, image: NDArray[np.float32], budget: int, device: str) -> Method | None:
        # The first method that decides the ball; None where none does within the budget.
        if self._is_misclassified(image):
            return Method.PREDICTION
        if self._is_proven():
            return Method.IBP

        interval_bounds = self.lower.copy()
        self._bound_layers(slope_steps=0)
        self._bound_margins()
        if self._is_proven():
            return Method.CROWN
        if self.evaluations + self._evaluations_of_slopes() > budget:
            return None

        return self._decide_by_slopes(interval_bounds, budget, device)

    def _decide_by_slopes(self, interval_bounds: Array, budget: int, device: str) -> Method | None:
        # A certificate has one set of slopes for the layers, so that margins that CROWN has proven with its own slopes
        # must be proven anew with the optimised ones.
        self.lower = interval_bounds
        self._bound_layers(slope_steps=LAYER_STEPS)
        self._bound_margins()
        if not self.tightening.relaxation.unit_count:
            return Method.CROWN if self._is_proven() else None
        if self._is_proven():
            return Method.ALPHA

        trees = self._branch_and_bound(budget, device)
        if self.counterexample is not None:
            return Method.BRANCHES
        if not self._is_proven():
            return None
        return Method.BRANCHES if any(tree.is_split for tree in trees) else Method.ALPHA

    def _is_misclassified(self, image: NDArray[np.float32]) -> bool:
        with torch.no_grad():
            logits = self.network.graph.logits(torch.from_numpy(image[None]).double())[0].numpy()
        self.evaluations += len(self.rivals)
        return not (logits[self.claim.label] > logits[self.rivals]).all()

    def _is_proven(self) -> bool:
        return len(self._unproven()) == 0

    def _unproven(self) -> NDArray[np.int64]:
        # Indices of the rivals over which no margin is proven; a bound may be NaN.
        return np.flatnonzero(~(self.lower > 0))

    def _bound_layers(self, *, slope_steps: int) -> None:
        # The network's relaxation in the ball, made anew.
        self.tightening = Tightening(self.network, self.ball)
        for _ in self.network.layers:
            self.tightening.add_layer(slope_steps)
        self.evaluations += self.tightening.evaluations

    def _bound_margins(self) -> None:
        # By CROWN.
        unproven = self._unproven()
        relaxed = self._relaxed_margins(unproven)
        bound = relaxed.bound(ALL, relaxed.relaxation.branches(len(unproven)), exact=True)
        self._raise(unproven, bound.lower)
        self.evaluations += len(unproven)

    def _evaluations_of_slopes(self) -> int:
        # About how many evaluations optimised slopes take: two bounds for each unit after the first block, one for each
        # margin, each with all steps of the optimisation, its start and exact bounds.
        units = sum(len(block.places) for block in self.tightening.relaxation.blocks[1:])
        return 2 * units * (LAYER_STEPS + 3) + len(self._unproven()) * (MARGIN_STEPS + 2)

    def _branch_and_bound(self, budget: int, device: str) -> list[Tree]:
        unproven = self._unproven()
        relaxed = self._relaxed_margins(unproven)
        fast = relaxed.to(torch.float32, device)
        whole_ball = fast.improved(ALL, fast.relaxation.branches(len(unproven)), steps=MARGIN_STEPS, rate=RATE)
        self.evaluations += whole_ball.evaluations
        slopes = rounded(whole_ball.branches.slopes).to(CPU)
        self._raise(unproven, relaxed.bound(ALL, as_branches(slopes), exact=True).lower)

        search = BranchAndBound(
            margins=fast,
            exact_margins=relaxed.to(torch.float64, device),
            trees=[Tree(int(rival)) for rival in self.rivals[unproven]],
            batch=BATCHES.get(torch.device(device).type, BATCHES["cuda"]),
            smallest_margins=self._smallest_margins,
        )
        counterexample = search.run(whole_ball, budget=budget - self.evaluations)
        self.evaluations += search.evaluations
        for index, tree in zip(unproven.tolist(), search.trees, strict=True):
            self.trees[index] = tree
            if tree.is_proven:
                self.lower[index] = max(self.lower[index], tree.lower)
        if counterexample is not None:
            pixels = counterexample.cpu().numpy().astype(np.float32)
            self.counterexample = pixels.reshape(self.network.graph.image_shape)
        return search.trees

    def _relaxed_margins(self, indices: NDArray[np.int64]) -> RelaxedMargins:
        # Margins over some of the rivals, in float64.
        values = margins(self.network, self.claim.label, self.rivals[indices])
        return RelaxedMargins(self.tightening.relaxation, self.tightening.functions_of(values))

    def _raise(self, indices: NDArray[np.int64], lower: Tensor) -> None:
        self.lower[indices] = np.fmax(self.lower[indices], lower.numpy())

    def _smallest_margins(self, pixels: Tensor) -> Tensor:
        # Smallest margins (n,) of the network itself at pixels (n, d).
        logits = self.network.graph.logits(pixels.reshape(-1, *self.network.graph.image_shape))
        label, rivals = self.claim.label, torch.from_numpy(self.rivals)
        return logits[:, label] - logits[:, rivals.to(logits.device)].amax(1)

    def _certificate(self) -> Certificate:
        relaxation = self.tightening.relaxation
        # Arrays of the right type also without units.
        layers, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for block, units in zip(relaxation.blocks, relaxation.slices(), strict=True):
            layers.append(np.full(len(block.places), block.layer))
            places.append(block.places)
            pairs.append(torch.stack([block.pairs.first, block.pairs.second], dim=1).numpy() + units.start)
        proofs = {}
        for number, slopes in self.tightening.slopes.items():
            proofs[number] = LayerProof(slopes.places, slopes.lower.T, slopes.upper.T)
        trees = []
        for index, rival in enumerate(self.rivals.tolist()):
            tree = self.trees.get(index)
            trees.append(TreeProof.of_whole_ball(rival) if tree is None else tree.proof())
        return Certificate(
            claim=self.claim,
            layers=np.concatenate(layers),
            places=np.concatenate(places),
            pairs=np.concatenate(pairs),
            proofs=proofs,
            trees=tuple(trees),
            lower=float(self.lower.min()),
        )
