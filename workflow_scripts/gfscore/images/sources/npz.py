"""Images in an .npz file with arrays x and y: a user's own data, or samples of a user's own generator."""

import numpy as np

from gfscore.core.errors import InputError
from gfscore.images.arrays import channels_first, require_pixels, whole_labels
from gfscore.images.image_set import from_arrays
from gfscore.tables.numpy_files import opened, whole_array

SETTINGS = {
    "path": {"description": "File with arrays x and y.", "type": "string", "minLength": 1},
    "value_range": {"description": "Pixel value of white.", "enum": [1, 255]},
    "channels": {
        "description": "Where the colour channels stand: first (N, C, H, W), last (N, H, W, C), none (N, H, W).",
        "enum": ["first", "last", "none"],
    },
}


def open_source(settings, path):
    """Images x and labels y of an .npz file.

    `settings`: `value_range` (1 or 255, the pixel value that means white) and `channels` ("first" for (N, C,
    H, W), "last" for (N, H, W, C), "none" for grey (N, H, W)). Pixels are divided by `value_range`. Raises
    InputError, naming the file and the remedy, for a missing, truncated or corrupt file, a missing array, pickled
    objects, another number of labels than images, pixels that are not finite or out of range, and labels that
    are not whole numbers.
    """
    x, y = _read(path)
    images = channels_first(x, settings["channels"], path)
    scale = settings["value_range"]
    if scale not in (1, 255):
        raise InputError(f"{path}: value_range {scale!r} is not known; choose 1 or 255")
    require_pixels(images, scale, path)
    return from_arrays(
        # In float32 throughout: x / 255 in float64 needs eight times the memory of uint8 pixels.
        images.astype(np.float32) / np.float32(scale),
        whole_labels(y, len(images), f"{path}: y"),
        sample_id=[f"{settings['source']}-{row:06d}" for row in range(len(images))],
        preprocessing=f"pixels divided by {scale}",
    )


def _read(path):
    if not path:
        raise InputError("an .npz dataset needs a path; name the file under `path` in config.yaml")
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
    # A bare .npy file, which is no context manager, and damaged ones fail inside the reader in many ways.
    except Exception as error:
        raise InputError(
            f"{path}: not a whole .npz file without pickled objects ({error}); "
            "copy or download it again, or save it anew with numpy.savez(path, x=images, y=labels)"
        ) from error
