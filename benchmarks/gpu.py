"""Extraction of logits on a GPU beside the paper's plain loop and beside the device's own products of matrices.

Times are by the clock, since the device works meanwhile; every function ends with its logits in memory, so that nothing
is still under way. Where torch finds no CUDA device there are no rows.
"""

import time
from functools import partial
from importlib import import_module

import numpy as np
import torch
from timing import row
from torch.utils.flop_counter import FlopCounterMode

from gfscore.images.image_set import from_arrays
from gfscore.networks.compatibility import import_robustbench, import_torchvision
from gfscore.networks.inference import extract_logits, reproducible_arithmetic
from gfscore.networks.precision import tensor_float

PRECISIONS = ("float32", "tf32", "bfloat16")

PLAIN_BATCH = 128
"""Images per batch of the paper's loop."""

MATRIX = 8192
"""Side of the square matrices whose product shows what the device can do."""


def _wide_resnet(depth, width):
    import_robustbench()
    module = import_module("robustbench.model_zoo.architectures.wide_resnet")
    return module.WideResNet(depth=depth, widen_factor=width)


def _of_torchvision(name):
    return getattr(import_torchvision().models, name)()


NETWORKS = {
    "WideResNet-28-10, 3x32x32": (partial(_wide_resnet, 28, 10), (3, 32, 32), 10_240),
    "WideResNet-70-16, 3x32x32": (partial(_wide_resnet, 70, 16), (3, 32, 32), 2_048),
    "ResNet-50, 3x224x224": (partial(_of_torchvision, "resnet50"), (3, 224, 224), 2_048),
    "WideResNet-50-2, 3x224x224": (partial(_of_torchvision, "wide_resnet50_2"), (3, 224, 224), 2_048),
}
"""Name -> function that builds it, shape of the images, how many."""


def plain(network, pixels, device):
    """Logits as the paper computes them: batches of float32 arrays, moved to the device and back one by one."""
    with torch.no_grad():
        starts = range(0, len(pixels), PLAIN_BATCH)
        batches = (torch.from_numpy(pixels[start : start + PLAIN_BATCH]).to(device) for start in starts)
        return np.concatenate([network(batch).cpu().numpy() for batch in batches])


def operations_per_image(network, image):
    """Floating-point operations of one forward pass, a product and a sum counted as two."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(image[None])
    return counter.get_total_flops()


def products_per_second(precision, device, *, side=MATRIX):
    """Floating-point operations per second of a product of square matrices in a precision."""
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    left, right = (torch.rand(side, side, device=device, dtype=kind) for _ in range(2))

    def multiply():
        # Read back, so that the product is finished.
        return float((left @ right)[0, 0])

    with tensor_float(precision == "tf32"):
        return 2 * side**3 / by_the_clock(multiply)


def by_the_clock(function, repeats=3):
    """Least seconds that a function takes, after one call that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name, build, shape, count, *, device, precisions=PRECISIONS, side=MATRIX):
    """Rows on one network: in each precision images per second beside the plain loop, and beside the ceiling."""
    network = build().eval().to(device)
    pixels = np.random.default_rng(0).random((count, *shape), dtype=np.float32)
    images = from_arrays(pixels, np.zeros(count, dtype=np.int64), sample_id=np.arange(count), preprocessing="")
    # The first use of the GPU too: what it reads then holds for all that follows.
    with reproducible_arithmetic():
        work = operations_per_image(network, torch.from_numpy(pixels[0]).to(device))
        slow = count / by_the_clock(partial(plain, network, pixels, device))
    for precision in precisions:
        how = {"device": device, "precision": precision}
        fast = count / by_the_clock(partial(extract_logits, network, images, **how))
        ceiling = products_per_second(precision, device, side=side) / work
        yield row(
            f"logits on a GPU, {name}, {precision}",
            fast / slow,
            f"{count:,} images, {fast:,.0f} per second; plain loop in float32 {slow:,.0f}",
            target=1,
            unit="of the plain loop's throughput",
        )
        yield row(
            f"logits on a GPU, {name}, {precision}, beside products of matrices",
            fast / ceiling,
            f"{work / 1e9:.2f} GFLOP per image; a product of {side} x {side} matrices is worth {ceiling:,.0f} images "
            "per second",
            unit="of the ceiling",
        )


def rows():
    """Every network, where there is a GPU."""
    if torch.cuda.is_available():
        for name, (build, shape, count) in NETWORKS.items():
            yield from compare(name, build, shape, count, device="cuda")
