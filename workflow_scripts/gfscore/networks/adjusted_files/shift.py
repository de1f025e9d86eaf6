"""Offsets of classes as numbers to add to the outputs of a network, and the files of a network with offsets."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.model_source import Settings


@dataclass(frozen=True)
class AdjustedFiles:
    """Files of a network with offsets.

    Attributes
    ----------
    settings : mapping
        Entry of the network: the original's with the path of the new file, and other keys where they differ.
    method : str
        Where the offsets were added, a phrase: "in the last bias, fc.bias".
    code : Path or None
        Python file with its architecture; None where the architecture is unchanged.
    """

    settings: Settings
    method: str
    code: Path | None = None


def output_shift(
    offsets: NDArray[np.float64], settings: Settings, *, columns: int, where: object
) -> NDArray[np.float64]:
    """Number to add to each output of a network.

    Parameters
    ----------
    offsets : ndarray of shape (K,)
        Numbers to add to the logits of the classes of the data.
    settings : mapping
        The model's entry. `outputs` lists the output of each class; without it output k is class k.
    columns : int
        Number of outputs of the network. A single output z stands for the logits (0, z).
    where : object
        File of the network, for messages.

    Returns
    -------
    ndarray of shape (columns,), float64
        0 for an output that is no class of the data; for a single output the second offset minus the first.

    Raises
    ------
    InputError
        Where the number of offsets is not the number of classes.
    """
    logits = max(columns, 2)
    outputs = settings.get("outputs") or list(range(logits))
    if len(offsets) != len(outputs):
        raise InputError(
            f"{where}: gives {len(outputs)} classes, but the offsets are of {len(offsets)}; choose them for this model "
            "and these data"
        )
    shift = np.zeros(logits)
    shift[outputs] = offsets
    if columns == 1:
        return shift[1:] - shift[:1]
    return shift
