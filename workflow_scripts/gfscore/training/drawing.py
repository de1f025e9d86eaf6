"""Seeded samples of a user's generator of images conditional on the class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module, functional

from gfscore.core.errors import InputError
from gfscore.core.settings import PlainSettings
from gfscore.images.sources.generator_file import NetworkGenerator
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.checkpoint_files import prepare_checkpoint
from gfscore.networks.conditional_generators import open_generator
from gfscore.networks.devices import hold_device
from gfscore.networks.outputs import first_line
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.draws import Draws, seeds_of_samples

RANGE_TOLERANCE = 0.001
"""Share of output_range by which outputs may exceed it through rounding; they are clipped."""

LEAST_RANGE_USED = 0.5
"""Share of output_range; the images of a correct generator span more than this."""

MOST_CHANNELS = 4


def draw(
    settings: PlainSettings, *, dataset: str, classes: Sequence[str], path_to_train: None
) -> tuple[NDArray[np.float32], NDArray[np.int32], dict[str, object]]:
    """Labelled images of a generator's file, and their manifest: on the CPU the same at every run.

    Parameters
    ----------
    settings : mapping
        Settings of the source generator_file (NetworkGenerator), with the path of the generator.
    dataset : str
        Name of the drawn dataset.
    classes : sequence of str
        The K class names.
    path_to_train : None
        Not used.

    Returns
    -------
    images : ndarray of shape (K n, C, H, W), float32
    labels : ndarray of shape (K n,), int32
    manifest : dict
        The dataset, and digests of the generator.

    Raises
    ------
    InputError
        Naming the file, when it is missing, has another digest, or cannot be used.
    """
    del path_to_train
    path = settings["path"]
    sha256 = prepare_checkpoint(path, sha256=settings["sha256"])
    generator = NetworkGenerator.model_validate(settings)
    images, labels = draw_images(open_generator(settings, path), generator, classes=len(classes), where=path)
    described = {"path": path, "sha256": sha256, **describe_network(settings["architecture"] or "")}
    return images, labels, {"dataset": dataset, "classes": classes, "generator": described}


def draw_images(
    generator: Module, settings: NetworkGenerator, *, classes: int, where: Path | str
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Labelled images of a generator.

    Row i has class i % K and a latent seeded by i. Batches are always full and the surplus is dropped, so that a larger
    samples_per_class begins with the images of a smaller one.

    Parameters
    ----------
    generator : Module
        From latents and classes to images.
    settings : NetworkGenerator
        Settings of the source generator_file.
    classes : int
        Number of classes K.
    where : path or str
        File that errors name.

    Returns
    -------
    images : ndarray of shape (K n, C, H, W), float32
        In [0, 1], n of each class.
    labels : ndarray of shape (K n,), int32

    Raises
    ------
    InputError
        For a generator that fails, that gives different images the second time, other shapes than (n, C, H, W), numbers
        that are not finite, or others than `output_range` says.
    """
    hold_device(settings.device)
    count = classes * settings.samples_per_class
    batches: list[NDArray[np.float32]] = []
    with reproducible_arithmetic(), torch.inference_mode():
        for start in range(0, count, settings.batch_size):
            rows = np.arange(start, start + settings.batch_size)
            images = _draw_batch(generator, settings, rows, classes, where)
            if not batches and not torch.equal(images, _draw_batch(generator, settings, rows, classes, where)):
                raise InputError(
                    f"{where}: gives other images for the same latents and classes; take the chance out of it, so that "
                    "they depend on its inputs alone"
                )
            if batches and images.shape[1:] != batches[0].shape[1:]:
                raise InputError(f"{where}: gives images of several shapes; make them all {batches[0].shape[1:]}")
            batches.append(images.cpu().numpy())
    drawn = np.concatenate(batches)[:count]

    low = drawn.min()
    high = drawn.max()
    if high - low <= LEAST_RANGE_USED:
        black, white = settings.output_range
        lowest = black + (white - black) * low
        highest = black + (white - black) * high
        raise InputError(
            f"{where}: all values lie between {lowest:.3g} and {highest:.3g}, within half of output_range "
            f"{settings.output_range}; correct that, or the generator"
        )
    return drawn, (np.arange(count) % classes).astype(np.int32)


def _draw_batch(
    generator: Module, settings: NetworkGenerator, rows: NDArray[np.int64], classes: int, where: Path | str
) -> Tensor:
    # Images in [0, 1], on the device.
    draws = Draws.of(seeds_of_samples(settings.seed, "generator", rows), settings.device)
    draw = draws.normal if settings.distribution == "normal" else draws.uniform
    latents = draw(settings.latent)
    labels = torch.from_numpy(rows % classes).to(latents.device)
    if settings.class_input == "one_hot":
        labels = functional.one_hot(labels, classes).float()
    # Noise that a generator adds on its own comes from the global generators, which are seeded by the batch.
    noise_seed = seeds_of_samples(settings.seed, "noise", rows[:1])[0] >> np.uint64(1)
    with torch.random.fork_rng():
        torch.manual_seed(int(noise_seed))
        try:
            output = generator(latents, labels)
        # Code of others may fail in any way.
        except Exception as error:
            raise InputError(
                f"{where}: fails on latents {tuple(latents.shape)} and classes {tuple(labels.shape)} "
                f"({first_line(error)}); correct latent, class_input or batch_size, or the generator"
            ) from error
    return _unit_range(output, settings.output_range, rows, where)


def _unit_range(output: object, output_range: list[float], rows: NDArray[np.int64], where: Path | str) -> Tensor:
    # Output of a generator brought to [0, 1].
    if not isinstance(output, Tensor):
        raise _wrong_output(type(output).__name__, len(rows), where)
    if output.ndim != 4 or len(output) != len(rows) or output.numel() == 0 or output.shape[1] > MOST_CHANNELS:
        raise _wrong_output(str(tuple(output.shape)), len(rows), where)

    black, white = output_range
    values = output.float()
    low = values.amin(dim=(1, 2, 3))
    high = values.amax(dim=(1, 2, 3))
    tolerance = RANGE_TOLERANCE * (white - black)
    # Negated, so that NaN, for which every comparison is false, is refused too.
    wrong = (~((low >= black - tolerance) & (high <= white + tolerance))).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{where}: sample {rows[row]} has values from {float(low[row]):.6g} to {float(high[row]):.6g}, outside "
            f"output_range {output_range}; correct that, or the generator"
        )
    return ((values - black) / (white - black)).clamp(0, 1)


def _wrong_output(form: str, latents: int, where: Path | str) -> InputError:
    return InputError(
        f"{where}: returns {form} for {latents} latents; make it return images (n, C, H, W) with at most "
        f"{MOST_CHANNELS} channels"
    )
