"""Seeded samples of a user's generator of images conditional on the class."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import HALF
from gfscore.networks.classifier import first_line
from gfscore.networks.conditional_generators import Generate
from gfscore.networks.inference import reproducible_arithmetic, require_device
from gfscore.statistics.draws import Draws, seeds_of_samples

BEYOND = 0.001
"""How far outputs may lie beyond their range, as a share of it, and are clipped: rounding."""

MOST_CHANNELS = 4


def draw_images(
    generate: Generate, settings: Mapping[str, Any], *, classes: int, where: Path | str
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Images (K n, C, H, W) float32 in [0, 1] of a generator, n of each of K `classes`, and labels (K n,) int32.

    The classes take turns, and a sample's latent belongs to its row, so more samples per class begin with those of
    fewer: whole batches are drawn, and their rest is dropped. `settings` are those of the source generator_file, and
    `where` names the file in errors. Raises InputError for a generator that fails, that gives other images the second
    time, other shapes than (n, C, H, W), numbers that are not finite, or others than `output_range` says.
    """
    import torch

    require_device(settings["device"])
    count, size = classes * settings["samples_per_class"], settings["batch_size"]
    batches: list[NDArray[np.float32]] = []
    with reproducible_arithmetic(), torch.inference_mode():
        for start in range(0, count, size):
            rows = np.arange(start, start + size)
            images = _batch(generate, settings, rows, classes, where)
            if not batches and not torch.equal(images, _batch(generate, settings, rows, classes, where)):
                raise InputError(
                    f"{where}: gives other images for the same latents and classes; take the chance out of it, so that "
                    "they depend on its inputs alone"
                )
            if batches and images.shape[1:] != batches[0].shape[1:]:
                raise InputError(f"{where}: gives images of several shapes; make them all {batches[0].shape[1:]}")
            batches.append(images.cpu().numpy())
    drawn = np.concatenate(batches)[:count]
    (black, white), (low, high) = settings["output_range"], (drawn.min(), drawn.max())
    if high - low <= HALF:
        found = [black + (white - black) * end for end in (low, high)]
        raise InputError(
            f"{where}: all values lie between {found[0]:.3g} and {found[1]:.3g}, within half of output_range "
            f"{settings['output_range']}; correct that, or the generator"
        )
    return drawn, (np.arange(count) % classes).astype(np.int32)


def _batch(generate, settings, rows, classes, where):
    # Images in [0, 1] of one batch, on the device.
    import torch

    draws = Draws.of(seeds_of_samples(settings["seed"], "generator", rows), settings["device"])
    latents = getattr(draws, settings["distribution"])(settings["latent"])
    labels = torch.from_numpy(rows % classes).to(latents.device)
    if settings["class_input"] == "one_hot":
        labels = torch.nn.functional.one_hot(labels, classes).float()
    # Noise that a generator adds on its own comes from the global generators, which are seeded by the batch.
    with torch.random.fork_rng():
        torch.manual_seed(int(seeds_of_samples(settings["seed"], "noise", rows[:1])[0] >> np.uint64(1)))
        try:
            output = generate(latents, labels)
        # Code of others may fail in any way.
        except Exception as error:
            raise InputError(
                f"{where}: fails on latents {tuple(latents.shape)} and classes {tuple(labels.shape)} "
                f"({first_line(error)}); correct latent, class_input or batch_size, or the generator"
            ) from error
    return _pixels(output, settings["output_range"], rows, where)


def _pixels(output, output_range, rows, where):
    import torch

    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    fits = isinstance(output, torch.Tensor) and output.ndim == 4 and len(output) == len(rows) and output.numel() > 0
    if not fits or output.shape[1] > MOST_CHANNELS:
        raise InputError(
            f"{where}: returns {shape} for {len(rows)} latents; make it return images (n, C, H, W) with at most "
            f"{MOST_CHANNELS} channels"
        )
    low, high = output_range
    pixels = (output.float() - low) / (high - low)
    ends = torch.stack([pixels.amin(dim=(1, 2, 3)), pixels.amax(dim=(1, 2, 3))], dim=1)
    # Negated, so that NaN, for which every comparison is false, is refused too.
    wrong = (~((ends[:, 0] >= -BEYOND) & (ends[:, 1] <= 1 + BEYOND))).nonzero()
    if len(wrong):
        row = int(wrong[0])
        least, most = (low + (high - low) * ends[row]).tolist()
        raise InputError(
            f"{where}: sample {rows[row]} has values from {least:.6g} to {most:.6g}, outside output_range "
            f"{output_range}; correct that, or the generator"
        )
    return pixels.clamp(0, 1)
