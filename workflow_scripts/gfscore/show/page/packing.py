"""Arrays inside a page: base64 of little-endian float64, so that the page computes with the numbers of the tables."""

import base64
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def packed(array: ArrayLike) -> dict[str, Any]:
    """Array of numbers as a mapping of its shape and base64 text, NaN included; page/data.js unpacks it."""
    array = np.asarray(array, dtype="<f8")
    return {"shape": list(array.shape), "f64": base64.b64encode(array.tobytes()).decode("ascii")}


def finite(value: Any) -> float | None:
    """A number as Python's float, None for one that is missing or infinite."""
    return None if value is None or not np.isfinite(value) else float(value)


def plain(value: Any) -> Any:
    """Value for JSON: numpy scalars as Python's, what is not finite as None, lists item by item."""
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
