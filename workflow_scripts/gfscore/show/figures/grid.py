"""Class values of several models as arrays, as figures draw them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import model_labels, printable, shortened, shortened_all

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ROOM_OF_PANELS = 105
"""Characters of a panel's name that fit side by side over the width of a figure."""


@dataclass(frozen=True)
class ClassGrid:
    """Class values of one measure: arrays (M, K) and totals (M,) of M models, best first, and K classes.

    `labels` are the models' names, `models` and `classes` short ones.
    """

    labels: list[str]
    models: list[str]
    classes: list[str]
    n: NDArray[np.float64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    total: NDArray[np.float64]

    def sorted_by_class_mean(self) -> ClassGrid:
        """The same grid, classes ascending by their mean over models; classes without samples last."""
        order = np.argsort(self.value.mean(axis=0), kind="stable")
        return ClassGrid(
            labels=self.labels,
            models=self.models,
            classes=[self.classes[index] for index in order],
            n=self.n[:, order],
            value=self.value[:, order],
            low=self.low[:, order],
            high=self.high[:, order],
            total=self.total,
        )


def class_grid(scores: pd.DataFrame) -> ClassGrid:
    """ClassGrid from class_scores rows of one measure and calibration, models sorted by their aggregate value."""
    labelled = scores.assign(label=model_labels(scores)).sort_values("class_index", kind="stable")
    rows = {label: group for label, group in labelled.groupby("label", sort=False)}
    totals = {
        label: float(np.average(group["value"][group["n"] > 0], weights=group["n"][group["n"] > 0]))
        for label, group in rows.items()
    }
    order = sorted(rows, key=lambda label: (-totals[label], label))

    def stacked(column: str) -> NDArray[np.float64]:
        return np.stack([rows[label][column].to_numpy(dtype=np.float64) for label in order])

    return ClassGrid(
        labels=order,
        models=shortened_all(order, 34),
        classes=shortened_all(rows[order[0]]["class_name"], 18),
        n=stacked("n"),
        value=stacked("value"),
        low=stacked("low"),
        high=stacked("high"),
        total=np.array([totals[label] for label in order]),
    )


def panel_names(names: Iterable[str], columns: int) -> list[str]:
    """Names of small panels of which `columns` stand side by side, each on one or two lines that fit its width.

    A name too long for one line breaks, at an underscore where it can; one too long for two loses its middle.
    """
    room = ROOM_OF_PANELS // max(columns, 3)
    broken = [_broken(printable(name), room) for name in names]
    return [f"{first}\n{shortened(rest, room)}" if rest else first for first, rest in broken]


def _broken(name, room):
    places = [place for place, character in enumerate(name) if character == "_" and place <= room]
    if len(name) <= room:
        return name, ""
    place = places[-1] if places else room
    return name[:place], name[place:]


def identity(rows: pd.DataFrame) -> str:
    """Measure, data and temperature in words, as far as one value holds for all rows."""
    parts = [rows["measure"].iloc[0], rows["dataset"].iloc[0]]
    temperatures = rows["temperature"].dropna().unique() if "temperature" in rows else []
    if len(temperatures) == 1:
        parts.append(f"T = {temperatures[0]:g}")
    calibration = rows["calibration"].iloc[0]
    if calibration != UNCALIBRATED:
        parts.append(f"calibrated: {calibration}")
    return ", ".join(parts)
