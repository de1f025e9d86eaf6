"""Corrupted copies in the format of CIFAR-10-C, made by the code that the measure corruption makes its own with."""

from zlib import crc32

import numpy as np

from gfscore.images.corruptions.catalogue import corrupt
from gfscore.statistics.draws import RowGenerators, seeds_of_samples


def write_copies(folder, pixels, labels, corruptions, *, seed=0):
    """Write <corruption>.npy, (5 N, H, W, C), and labels.npy (5 N,) of images (N, C, H, W) uint8; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    images = pixels.astype(np.float32) / np.float32(255)
    seeds = seeds_of_samples(seed, "corruption", np.arange(len(images)))
    for corruption in corruptions:
        copies = [
            corrupt(images, corruption, severity, rng=RowGenerators(seeds, crc32(corruption.encode()) * 8 + severity))
            for severity in range(1, 6)
        ]
        stored = np.rint(255 * np.concatenate(copies)).astype(np.uint8)
        np.save(folder / f"{corruption}.npy", stored.transpose(0, 2, 3, 1))
    np.save(folder / "labels.npy", np.tile(labels, 5))
    return folder
