"""Pictures as text: PNG files in data: addresses."""

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

ADDRESS = "data:image/png;base64,"


def encoded(picture: NDArray[np.uint8]) -> str:
    """A picture (channels, H, W) uint8 of one or three channels as a PNG file in a data: address."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.moveaxis(picture, 0, -1).squeeze())).save(file, "PNG")
    return f"{ADDRESS}{base64.b64encode(file.getvalue()).decode()}"


def decoded(address: str) -> NDArray[np.uint8]:
    """Pixels (H, W) or (H, W, 3) uint8 of such an address."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.removeprefix(ADDRESS)))))
