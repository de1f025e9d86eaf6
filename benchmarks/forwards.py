"""Share of attacks, smoothing and sequential tests that passes through the network take, on one thread.

Each method runs once while its forward passes are noted: how many images each takes, and how often it is
differentiated. Then the method, its passes watched for NaN as in the workflow, and nothing but those passes, on as many
random images, are timed in turns. A ratio of 1 says that the rate of forward passes inside the method is the network's
own.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from timing import median_ratio, row, turns

from gfscore.attacks.ball_attacks import pgd
from gfscore.attacks.minimal_norm import fmn
from gfscore.attacks.perturbations import linf_ball
from gfscore.measures.certified import Smoothing
from gfscore.measures.certified.smoothing import certify
from gfscore.measures.probabilistic.neighbourhoods import make_boundaries, run_tests
from gfscore.networks.architectures import build_network
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import from_network
from gfscore.networks.passes import watched
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.draws import Draws, seeds_of_samples
from gfscore.statistics.error_rates import SequentialTest

WANTED = 0.9
SECONDS = 10
"""In which each method is compared with its passes, turn by turn."""


@dataclass(frozen=True)
class Case:
    """A network and what it is given: images attacked, images smoothed and tested, and their noisy copies per pass."""

    architecture: str
    shape: tuple[int, int, int]
    arguments: dict
    attacked: int
    tested: int
    drawn: int
    steps: int


NETWORKS = {
    "small convnet, 1x8x8": Case("small_convnet", (1, 8, 8), {}, attacked=256, tested=100, drawn=2048, steps=20),
    "residual network, 3x32x32": Case(
        "residual_network", (3, 32, 32), {"width": 16, "blocks": 1}, attacked=32, tested=8, drawn=32, steps=5
    ),
}
"""Name -> what is measured; the first as in the audit `digits`."""

# No image is fooled within so small a ball, so none leaves the batch.
BALL = {"norm": "linf", "eps": 1e-6}
SMOOTHING = Smoothing(sigma=0.25, selection_samples=20, estimation_samples=500, alpha=0.001)
TEST = SequentialTest(kappa=0.01, alpha=0.05, budget=1000, name="anytime")


def methods(network, images, case):
    """Name -> function without arguments, all on images (n, C, H, W) that the network classifies as labelled."""
    base = BatchedClassifier(from_network(network), batch_size=case.drawn)
    images, few = images[: case.attacked], images[: case.tested]
    draws = Draws.of(seeds_of_samples(0, "forwards", range(case.attacked)), "cpu")
    with torch.no_grad():
        labels = network(images).argmax(1)
    to_test = {"boundaries": make_boundaries(TEST), "perturbation": linf_ball(eps=0.03)}
    to_test |= {"reference": "prediction", "draws": draws[: case.tested]}
    ascent = {"ball": BALL, "draws": draws, "steps": case.steps, "step_size": 1e-7, "restarts": 1}
    return {
        "PGD": partial(pgd, network, images, labels, **ascent),
        "FMN": partial(fmn, network, images, labels, norm="l2", largest_distance=10.0, steps=case.steps),
        "smoothing": partial(certify, base, few, smoothing=SMOOTHING, noise=draws[: case.tested]),
        "sequential test": partial(run_tests, base, few, labels[: case.tested], **to_test),
    }


def as_in_workflow(network, run):
    """One run of a method whose every pass is watched for NaN."""
    with watched(from_network(network)):
        run()


@contextmanager
def noted(network):
    """List of the passes through a network: [images, whether a graph was kept, how often it was differentiated]."""
    passes, differentiate = [], torch.autograd.grad

    def forward(_module, given, _output):
        passes.append([len(given[0]), given[0].requires_grad and torch.is_grad_enabled(), 0])

    def counted(*arguments, **options):
        passes[-1][2] += 1
        return differentiate(*arguments, **options)

    hook, torch.autograd.grad = network.register_forward_hook(forward), counted
    try:
        yield passes
    finally:
        torch.autograd.grad = differentiate
        hook.remove()


def bare(network, passes, images):
    """The same passes and nothing else."""
    for count, kept, differentiated in passes:
        with torch.set_grad_enabled(kept):
            points = images[:count].detach().requires_grad_(kept)
            logits = network(points)
            for number in range(differentiated):
                torch.autograd.grad(logits[:, 0].sum(), points, retain_graph=number + 1 < differentiated)


def rows():
    """Every method on every network."""
    for name, case in NETWORKS.items():
        channels, *size = case.shape
        network = build_network(case.architecture, in_channels=channels, image_size=size, classes=10, **case.arguments)
        images = torch.rand(case.drawn, *case.shape, generator=torch.Generator().manual_seed(0))
        with reproducible_arithmetic():
            for method, run in methods(network.eval(), images, case).items():
                with noted(network) as passes:
                    run()
                both = {"bare": partial(bare, network, passes, images), "method": partial(as_in_workflow, network, run)}
                times = turns(both, seconds=SECONDS)
                ratio, error = median_ratio([turn["bare"] / turn["method"] for turn in times])
                sizes = [images for images, _, _ in passes]
                yield row(
                    f"forward passes inside {method}, {name}",
                    ratio,
                    f"{sum(sizes):,} images in {len(passes)} passes of up to {max(sizes)}; standard error {error:.3f}",
                    target=WANTED,
                    unit="of the bare rate",
                )
