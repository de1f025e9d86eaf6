"""Which calibrated scores may be compared: those at temperatures that were chosen together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.files import read_json

REMEDY = "compare the rows whose calibration is none (T = 1), or calibrate all models in one audit"


def require_comparable(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    names: tuple[str, str] = ("the first audit", "the second audit"),
) -> None:
    """Raise InputError unless the calibrated scores of two audits stand at temperatures that were chosen together.

    Takes the contents of two calibration.json. For every objective that both have, measure, digest of the model set,
    split of the samples and chosen temperatures must be the same: a temperature is as good as the models it was chosen
    on, and scores at different ones differ by it. Raises InputError too when the audits share no objective.
    """
    shared = [objective for objective in first if objective in second]
    if not shared:
        raise InputError(f"{names[0]} and {names[1]} share no calibration objective; {REMEDY}")
    for objective in shared:
        for key, words in _MUST_AGREE.items():
            ours, theirs = first[objective].get(key), second[objective].get(key)
            if ours != theirs:
                raise InputError(
                    f"scores calibrated by {objective} are not comparable: {words} is {ours!r} in {names[0]}, but "
                    f"{theirs!r} in {names[1]}; {REMEDY}"
                )


def require_comparable_audits(first: Path | str, second: Path | str) -> None:
    """The same for the folders of two audits, which hold calibration.json; errors name the folders."""
    calibrations = [read_json(Path(folder) / "calibration.json") for folder in (first, second)]
    require_comparable(*calibrations, names=(str(first), str(second)))


_MUST_AGREE = {
    "measure": "the measure",
    "models_digest": "the digest of the model set",
    "split": "the split of the samples",
    "t_star": "T*",
    "t_star_by_model": "the T of each model",
}
