"""Class values of several models as arrays, as figures draw them."""

from dataclasses import dataclass

import numpy as np

from gfscore.names import model_labels, shortened_all


@dataclass(frozen=True)
class ClassGrid:
    """Class values of one measure: names of M models, best first, names of K classes, arrays (M, K), totals (M,)."""

    models: list
    classes: list
    n: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    total: np.ndarray

    def sorted_by_class_mean(self):
        """The same grid, classes ascending by their mean over models; classes without samples last."""
        order = np.argsort(self.value.mean(axis=0), kind="stable")
        return ClassGrid(
            models=self.models,
            classes=[self.classes[index] for index in order],
            n=self.n[:, order],
            value=self.value[:, order],
            low=self.low[:, order],
            high=self.high[:, order],
            total=self.total,
        )


def class_grid(scores):
    """ClassGrid from class_scores rows of one measure and calibration, models sorted by their aggregate value."""
    labelled = scores.assign(label=model_labels(scores)).sort_values("class_index", kind="stable")
    rows = {label: group for label, group in labelled.groupby("label", sort=False)}
    totals = {
        label: float(np.average(group["value"][group["n"] > 0], weights=group["n"][group["n"] > 0]))
        for label, group in rows.items()
    }
    order = sorted(rows, key=lambda label: (-totals[label], label))

    def stacked(column):
        return np.stack([rows[label][column].to_numpy(dtype=np.float64) for label in order])

    return ClassGrid(
        models=shortened_all(order, 34),
        classes=shortened_all(rows[order[0]]["class_name"], 18),
        n=stacked("n"),
        value=stacked("value"),
        low=stacked("low"),
        high=stacked("high"),
        total=np.array([totals[label] for label in order]),
    )


def identity(rows):
    """Measure, data and temperature in words, as far as one value holds for all rows."""
    parts = [rows["measure"].iloc[0], rows["dataset"].iloc[0]]
    temperatures = rows["temperature"].dropna().unique() if "temperature" in rows else []
    if len(temperatures) == 1:
        parts.append(f"T = {temperatures[0]:g}")
    calibration = rows["calibration"].iloc[0]
    if calibration != "none":
        parts.append(f"calibrated: {calibration}")
    return ", ".join(parts)
