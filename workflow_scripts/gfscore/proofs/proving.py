"""Proofs of robustness in balls around images: intervals, linear bounds, then branch and bound, cheapest first."""

from __future__ import annotations

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
from gfscore.proofs.tightening import CPU, Tightening, as_branches, margins

LAYER_STEPS = 10
"""Steps by which slopes for bounds on inputs of activations are optimised."""

MARGIN_STEPS = 40
"""Steps by which slopes for margins are optimised."""

RATE = 0.2
"""Step size of slopes; multipliers have half of it."""

BATCHES = {"cpu": 128, "cuda": 4096}
"""Parts of a ball that are split at once, by kind of device."""

IMAGES_AT_ONCE = 64
"""Images whose intervals are computed at once."""


@dataclass(frozen=True)
class Proof:
    """What is certain of one image in its ball.

    Attributes
    ----------
    proven : bool
        No point of the ball is classified otherwise, in real arithmetic with the network's weights.
    lower : float
        Lower bound of z_y - z_j over the ball and all other classes j, whatever is proven.
    decided_by : str
        "prediction" for a wrong one; "ibp", "crown", "alpha" or "branches" for the method that proved the last class,
        "branches" also where they found a counterexample; empty where the sample is open.
    branches : int
        Parts that the ball was split into.
    evaluations : int
        Bounds of single functions that were computed.
    certificate : Certificate or None
        None where nothing is proven.
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
    """Prove image by image that no point of a ball is classified otherwise.

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
        Bounds of single functions that may be evaluated for one image. Intervals and CROWN always come first; slopes
        are optimised only where all of them can be, and before every round of splits the budget is looked at.
    device : str
        Torch device of branch and bound.
    cores : int
        Images that are searched at once, each on one core.

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
    """Prove in a ball of its own for each image that no point is classified otherwise.

    Parameters
    ----------
    network, images, labels, budget, device, cores
        See `prove`.
    balls : list of Ball
        One around each image.
    """
    lower = _interval_margins(network, balls, labels)

    def proof_of(place: int) -> Proof:
        member, image = balls[place], images[place]
        claim = Claim(network.graph.digest, image_digest(image), int(labels[place]), member.norm, float(member.eps))
        return _Search(network, member, claim, lower[:, place]).run(image, budget, device)

    threads = torch.get_num_threads()
    # One thread of torch for each search: its products are too small to share, and sums keep their order.
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield from pool.map(proof_of, range(len(balls)))
        finally:
            pool.shutdown(cancel_futures=True)
            # The setting of the searches would also hold for threads that start later.
            torch.set_num_threads(threads)


def surely_misclassified(network: LayeredNetwork, points: Array, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether points are classified otherwise in real arithmetic; a tie counts.

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
        (n,) bool; False where a margin is as small as its rounding errors.
    """
    result = np.zeros(len(points), dtype=bool)
    for row, point in enumerate(points):
        flat = point.reshape(-1, 1)
        bounds = _bounds_of_layers(network, {IMAGE: (flat, flat)})
        label = int(labels[row])
        _, upper = margins(network, label, _rivals(network, label)).interval(bounds)
        result[row] = bool((upper <= 0).any())
    return result


def _bounds_of_layers(network: LayeredNetwork, pixels: dict[int, Interval]) -> dict[int, Interval]:
    # Bounds of the outputs of all layers by intervals.
    bounds = dict(pixels)
    for number, layer in enumerate(network.layers):
        bounds[number] = layer.activation.interval(*layer.before.interval(bounds))
    return bounds


def _interval_margins(network: LayeredNetwork, balls: list[Ball], labels: NDArray[np.int64]) -> Array:
    # Bounds of the margins over all classes but the label, (K - 1, n), by intervals.
    low = np.stack([member.low for member in balls], axis=1)
    high = np.stack([member.high for member in balls], axis=1)
    bounds = _bounds_of_layers(network, {IMAGE: (low, high)})
    result = np.empty((network.classes - 1, len(balls)))
    for label in np.unique(labels):
        columns = np.flatnonzero(labels == label)
        of_label = {source: (lower[:, columns], upper[:, columns]) for source, (lower, upper) in bounds.items()}
        result[:, columns] = margins(network, int(label), _rivals(network, int(label))).interval(of_label)[0]
    return result


def _rivals(network: LayeredNetwork, label: int) -> NDArray[np.int64]:
    classes = np.arange(network.classes)
    return classes[classes != label]


@dataclass
class _Search:
    # The search for a proof in one ball. `lower`: the best bound so far of each margin.

    network: LayeredNetwork
    ball: Ball
    claim: Claim
    lower: Array
    trees: dict[int, Tree] = field(default_factory=dict)
    slopes: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    evaluations: int = 0
    counterexample: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        self.rivals = _rivals(self.network, self.claim.label)

    def run(self, image: NDArray[np.float32], budget: int, device: str) -> Proof:
        with torch.no_grad():
            values = self.network.graph.logits(torch.from_numpy(image[None]).double())[0].numpy()
        self.evaluations = len(self.rivals)
        if not (values[self.claim.label] > values[self.rivals]).all():
            return self._proof("prediction", None)
        tightening = Tightening(self.network, self.ball)
        if not len(self._open()):
            return self._proof("ibp", tightening)

        intervals = self.lower.copy()
        for _ in self.network.layers:
            tightening.add_layer(0)
        self._bound_by_crown(tightening)
        if not len(self._open()):
            return self._proof("crown", tightening)
        # About as many as optimised slopes will take: both bounds of the units behind the first layer, and the margins.
        units = sum(len(block.places) for block in tightening.relaxation.blocks[1:])
        needed = 2 * units * (LAYER_STEPS + 3) + len(self._open()) * (MARGIN_STEPS + 2)
        if self.evaluations + tightening.evaluations + needed > budget:
            return self._proof("", tightening)

        # A certificate holds one set of slopes for layers: with others, CROWN has to prove its margins again.
        self.evaluations += tightening.evaluations
        self.lower = intervals
        tightening = Tightening(self.network, self.ball)
        for _ in self.network.layers:
            tightening.add_layer(LAYER_STEPS)
        self._bound_by_crown(tightening)
        if not tightening.relaxation.units:
            return self._proof("crown" if not len(self._open()) else "", tightening)
        return self._branch(tightening, budget, device)

    def _open(self) -> NDArray[np.int64]:
        return np.flatnonzero(~(self.lower > 0))

    def _bound_by_crown(self, tightening: Tightening) -> None:
        places = self._open()
        functions = tightening.functions_of(margins(self.network, self.claim.label, self.rivals[places]))
        relaxation = tightening.relaxation
        bound = relaxation.lower(functions, relaxation.branches(len(places)), exact=True)
        self.lower[places] = np.fmax(self.lower[places], bound.lower.numpy())
        self.evaluations += len(places)

    def _branch(self, tightening: Tightening, budget: int, device: str) -> Proof:
        places = self._open()
        if not len(places):
            return self._proof("alpha", tightening)
        relaxation = tightening.relaxation
        functions = tightening.functions_of(margins(self.network, self.claim.label, self.rivals[places]))
        fast, fast_functions = relaxation.to(torch.float32, device), functions.to(torch.float32, device)
        search = improved(fast, fast_functions, fast.branches(len(places)), steps=MARGIN_STEPS, rate=RATE)
        self.evaluations += search.evaluations
        whole = relaxation.lower(functions, as_branches(rounded(search.branches.slopes).to(CPU)), exact=True)
        self.lower[places] = np.fmax(self.lower[places], whole.lower.numpy())

        kind = torch.device(device).type
        branch_and_bound = BranchAndBound(
            relaxation=fast,
            exact=relaxation.to(torch.float64, device),
            functions=fast_functions,
            exact_functions=functions.to(torch.float64, device),
            trees=[Tree(int(rival)) for rival in self.rivals[places]],
            batch=BATCHES.get(kind, BATCHES["cuda"]),
            margins_at=self._margins_at,
        )
        spent = self.evaluations + tightening.evaluations
        branch_and_bound.run(search.branches, search.lower, search.gains, budget - spent)
        self.evaluations += branch_and_bound.evaluations
        for place, tree, lower in zip(places, branch_and_bound.trees, branch_and_bound.lower, strict=True):
            self.trees[int(place)] = tree
            if tree.complete:
                self.lower[place] = max(self.lower[place], lower)
        if branch_and_bound.counterexample is not None:
            point = branch_and_bound.counterexample.cpu().numpy().astype(np.float32)
            self.counterexample = point.reshape(self.network.graph.image_shape)
            return self._proof("branches", tightening)
        if len(self._open()):
            return self._proof("", tightening)
        split = any(len(tree.units) > 1 for tree in self.trees.values())
        return self._proof("branches" if split else "alpha", tightening)

    def _margins_at(self, pixels: Tensor) -> Tensor:
        logits = self.network.graph.logits(pixels.reshape(-1, *self.network.graph.image_shape))
        label, rivals = self.claim.label, torch.from_numpy(self.rivals)
        return logits[:, label] - logits[:, rivals.to(logits.device)].amax(1)

    def _proof(self, decided_by: str, tightening: Tightening | None) -> Proof:
        proven = decided_by not in ("", "prediction") and self.counterexample is None
        evaluations = self.evaluations + (tightening.evaluations if tightening else 0)
        parts = sum(len(tree.units) // 2 + 1 for tree in self.trees.values() if len(tree.units) > 1)
        certificate = self._certificate(tightening) if proven and tightening else None
        return Proof(proven, float(self.lower.min()), decided_by, parts, evaluations, certificate, self.counterexample)

    def _certificate(self, tightening: Tightening) -> Certificate:
        layers, places, pairs = [], [], []
        relaxation = tightening.relaxation
        # Activations that cannot be split are no units of a certificate: the checker draws their lines.
        for block, units in zip(relaxation.blocks, relaxation.slices(), strict=True):
            layers.append(np.full(len(block.places), block.layer))
            places.append(block.places)
            pairs.append(torch.stack([block.pairs.first, block.pairs.second], dim=1).numpy() + units.start)
        proofs = {}
        for number, slopes in tightening.slopes.items():
            proofs[number] = LayerProof(slopes.places, slopes.lower.T, slopes.upper.T)
        trees = []
        for place, rival in enumerate(self.rivals.tolist()):
            tree = self.trees.get(place)
            if tree is None:
                # The slopes of CROWN, and no split.
                leaf, nothing = np.array([-1]), np.zeros((1, 0), dtype=np.uint8)
                trees.append(TreeProof(rival, leaf, leaf, nothing, np.zeros(0, dtype=np.float32)))
                continue
            leaves = [tree.leaves[node] for node in sorted(tree.leaves)]
            leaf_slopes = np.stack([leaf.slopes for leaf in leaves])
            multipliers = np.concatenate([leaf.multipliers for leaf in leaves])
            trees.append(TreeProof(rival, np.array(tree.units), np.array(tree.children), leaf_slopes, multipliers))
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
