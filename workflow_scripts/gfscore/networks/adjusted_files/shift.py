"""What offsets of classes add to the outputs of a network, and what a written network consists of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.model_source import Settings


@dataclass(frozen=True)
class AdjustedFiles:
    """A network with offsets, as it was written.

    Attributes
    ----------
    settings : mapping
        Its entry: that of the original with another path, and with what else differs.
    method : str
        Where the offsets are, in words.
    code : Path or None
        The Python file that defines its architecture; None where that of the original does.
    """

    settings: Settings
    method: str
    code: Path | None = None


def output_shift(
    offsets: NDArray[np.float64], settings: Settings, *, columns: int, where: object
) -> NDArray[np.float64]:
    """What is added to each output of a network.

    Parameters
    ----------
    offsets : ndarray of shape (K,)
        What is added to the logits of the classes of the data.
    settings : mapping
        The model's entry, of which `outputs` are those that are classes of the data.
    columns : int
        Number of outputs of the network. A single output z stands for the logits (0, z).
    where : object
        File of the network, for messages.

    Returns
    -------
    ndarray of shape (columns,), float64
        0 for an output that is no class of the data; for a single output the difference of both offsets.

    Raises
    ------
    InputError
        Where the offsets are not as many as the classes.
    """
    logits = max(columns, 2)
    outputs = settings.get("outputs") or list(range(logits))
    if len(offsets) != len(outputs) or max(outputs) >= logits:
        raise InputError(
            f"{where}: gives {len(outputs)} classes, but the offsets are of {len(offsets)}; choose them for this model "
            "and these data"
        )
    shift = np.zeros(logits)
    shift[outputs] = offsets
    if columns == 1:
        return shift[1:] - shift[:1]
    return shift
