"""Where stored data and tables differ from those computed again; each function yields at most one sentence.

Numbers may differ by RELATIVE or ABSOLUTE, single ones by OF_FLOAT32, since other processors round otherwise.
Everything else must be equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from gfscore.core.names import printable
from gfscore.core.numbers import counted

RELATIVE, ABSOLUTE, OF_FLOAT32 = 1e-7, 1e-10, 1e-6


def without(data: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Mapping without some names."""
    return {name: value for name, value in data.items() if name not in names}


def plain(data: Any) -> Any:
    """Data as they are read back from JSON, in which numbers that are none are null."""
    return json.loads(json.dumps(data, default=lambda value: value.tolist()), parse_constant=lambda _: None)


def other_labels(path: str, frame: pd.DataFrame, label_of_sample: pd.Series) -> Iterator[str]:
    """The first row whose label is not that of its sample."""
    known = label_of_sample.reindex(frame["sample_id"])
    wrong = known.to_numpy() != frame["label"].to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        name = printable(frame["sample_id"].iloc[row])
        yield f"{path}: row {row}: label {frame['label'].iloc[row]} of {name}, which the dataset does not say"


def differences(where: str, found: Any, made: Any) -> Iterator[str]:
    """The first place at which plain data differ."""
    place = _first_difference(plain(found), plain(made))
    if place is not None:
        yield f"{where}: {printable(' > '.join(place)) or 'it'} is not what follows from the other files"


def _first_difference(found: Any, made: Any) -> list[str] | None:
    # Keys and positions to the first value that differs; None where none does.
    if isinstance(found, dict) and isinstance(made, dict):
        if found.keys() != made.keys():
            return [str(min(found.keys() ^ made.keys()))]
        pairs = [(key, found[key], made[key]) for key in made]
    elif isinstance(found, list) and isinstance(made, list) and len(found) == len(made):
        pairs = [(place, *both) for place, both in enumerate(zip(found, made, strict=True))]
    else:
        return None if _same(found, made) else []
    inner = ((key, _first_difference(one, other)) for key, one, other in pairs)
    return next(([str(key), *place] for key, place in inner if place is not None), None)


def _same(found, made):
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, made)):
        return math.isclose(found, made, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(found) is type(made) and found == made


def different_rows(where: str, found: pd.DataFrame, made: pd.DataFrame) -> Iterator[str]:
    """The first value of a table that differs from what follows from the other files, or the number of rows."""
    if len(found) != len(made):
        yield f"{where}: {counted(len(found), 'row')}, where the other files lead to {len(made):,}"
        return
    if found.equals(made):
        return
    for name in made.columns:
        if pd.api.types.is_float_dtype(made[name].dtype):
            relative = OF_FLOAT32 if made[name].dtype == np.float32 else RELATIVE
            same = np.isclose(found[name], made[name], rtol=relative, atol=ABSOLUTE, equal_nan=True)
        elif made[name].map(lambda item: isinstance(item, list)).any():
            pairs = zip(found[name], made[name], strict=True)
            same = np.array([_first_difference(plain(list(one)), plain(list(two))) is None for one, two in pairs])
        else:
            same = ((found[name] == made[name]) | (found[name].isna() & made[name].isna())).to_numpy(dtype=bool)
        if not same.all():
            row = int(same.argmin())
            yield f"{where}: {name} of row {row} is {printable(found[name].iloc[row])}, not {made[name].iloc[row]}"
            return
