"""Labels of samples as users write them: numbers of classes, or the names for which numbers are asked."""

import numpy as np

WHOLE = "give whole numbers 0..K-1, which count the classes in the order of `classes`"
"""Remedy for labels that are no numbers of classes."""

SHOWN = 80
"""Characters of a label that an error shows."""


def not_whole(labels):
    """What keeps labels (N,) from being whole numbers, in words that name the first such row, with the remedy, or None.

    Names of classes are not taken for their numbers: a class may be called 1 and be the third.
    """
    if labels.dtype.kind in "iu":
        return None
    fault, values = f"dtype {labels.dtype}", labels.tolist()
    if labels.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(labels) | (labels != np.round(labels)))
        if not wrong.size:
            return None
        fault += f", row {wrong[0]} is {values[wrong[0]]}"
        return f"{fault}{' (an empty cell?)' if np.isnan(labels[wrong[0]]) else ''}; {WHOLE}"
    if values:
        # Beside one name the numbers of a column of text are text as well.
        row = next((row for row, value in enumerate(values) if not str(value).strip().isdecimal()), 0)
        fault += f", row {row} is {repr(values[row])[:SHOWN]}"
    return f"{fault}; {WHOLE}"
