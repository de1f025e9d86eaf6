"""Digital corruptions: contrast, elastic transform, pixelation, JPEG compression."""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gfscore.images.corruptions.parts import by_parts
from gfscore.statistics.draws import RowGenerators


@by_parts
def contrast(images: NDArray[np.float64], factor: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Shrink the deviation from each channel's mean. No random draw."""
    del rng
    mean = images.mean(axis=(2, 3), keepdims=True)
    return mean + factor * (images - mean)


@by_parts
def elastic_transform(
    images: NDArray[np.float64], parameters: tuple[float, float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Affine map by three randomly moved corners, then a smooth random displacement field (Simard et al. 2003)."""
    strength, smoothness, jitter = parameters
    return np.stack([_bent(image, strength, smoothness, jitter, own) for image, own in zip(images, rng, strict=True)])


@by_parts
def pixelate(images: NDArray[np.float64], share: float, rng: RowGenerators) -> NDArray[np.float32]:
    """Shrink to a share of the side and enlarge again, both by area. No random draw."""
    del rng
    from PIL import Image

    height, width = images.shape[2:]
    small = max(1, int(width * share)), max(1, int(height * share))

    def blocky(channel: NDArray[np.float64]) -> NDArray[np.float32]:
        shrunk = Image.fromarray(channel.astype(np.float32)).resize(small, Image.Resampling.BOX)
        return np.asarray(shrunk.resize((width, height), Image.Resampling.BOX))

    return np.stack([[blocky(channel) for channel in image] for image in images])


@by_parts
def jpeg_compression(images: NDArray[np.float64], quality: int, rng: RowGenerators) -> NDArray[np.float64]:
    """Store as JPEG and read back; images of one or three channels as they are, others channel by channel."""
    del rng
    return np.stack([_stored(image, quality) for image in images])


def _stored(image, quality):
    if len(image) == 3:
        return np.moveaxis(_jpeg(np.moveaxis(image, 0, -1), quality), -1, 0)
    return np.stack([_jpeg(channel, quality) for channel in image])


def _jpeg(pixels, quality):
    from PIL import Image

    file = BytesIO()
    Image.fromarray(np.rint(255 * pixels).astype(np.uint8)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)) / 255


def _bent(image, strength, smoothness, jitter, rng):
    _, height, width = image.shape
    centre, arm = np.array([height // 2, width // 2], dtype=float), min(height, width) // 3
    corners = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = corners + rng.uniform(-jitter, jitter, corners.shape)
    # The map gives the source position of each pixel of the result: from the moved corners to the original ones.
    affine = np.linalg.solve(np.column_stack([moved, np.ones(3)]), corners)
    grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1).astype(float)
    source = grid @ affine[:2] + affine[2]
    field = rng.uniform(-1, 1, (2, height, width))
    if smoothness > 0:
        field = ndimage.gaussian_filter(field, (0, smoothness, smoothness), mode="reflect", truncate=3)
    bent = [ndimage.map_coordinates(channel, np.moveaxis(source, -1, 0), order=1, mode="mirror") for channel in image]
    places = np.moveaxis(grid, -1, 0) + strength * field
    return np.stack([ndimage.map_coordinates(channel, places, order=1, mode="reflect") for channel in bent])
