"""Search of fairness boundaries side by side with the nested loops of the paper's Algorithm 1, at equal results."""

import time

import numpy as np
import torch

from gfscore.networks.architectures import build_network
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.projection.boundaries import search_boundaries

TARGET = 20
STEPS, DIMENSIONS, SAMPLES = 20, 8, 100
LOOPED = {0: 10, 6: 2}
"""Halvings of the last step -> samples that the loops do: with 6, as in the audit `digits`, 64 times as many steps."""
BATCH = 1024
"""Images at a time, as the audit `digits` has it."""


def nested_loops(decode, classify, latents, sigma, steps):
    """Algorithm 1 with m = M tried too: for each sample, dimension and direction, one image after the other."""
    moves = np.ones((2, *latents.shape))
    for side, sign in enumerate((1, -1)):
        for row, code in enumerate(latents):
            reference = classify(decode(code[None]))[0]
            for d in range(len(code)):
                for m in range(1, steps + 1):
                    moved = code.copy()
                    moved[d] = code[d] + sign * sigma[d] * m / steps
                    if classify(decode(moved[None]))[0] != reference:
                        moves[side, row, d] = m / steps
                        break
    return moves


def linear_decoder():
    """Decoder from codes (b, D) to 8x8 images, a torch function."""
    weights = torch.from_numpy(np.random.default_rng(0).normal(size=(DIMENSIONS, 64)).astype(np.float32))
    return lambda codes: torch.sigmoid(torch.from_numpy(codes.astype(np.float32)) @ weights)


def linear_classifier():
    """Ten classes by one linear layer: next to no arithmetic, so that the search itself is compared."""
    weights = torch.from_numpy(np.random.default_rng(2).normal(size=(64, 10)).astype(np.float32))
    return lambda images: (images @ weights).argmax(dim=1).numpy()


def convolutional_classifier():
    """The digits' small convolutional network, untrained: its own arithmetic, which no search can save, dominates."""
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=10, width=16, pool=4).eval()
    with torch.inference_mode():
        # Untrained logits hardly differ: centred on a grey image, they spread over the classes.
        grey = network(torch.full((1, 1, 8, 8), 0.5))

    def classify(images):
        with torch.inference_mode():
            return (network(images.reshape(-1, 1, 8, 8)) - grey).argmax(dim=1).numpy()

    return classify


def boundary_search(classifier, bisections):
    """Boundaries of 100 samples along 8 dimensions in 20 steps to either side; the loops do the first samples only.

    `classifier` is "linear" or "convolutional". `bisections` halve the step in which the prediction changed; the loops,
    which know no bisection, take steps as small from the start.
    """
    decode = linear_decoder()
    classify = {"linear": linear_classifier, "convolutional": convolutional_classifier}[classifier]()
    latents = np.random.default_rng(1).normal(size=(SAMPLES, DIMENSIONS))
    sigma, times = np.ones(DIMENSIONS), []
    looped, fine = LOOPED[bisections], STEPS * 2**bisections
    # One thread, as the workflow takes for networks so small.
    with reproducible_arithmetic():
        start = time.process_time()
        expected = nested_loops(decode, classify, latents[:looped], sigma, fine)
        slow = (time.process_time() - start) * SAMPLES / looped
        settings = {"steps": STEPS, "bisections": bisections, "batch_size": BATCH}
        for _ in range(5):
            start = time.process_time()
            found = search_boundaries(decode, classify, latents, sigma, **settings)
            times.append(time.process_time() - start)
    np.testing.assert_allclose(np.stack([found.up, found.down])[:, :looped], expected, atol=1e-12)
    fast = float(np.median(times))
    censored = np.mean([found.up_censored, found.down_censored])
    return {
        "name": f"fairness boundaries exact to 1/{fine} sigma, {classifier} classifier",
        "ratio": slow / fast,
        "target": TARGET,
        "unit": "times as fast as the baseline",
        "detail": f"{SAMPLES} samples x {DIMENSIONS} dimensions x {STEPS} steps to either side, {bisections} halvings, "
        f"{censored:.0%} unchanged; ours {1e3 * fast:.0f} ms for {found.evaluations:,} images; loops of {fine:,} steps "
        f"over {looped} samples scaled to {slow:.1f} s",
    }


def rows():
    """Both classifiers, on the grid of the paper's loops and at the audit's resolution."""
    return (boundary_search(name, halvings) for halvings in LOOPED for name in ("linear", "convolutional"))
