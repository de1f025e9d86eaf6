"""Images and labels in arrays: an .npz file, or a folder of .npy files."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

IMAGE, LABEL = "x", "y"
"""Names of the arrays where the entry names none."""


class Npz(DatasetSettings):
    """Images and labels in arrays."""

    source: Literal["npz"] = "npz"
    path: Text = Field(description="File .npz with the arrays, or folder with a file .npy for each.")
    image: Text | None = Field(None, description="Name of the array of images; null for x.")
    label: Text | None = Field(None, description="Name of the array of labels; null for y.")
    value_range: Literal[1, 255, "signed"] | None = Field(
        None,
        description="Pixel value of white where black is 0; signed for -1 to 1; null for 255 if pixels are uint8, "
        "else 1.",
    )
    channels: Literal["first", "last", "none"] | None = Field(
        None,
        description="Axis of the colour channels: first (N, C, H, W), last (N, H, W, C), none (N, H, W); null if the "
        "shape of x is unambiguous.",
    )

    absent: ClassVar[frozenset[str]] = DatasetSettings.absent | {"image", "label"}


SOURCE = DatasetSource(name="npz", settings=Npz, claims=path_ends(".npz"))


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images and labels of two arrays of an .npz file, or of a folder of .npy files.

    `settings`: the names `image` and `label` of the arrays (None: x and y); `value_range` (1 or 255, the pixel value
    of white, or "signed" for pixels from -1 to 1; None: 255 for uint8, else 1) and `channels` ("first" for (N, C, H,
    W), "last" for (N, H, W, C), "none" for grey (N, H, W); None: the one of the two axes that has length 1 or 3).
    Pixels are brought to [0, 1]. Labels are (N,), (N, 1) or one-hot (N, K); text counts as numbers where it is "0",
    "1", ..., else as names, whose order is that of `classes` or of the alphabet. Raises InputError, naming the file and
    the remedy, for a missing, truncated or damaged file, a missing array, pickled objects, different numbers of labels
    and images, pixels that are not finite or out of range, and labels of another kind.
    """
    import numpy as np

    from gfscore.core.labels import class_indices
    from gfscore.images.array_files import (
        SIGNED,
        channels_first,
        channels_of,
        plain_labels,
        read_array,
        require_pixels,
        whole_labels,
    )
    from gfscore.images.image_set import from_arrays

    image, label = settings.get("image") or IMAGE, settings.get("label") or LABEL
    x, y = read_array(path, image), read_array(path, label)
    images = channels_first(x, settings["channels"] or channels_of(x, path), path)
    scale = settings["value_range"] or (255 if x.dtype == np.uint8 else 1)
    require_pixels(images, scale, path)
    # In float32 throughout, since float64 would need eight times the memory of uint8 pixels.
    pixels = images.astype(np.float32)
    pixels = (pixels + np.float32(1)) / np.float32(2) if scale == SIGNED else pixels / np.float32(scale)

    where = f"{path}: {label}"
    labels, class_names = plain_labels(y, len(images), where), None
    if labels.ndim == 1 and labels.dtype.kind == "U":
        class_names = settings.get("classes") or sorted({*labels.tolist()})
        labels = class_indices(labels, class_names, where)
    return replace(
        from_arrays(
            pixels,
            whole_labels(labels, len(images), where),
            sample_id=[f"{settings['source']}-{row:06d}" for row in range(len(images))],
            preprocessing="pixels from -1 to 1" if scale == SIGNED else f"pixels divided by {scale}",
        ),
        class_names=class_names and tuple(class_names),
    )
