"""Throughput of the extraction of logits beside the least work that it consists of, on one thread of arithmetic.

Arrays are compared with a bare loop of forward passes over the same images, by processor time. Encoded images are
compared with the slower of decoding alone and forward passes alone, by the clock, since the two should overlap: once
with a network on the processor, once with a stand-in for a device that computes elsewhere, which takes exactly as long
as decoding does.
"""

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from timing import in_turns, median_ratio, row, turns
from torch import nn

from gfscore.images.datasets import open_images
from gfscore.images.image_set import from_arrays
from gfscore.networks.architectures import build_network
from gfscore.networks.inference import extract_logits
from gfscore.networks.precision import reproducible_arithmetic

BATCH = 256
ENCODED_BATCH = {"elsewhere": 64, "here": 4}
"""Encoded images in a pass of a device elsewhere, few for one, and of the network on the processor."""
WANTED = 0.95
PER_CLASS = 4096
"""Encoded images of each of two classes, so many that the first and last pass do not count, which overlap nothing."""
DISTINCT = 128
"""Different ones among them, as long as encoding takes; the others are links to these."""
FEW = 16
"""One in so many is given to the network on the processor: still so many that eight computed again do not count."""

NETWORKS = {
    "small convnet, 1x8x8": ("small_convnet", (1, 8, 8), {}, 640),
    "residual network, 3x32x32": ("residual_network", (3, 32, 32), {"width": 16, "blocks": 1}, 8),
}
"""Name -> architecture, shape, arguments, batches per run: so many that eight images computed again do not count."""


def network_of(name):
    """One of NETWORKS in eval mode, the shape of its images, and how many batches it is given."""
    architecture, shape, arguments, batches = NETWORKS[name]
    network = build_network(architecture, in_channels=shape[0], image_size=shape[1:], classes=10, **arguments)
    return network.eval(), shape, batches


def of_arrays(name):
    """Extraction from images in memory."""
    network, shape, batches = network_of(name)
    pixels = np.random.default_rng(0).random((batches * BATCH, *shape), dtype=np.float32)
    labels = np.arange(len(pixels)) % 10
    images = from_arrays(pixels, labels, sample_id=np.arange(len(pixels)), preprocessing="")

    def bare():
        with reproducible_arithmetic(), torch.inference_mode():
            starts = range(0, len(pixels), BATCH)
            return torch.cat([network(torch.from_numpy(pixels[start : start + BATCH])) for start in starts]).numpy()

    times = turns({"bare": bare, "ours": partial(extracted, network, images, BATCH)}, repeats=9)
    ratio, error = median_ratio([turn["bare"] / turn["ours"] for turn in times])
    return row(
        f"logits of arrays, {name}",
        ratio,
        f"{len(pixels):,} images; standard error {error:.3f}",
        target=WANTED,
        unit="of the bare loop's throughput",
    )


def extracted(network, images, batch_size):
    """Logits by the workflow's function."""
    return extract_logits(network, images, batch_size=batch_size, device="cpu")[2]


class Elsewhere(nn.Module):
    """Stand-in for a device: takes so many seconds per image and no time of the processor."""

    def __init__(self, seconds):
        """Keep the seconds per image."""
        super().__init__()
        self.seconds = seconds

    def forward(self, images):
        """Two logits of each image."""
        time.sleep(self.seconds * len(images))
        return images[:, :2, 0, 0]


def of_encoded(suffix):
    """Extraction from a folder of encoded images."""
    with tempfile.TemporaryDirectory() as name:
        write_images(Path(name), suffix)
        preprocessing = {"method": "center_crop", "resize": 256, "size": 224, "interpolation": "bilinear"}
        settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": preprocessing}
        images = open_images(settings, name, classes=["a", "b"])

        batch = ENCODED_BATCH["elsewhere"]
        decoding = {"decoding": partial(decode, images, batch)}
        seconds = in_turns(decoding, repeats=3, clock=time.perf_counter)["decoding"] / len(images)
        yield overlap(suffix, images, Elsewhere(seconds), "a device elsewhere", batch=batch)
        network = build_network("residual_network", in_channels=3, image_size=(224, 224), classes=2, width=16, blocks=1)
        few = images.select(np.arange(0, len(images), FEW))
        yield overlap(suffix, few, network.eval(), "a residual network", batch=ENCODED_BATCH["here"])


def decode(images, batch):
    """Decode all images, so many at a time."""
    for _ in images.batches(batch):
        pass


def overlap(suffix, images, network, words, *, batch):
    """Extraction beside the slower of decoding and of forward passes over decoded images."""
    pixels = torch.from_numpy(next(images.batches(batch)))

    def forward():
        with reproducible_arithmetic(), torch.inference_mode():
            for _ in range(len(images) // batch):
                network(pixels)

    functions = {
        "decoding": partial(decode, images, batch),
        "forward": forward,
        "ours": partial(extracted, network, images, batch),
    }
    times = turns(functions, repeats=7, clock=time.perf_counter)
    ratio, error = median_ratio([max(turn["decoding"], turn["forward"]) / turn["ours"] for turn in times])
    return row(
        f"logits of encoded images, {suffix}, {words}",
        ratio,
        f"{len(images)} images of 256x256, cropped to 224x224; standard error {error:.3f}",
        target=WANTED,
        unit="of the slower part's throughput",
    )


def write_images(folder, suffix):
    """Two class folders of smooth random images, 256x256."""
    rng = np.random.default_rng(0)
    for label in "ab":
        (folder / label).mkdir()
        for number in range(PER_CLASS):
            path, first = (folder / label / f"{each:04d}.{suffix}" for each in (number, number % DISTINCT))
            if number < DISTINCT:
                coarse = Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
                coarse.resize((256, 256), Image.Resampling.BICUBIC).save(path)
            else:
                path.hardlink_to(first)


def rows():
    """Every comparison of this module."""
    for name in NETWORKS:
        yield of_arrays(name)
    for suffix in ("png", "jpeg"):
        yield from of_encoded(suffix)
