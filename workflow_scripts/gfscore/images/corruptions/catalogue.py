"""Corrupted copies of images: every corruption by its name; noise and digital processing.

Random numbers are drawn from the seed in config.yaml, so the pixels differ from the published sets (which can
be evaluated as datasets); frost is a substitute, see weather.py.
"""

from collections.abc import Callable
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from gfscore.images.corruptions.blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from gfscore.images.corruptions.parameters import parameters_of
from gfscore.images.corruptions.weather import brightness, fog, frost, snow
from gfscore.statistics.draws import RowGenerators

VALUES_AT_ONCE = 1 << 18
"""Values that are corrupted together, so that they stay in the processor's cache: one image of 224 pixels and three
channels, or 85 of 32 pixels."""


def corrupt(images: NDArray[np.float32], corruption: str, severity: int, *, rng: RowGenerators) -> NDArray[np.float32]:
    """Corrupted copies of images, rounded to 256 levels as stored images are.

    Parameters
    ----------
    images : ndarray of shape (n, C, H, W), float32
        Pixels in [0, 1], n >= 1.
    corruption : str
        A key of CORRUPTIONS.
    severity : int
        From 1, mild, to 5, strong.
    rng : RowGenerators
        Random numbers of the n images; equal ones give equal copies, whatever the batch.

    Returns
    -------
    ndarray of shape (n, C, H, W), float32
        Pixels in [0, 1], multiples of 1/255.

    Raises
    ------
    InputError
        For an unknown corruption or severity, and for a defocus_blur that changes nothing in images of this size.

    References
    ----------
    Hendrycks and Dietterich 2019, "Benchmarking neural network robustness to common corruptions and perturbations".
    """
    parameters = parameters_of(corruption, severity, min(images.shape[2:]))
    transform = CORRUPTIONS[corruption]
    images_at_once = max(1, VALUES_AT_ONCE // images[0].size)

    corrupted = np.empty_like(images)
    for start in range(0, len(images), images_at_once):
        rows = slice(start, start + images_at_once)
        pixels = transform(images[rows].astype(np.float64), parameters, rng[rows])
        levels = np.rint(255 * np.clip(pixels, 0, 1))
        corrupted[rows] = levels / 255
    return corrupted


# Noise, independent for each value.


def gaussian_noise(images: NDArray[np.float64], deviation: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Add normal noise of a standard deviation."""
    return images + deviation * rng.standard_normal(images.shape)


def shot_noise(images: NDArray[np.float64], photons: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Count photons: Poisson with mean `photons` times the brightness, over `photons`."""
    return rng.poisson(images * photons) / photons


def impulse_noise(images: NDArray[np.float64], share: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Replace a share of the values by black or white, equally often."""
    replaced = rng.random(images.shape) < share
    black_or_white = rng.integers(0, 2, images.shape)
    return np.where(replaced, black_or_white, images)


# Digital processing.


def contrast(images: NDArray[np.float64], factor: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Shrink the deviation from each channel's mean. No random draw."""
    del rng
    mean = images.mean(axis=(2, 3), keepdims=True)
    return mean + factor * (images - mean)


def elastic_transform(
    images: NDArray[np.float64], parameters: tuple[float, float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Affine map by three randomly moved corners, then a smooth random displacement field.

    `parameters` are the strength and the smoothness of the displacement and the largest move of a corner, in pixels.
    Source: Simard et al. 2003.
    """
    strength, smoothness, jitter = parameters
    height, width = images.shape[2:]
    places = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    grid = np.stack(places, axis=-1).astype(float)
    centre = np.array([height // 2, width // 2], dtype=float)
    arm = min(height, width) // 3
    corners = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])

    results = []
    for image, generator in zip(images, rng, strict=True):
        moved = corners + generator.uniform(-jitter, jitter, corners.shape)
        # The map gives the source position of each pixel of the result: from the moved corners to the original ones. It
        # is a matrix (3, 2): its first two rows times a position, plus the third.
        affine = np.linalg.solve(np.column_stack([moved, np.ones(3)]), corners)
        source = grid @ affine[:2] + affine[2]
        sheared = _resampled(image, np.moveaxis(source, -1, 0), mode="mirror")

        field = generator.uniform(-1, 1, (2, height, width))
        if smoothness > 0:
            field = ndimage.gaussian_filter(field, (0, smoothness, smoothness), mode="reflect", truncate=3)
        displaced = np.moveaxis(grid, -1, 0) + strength * field
        results.append(_resampled(sheared, displaced, mode="reflect"))
    return np.stack(results)


def pixelate(images: NDArray[np.float64], share: float, rng: RowGenerators) -> NDArray[np.float32]:
    """Shrink to a share of the side and enlarge again, both by area. No random draw."""
    del rng
    number, channels, height, width = images.shape
    size = (width, height)
    small = (max(1, int(width * share)), max(1, int(height * share)))

    result = np.empty(images.shape, dtype=np.float32)
    for row in range(number):
        for channel in range(channels):
            picture = Image.fromarray(images[row, channel].astype(np.float32))
            shrunk = picture.resize(small, Image.Resampling.BOX)
            result[row, channel] = np.asarray(shrunk.resize(size, Image.Resampling.BOX))
    return result


def jpeg_compression(images: NDArray[np.float64], quality: int, rng: RowGenerators) -> NDArray[np.float64]:
    """Store as JPEG and read back; images of one or three channels as they are, others channel by channel."""
    del rng
    result = np.empty_like(images)
    for row, image in enumerate(images):
        if len(image) == 3:
            decoded = _jpeg(np.moveaxis(image, 0, -1), quality)
            result[row] = np.moveaxis(decoded, -1, 0)
        else:
            for channel, values in enumerate(image):
                result[row, channel] = _jpeg(values, quality)
    return result


CORRUPTIONS: dict[str, Callable[..., NDArray[np.floating]]] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "impulse_noise": impulse_noise,
    "defocus_blur": defocus_blur,
    "glass_blur": glass_blur,
    "motion_blur": motion_blur,
    "zoom_blur": zoom_blur,
    "snow": snow,
    "frost": frost,
    "fog": fog,
    "brightness": brightness,
    "contrast": contrast,
    "elastic_transform": elastic_transform,
    "pixelate": pixelate,
    "jpeg_compression": jpeg_compression,
}
"""Corruption -> function of images (n, C, H, W) float64 in [0, 1], the parameters of a severity, and the random numbers
of the images; it returns the corrupted images, which may leave [0, 1]."""


def _resampled(image: NDArray[np.float64], positions: NDArray[np.float64], *, mode: str) -> NDArray[np.float64]:
    # Values of an image (C, H, W) at positions (2, H, W) of rows and columns, by linear interpolation.
    channels = [ndimage.map_coordinates(channel, positions, order=1, mode=mode) for channel in image]
    return np.stack(channels)


def _jpeg(pixels: NDArray[np.float64], quality: int) -> NDArray[np.float64]:
    levels = np.rint(255 * pixels).astype(np.uint8)
    file = BytesIO()
    Image.fromarray(levels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)) / 255
