"""Proofs of robustness in balls around images: intervals, linear bounds, then branch and bound, cheapest first."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.proofs.balls import Ball, ball
from gfscore.proofs.branching import BranchAndBound, Tree
from gfscore.proofs.certificates import Certificate, Claim, LayerProof, TreeProof, image_digest
from gfscore.proofs.layers import IMAGE, Interval, LayeredNetwork
from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.slopes import improved, rounded
from gfscore.proofs.tightening import CPU, RATE, Tightening, as_branches, margins

LAYER_STEPS = 10
"""Steps of the optimisation of slopes for bounds on inputs of activations."""

MARGIN_STEPS = 40
"""Steps of the optimisation of slopes for bounds on margins."""

BATCHES = {"cpu": 128, "cuda": 4096}
"""Parts of a ball that are split at once, by type of device."""

IMAGES_AT_ONCE = 64
"""Images whose intervals are computed at once."""


@dataclass(frozen=True)
class Proof:
    """Result for one image and its ball.

    Attributes
    ----------
    proven : bool
        Whether all points of the ball have the label as their class, in real arithmetic with the network's weights.
    lower : float
        Lower bound of z_y - z_j over the ball and all other classes j, also where it is not positive.
    decided_by : str
        "prediction" where the image itself is misclassified. "ibp", "crown", "alpha" or "branches": method that proved
        the last margin; "branches" also for a counterexample. Empty where neither was found.
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
    decided_by: str
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
    # splits by index of the rival, for those that reached branch and bound.

    network: LayeredNetwork
    ball: Ball
    claim: Claim
    lower: Array
    trees: dict[int, Tree] = field(default_factory=dict)
    evaluations: int = 0
    counterexample: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        self.rivals = _rivals(self.network, self.claim.label)

    def run(self, image: NDArray[np.float32], budget: int, device: str) -> Proof:
        with torch.no_grad():
            logits = self.network.graph.logits(torch.from_numpy(image[None]).double())[0].numpy()
        self.evaluations = len(self.rivals)
        if not (logits[self.claim.label] > logits[self.rivals]).all():
            return self._proof("prediction", None)
        tightening = Tightening(self.network, self.ball)
        if not len(self._unproven()):
            return self._proof("ibp", tightening)

        intervals = self.lower.copy()
        for _ in self.network.layers:
            tightening.add_layer(0)
        self._bound_by_crown(tightening)
        if not len(self._unproven()):
            return self._proof("crown", tightening)
        # About how many evaluations optimised slopes take: two bounds for each unit after the first block, one for each
        # margin, each with all steps of the optimisation, its start and exact bounds.
        units = sum(len(block.places) for block in tightening.relaxation.blocks[1:])
        needed = 2 * units * (LAYER_STEPS + 3) + len(self._unproven()) * (MARGIN_STEPS + 2)
        if self.evaluations + tightening.evaluations + needed > budget:
            return self._proof("", tightening)

        # A certificate has one set of slopes for the layers, so that margins that CROWN has proven with its own slopes
        # must be proven anew with the optimised ones.
        self.evaluations += tightening.evaluations
        self.lower = intervals
        tightening = Tightening(self.network, self.ball)
        for _ in self.network.layers:
            tightening.add_layer(LAYER_STEPS)
        self._bound_by_crown(tightening)
        if not tightening.relaxation.units:
            return self._proof("crown" if not len(self._unproven()) else "", tightening)
        return self._branch(tightening, budget, device)

    def _unproven(self) -> NDArray[np.int64]:
        # Indices of the rivals over which no margin is proven; a bound may be NaN.
        return np.flatnonzero(~(self.lower > 0))

    def _bound_by_crown(self, tightening: Tightening) -> None:
        unproven = self._unproven()
        functions = tightening.functions_of(margins(self.network, self.claim.label, self.rivals[unproven]))
        relaxation = tightening.relaxation
        bound = relaxation.lower(functions, relaxation.branches(len(unproven)), exact=True)
        self.lower[unproven] = np.fmax(self.lower[unproven], bound.lower.numpy())
        self.evaluations += len(unproven)

    def _branch(self, tightening: Tightening, budget: int, device: str) -> Proof:
        unproven = self._unproven()
        if not len(unproven):
            return self._proof("alpha", tightening)
        relaxation = tightening.relaxation
        functions = tightening.functions_of(margins(self.network, self.claim.label, self.rivals[unproven]))
        fast, fast_functions = relaxation.to(torch.float32, device), functions.to(torch.float32, device)
        search = improved(fast, fast_functions, fast.branches(len(unproven)), steps=MARGIN_STEPS, rate=RATE)
        self.evaluations += search.evaluations
        bound = relaxation.lower(functions, as_branches(rounded(search.branches.slopes).to(CPU)), exact=True)
        self.lower[unproven] = np.fmax(self.lower[unproven], bound.lower.numpy())

        device_type = torch.device(device).type
        branch_and_bound = BranchAndBound(
            relaxation=fast,
            exact=relaxation.to(torch.float64, device),
            functions=fast_functions,
            exact_functions=functions.to(torch.float64, device),
            trees=[Tree(int(rival)) for rival in self.rivals[unproven]],
            batch=BATCHES.get(device_type, BATCHES["cuda"]),
            smallest_margins=self._smallest_margins,
        )
        spent = self.evaluations + tightening.evaluations
        branch_and_bound.run(search.branches, search.lower, search.gains, budget - spent)
        self.evaluations += branch_and_bound.evaluations
        for index, tree, lower in zip(unproven, branch_and_bound.trees, branch_and_bound.lower, strict=True):
            self.trees[int(index)] = tree
            if tree.complete:
                self.lower[index] = max(self.lower[index], lower)
        if branch_and_bound.counterexample is not None:
            point = branch_and_bound.counterexample.cpu().numpy().astype(np.float32)
            self.counterexample = point.reshape(self.network.graph.image_shape)
            return self._proof("branches", tightening)
        if len(self._unproven()):
            return self._proof("", tightening)
        split = any(len(tree.units) > 1 for tree in self.trees.values())
        return self._proof("branches" if split else "alpha", tightening)

    def _smallest_margins(self, pixels: Tensor) -> Tensor:
        logits = self.network.graph.logits(pixels.reshape(-1, *self.network.graph.image_shape))
        label, rivals = self.claim.label, torch.from_numpy(self.rivals)
        return logits[:, label] - logits[:, rivals.to(logits.device)].amax(1)

    def _proof(self, decided_by: str, tightening: Tightening | None) -> Proof:
        proven = decided_by not in ("", "prediction") and self.counterexample is None
        evaluations = self.evaluations + (tightening.evaluations if tightening else 0)
        branches = sum(len(tree.units) // 2 + 1 for tree in self.trees.values() if len(tree.units) > 1)
        return Proof(
            proven=proven,
            lower=float(self.lower.min()),
            decided_by=decided_by,
            branches=branches,
            evaluations=evaluations,
            certificate=self._certificate(tightening) if proven and tightening else None,
            counterexample=self.counterexample,
        )

    def _certificate(self, tightening: Tightening) -> Certificate:
        layers, places, pairs = [], [], []
        relaxation = tightening.relaxation
        for block, units in zip(relaxation.blocks, relaxation.slices(), strict=True):
            layers.append(np.full(len(block.places), block.layer))
            places.append(block.places)
            pairs.append(torch.stack([block.pairs.first, block.pairs.second], dim=1).numpy() + units.start)
        proofs = {}
        for number, slopes in tightening.slopes.items():
            proofs[number] = LayerProof(slopes.places, slopes.lower.T, slopes.upper.T)
        trees = []
        for index, rival in enumerate(self.rivals.tolist()):
            tree = self.trees.get(index)
            if tree is None:
                # One leaf, the whole ball, with the slopes of CROWN.
                leaf, no_slopes = np.array([-1]), np.zeros((1, 0), dtype=np.uint8)
                trees.append(TreeProof(rival, leaf, leaf, no_slopes, np.zeros(0, dtype=np.float32)))
                continue
            leaves = [tree.leaves[node] for node in sorted(tree.leaves)]
            leaf_slopes = np.stack([leaf.slopes for leaf in leaves])
            multipliers = np.concatenate([leaf.multipliers for leaf in leaves])
            trees.append(TreeProof(rival, np.array(tree.units), np.array(tree.children), leaf_slopes, multipliers))
        # Arrays of the right type also without units.
        empty = np.zeros(0, dtype=np.int64)
        return Certificate(
            claim=self.claim,
            layers=np.concatenate([empty, *layers]),
            places=np.concatenate([empty, *places]),
            pairs=np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]),
            proofs=proofs,
            trees=tuple(trees),
            lower=float(self.lower.min()),
        )
