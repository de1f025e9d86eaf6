"""Images in an .npz file with arrays x and y."""

from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource


class Npz(DatasetSettings):
    """Images in an .npz file."""

    source: Literal["npz"] = "npz"
    path: Text = Field(description="File with arrays x and y.")
    value_range: Literal[1, 255] | None = Field(
        None, description="Pixel value of white; null for 255 if pixels are uint8, else 1."
    )
    channels: Literal["first", "last", "none"] | None = Field(
        None,
        description="Axis of the colour channels: first (N, C, H, W), last (N, H, W, C), none (N, H, W); null if the "
        "shape of x is unambiguous.",
    )


SOURCE = DatasetSource(name="npz", settings=Npz, claims=path_ends(".npz"))


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images x and labels y of an .npz file.

    `settings`: `value_range` (1 or 255, the pixel value of white; None: 255 for uint8, else 1) and `channels` ("first"
    for (N, C, H, W), "last" for (N, H, W, C), "none" for grey (N, H, W); None: the one of the two axes that has length
    1 or 3). Pixels are divided by `value_range`. Raises InputError, naming the file and the remedy, for a missing,
    truncated or damaged file, a missing array, pickled objects, different numbers of labels and images, pixels that are
    not finite or out of range, and labels that are not whole numbers.
    """
    import numpy as np

    from gfscore.images.arrays import channels_first, channels_of, require_pixels, whole_labels
    from gfscore.images.image_set import from_arrays

    x, y = _read(path)
    images = channels_first(x, settings["channels"] or channels_of(x, path), path)
    scale = settings["value_range"] or (255 if x.dtype == np.uint8 else 1)
    require_pixels(images, scale, path)
    return from_arrays(
        # In float32 throughout, since float64 would need eight times the memory of uint8 pixels.
        images.astype(np.float32) / np.float32(scale),
        whole_labels(y, len(images), f"{path}: y"),
        sample_id=[f"{settings['source']}-{row:06d}" for row in range(len(images))],
        preprocessing=f"pixels divided by {scale}",
    )


def _read(path):
    from gfscore.tables.numpy_files import opened, whole_array

    try:
        with opened(path) as file:
            missing = [key for key in ("x", "y") if key not in file.files]
            if missing:
                raise InputError(
                    f"{path}: no array {' and '.join(missing)}, only {', '.join(file.files) or 'nothing'}; "
                    "save it with numpy.savez(path, x=images, y=labels)"
                )
            return whole_array(file, "x"), whole_array(file, "y")
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset in config.yaml") from error
    # A .npy file is no context manager, and damaged files raise errors of many types.
    except Exception as error:
        again = "copy or download it again, or save it again with numpy.savez(path, x=images, y=labels)"
        remedy = getattr(error, "remedy", again)
        raise InputError(f"{path}: not a whole .npz file without pickled objects ({error}); {remedy}") from error
