"""Which model: every metric of every model, at T = 1 and on the grid of temperatures; and differences of pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.metrics import METRICS
from gfscore.audit.metrics.declaration import Metric
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import EVIDENCE_INTERVAL
from gfscore.core import numbers
from gfscore.core.names import printable
from gfscore.measures import NamedMeasure
from gfscore.show.page.elements import ModelsAndClasses, finite, packed
from gfscore.show.page.tracks import Scale, Track
from gfscore.statistics.curves import ScoreCurves

FIRST_METRIC = "value"
WORST = "wcr"
INTERVAL_METRICS = (FIRST_METRIC, WORST)
"""Metrics of which model_summary has both ends of an evidence interval."""

STEPS = 31
"""Temperatures of the slider that are evenly spaced in log T; 1 and every chosen temperature are added."""

MOST_CLASSES = 20
"""Classes of a pair that are shown: those that differ most."""

PAIR = ["first_threat", "first_model", "second_threat", "second_model"]
"""Columns that name the two models of a pair."""


# ---- metrics of models ----


@dataclass(frozen=True)
class RankingView:
    """The ranking of the models as the page opens with it.

    Parameters
    ----------
    measure, metric : str
        Chosen in the controls.
    measures : list of str
        Measures that can be chosen.
    rows : list of Track
        One for each model, the best first.
    scale : Scale
    ranges : bool
        Whether a range is drawn for some model in place of its value.
    title, note : str
    """

    measure: str
    measures: list[str]
    metric: str
    rows: list[Track]
    scale: Scale
    ranges: bool
    title: str
    note: str


def ranking_data(
    tables: AuditTables, index: ModelsAndClasses, measures: Mapping[str, NamedMeasure], lam: float
) -> dict[str, Any]:
    """Every metric of every model, for the page's script.

    Parameters
    ----------
    tables : AuditTables
    index : ModelsAndClasses
    measures : mapping of str to NamedMeasure
    lam : float
        Lambda of FP.

    Returns
    -------
    dict
        By measure: `title`, `unit`, and `metrics` by name. A metric has lists over the M models, `value`, `low` and
        `high`, and for some metrics of evidence intervals `most`; its `scale`; and `highest`, its largest possible
        value.
    """
    result = {}
    for name, measure in measures.items():
        rows = index.per_model(tables.of_measure("model_summary", name))
        metrics = {}
        for metric in METRICS.values():
            limits = metric.value_range(*measure.description.value_range, classes=len(index.classes), lam=lam)
            metrics[metric.name] = _metric_of_models(metric, rows, limits)
            if measure.kind.name == EVIDENCE_INTERVAL and metric.name in INTERVAL_METRICS:
                metrics[metric.name]["most"] = _column(rows, f"{metric.name}_most")
        title = measure.description.title
        # The script says of an evidence interval which end of it a number is.
        if tables.undecided(name) and measure.kind.name != EVIDENCE_INTERVAL:
            title += ", undecided samples counted as failures"
        result[name] = {
            "title": title,
            "unit": measure.description.unit,
            "metrics": metrics,
        }
    return result


def _metric_of_models(metric: Metric, rows: list[dict[str, Any] | None], limits: tuple[float, float]) -> dict[str, Any]:
    columns = {"value": metric.name}
    if metric.name == FIRST_METRIC:
        columns["low"] = "value_alone_low"
        columns["high"] = "value_alone_high"
    elif metric.bounded:
        columns["low"] = f"{metric.name}_low"
        columns["high"] = f"{metric.name}_high"

    result: dict[str, Any] = {}
    finite_values = []
    for key, column in columns.items():
        result[key] = _column(rows, column)
        for value in result[key]:
            if value is not None:
                finite_values.append(value)

    low, high = limits
    if not np.isfinite(low) or low < 0:
        low = 0.0
    # Without a finite upper end the scale ends at the largest value.
    end = high if np.isfinite(high) else max(finite_values, default=1.0)
    result["scale"] = Scale(float(low), float(max(end, 1e-9)), "").plain()
    result["highest"] = finite(high)
    return result


def _column(rows: list[dict[str, Any] | None], column: str) -> list[float | None]:
    return [None if row is None else finite(row.get(column)) for row in rows]


def ranking_view(
    data: Mapping[str, Any], index: ModelsAndClasses, measure: str, *, by_worst_class: bool
) -> RankingView:
    """The ranking as the page opens with it.

    Parameters
    ----------
    data : mapping
        From ranking_data.
    index : ModelsAndClasses
    measure : str
        Measure that the gate judges.
    by_worst_class : bool
        Whether models are ranked by their worst class; else by the mean of all samples.
    """
    metric = METRICS[WORST if by_worst_class else FIRST_METRIC]
    metric_values = data[measure]["metrics"][metric.name]
    between_ends = "most" in metric_values
    unknown = [None] * len(index.labels)
    low = metric_values.get("low", unknown)
    high = metric_values.get("high", unknown)

    rows = []
    for position, (name, short) in enumerate(zip(index.labels, index.short, strict=True)):
        value = metric_values["value"][position]
        band = None
        if value is not None and between_ends:
            band = (value, metric_values["most"][position])
        track = Track(
            name,
            short,
            value,
            low[position],
            high[position],
            band=band,
            closed=between_ends,
            model=position,
            highest=metric_values["highest"],
        )
        rows.append(track)

    def best_first(row: Track) -> tuple[bool, float]:
        if row.value is None:
            return True, 0.0
        return False, -metric.direction * row.value

    note = f"{data[measure]['title']}, {data[measure]['unit']}. Intervals of each model at T = 1."
    if between_ends:
        note += " Band: from what is proven to what attacks leave."
    return RankingView(
        measure=measure,
        measures=list(data),
        metric=metric.name,
        rows=sorted(rows, key=best_first),
        scale=Scale(metric_values["scale"]["low"], metric_values["scale"]["high"], ""),
        ranges=any(row.is_range for row in rows),
        title=f"{metric.title} by {printable(measure)}, best first ({metric.better})",
        note=note,
    )


def temperature_grid(
    tables: AuditTables, sweeps: Mapping[str, ScoreCurves] | None, index: ModelsAndClasses
) -> dict[str, Any] | None:
    """Metrics of the calibrated measure at the temperatures of the slider, all but those that depend on lambda.

    Returns
    -------
    dict or None
        `measure`; the T `temperatures`; `metrics`, packed arrays (M, T). None without a temperature search.
    """
    results = tables.calibration_results
    if not sweeps or not results:
        return None
    curves = [sweeps[f"{threat}/{model}"] for threat, model in index.models]

    # Temperatures that the sweeps of all models span.
    low = max(curve.temperatures[0] for curve in curves)
    high = min(curve.temperatures[-1] for curve in curves)
    grid = np.geomspace(low, high, STEPS)
    grid[0] = low
    grid[-1] = high
    optima = [result.t_star for result in results.values() if result.t_star is not None]
    temperatures = np.unique(np.concatenate([grid, [1.0], optima]))
    temperatures = temperatures[(temperatures >= low) & (temperatures <= high)]

    # Metrics of the classes with samples, at all temperatures at once.
    measure = next(iter(results.values())).measure
    counts = index.grid(tables.of_measure("class_scores", measure), "n")
    values = []
    for curve, n in zip(curves, counts, strict=True):
        sampled = n > 0
        values.append((curve(temperatures)[:, sampled], n[sampled]))
    metrics = {}
    for name, metric in METRICS.items():
        if "lam" not in metric.needs:
            metrics[name] = packed([metric.compute_many(scores, counts=n) for scores, n in values])
    return {"measure": measure, "temperatures": temperatures.tolist(), "metrics": metrics}


def swaps(tables: AuditTables, index: ModelsAndClasses, measure: str) -> list[list[float]]:
    """Every lambda at which FP reorders two models: [lambda, the better model below it, the better one above it]."""
    result = []
    for row in tables.of_measure("lambda_swaps", measure).itertuples():
        before = index.position[row.before_threat, row.before_model]
        after = index.position[row.after_threat, row.after_model]
        result.append([row.fp_lambda, before, after])
    return result


# ---- differences of pairs ----


@dataclass(frozen=True)
class PairedDifferences:
    """Differences of P pairs of models, first minus second. Bounds are joint over all pairs and classes.

    Parameters
    ----------
    pairs : list of tuple of int
        Positions of the two models.
    difference, low, high : ndarray (P, K)
        By class, NaN where a class has no row.
    overall : ndarray (P, 3)
        Difference of the aggregate and its bounds.
    confidence : float
    undecided : bool
        Whether the values of some samples are not known.
    """

    pairs: list[tuple[int, int]]
    difference: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    overall: NDArray[np.float64]
    confidence: float
    undecided: bool

    def packed(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            "pairs": self.pairs,
            "confidence": self.confidence,
            "difference": packed(self.difference),
            "low": packed(self.low),
            "high": packed(self.high),
            "overall": packed(self.overall),
        }

    def closest_pair(self, model: int) -> int:
        """Position of the pair of a model whose aggregates differ least; 0 where the model is in no pair."""
        positions = [position for position, pair in enumerate(self.pairs) if model in pair]
        return min(positions or [0], key=lambda position: abs(self.overall[position][0]))


UNDECIDED = (
    "Samples of unknown value count at their smallest in a difference; its interval allows for every value of theirs."
)
"""What differences of models say where some values are not known."""


@dataclass(frozen=True)
class PairView:
    """A pair of models as the page opens with it: differences by class on their scale, and texts."""

    first: int
    second: int
    rows: list[Track]
    scale: Scale
    title: str
    note: str


def paired_differences(tables: AuditTables, measure: str, index: ModelsAndClasses) -> PairedDifferences | None:
    """Differences of the pairs of models in the table `model_comparisons`; None where none are compared."""
    rows = tables.of_measure("comparisons", measure)
    overall = tables.of_measure("model_comparisons", measure)
    if rows.empty:
        return None

    order: dict[tuple[str, str, str, str], int] = {}
    for pair in overall[PAIR].itertuples(index=False, name=None):
        order.setdefault(pair, len(order))
    positions = [order[pair] for pair in rows[PAIR].itertuples(index=False, name=None)]
    classes = rows["class_index"].map(index.class_places).to_numpy(dtype=np.intp)
    grids = {}
    for column in ("difference", "low", "high"):
        grid = np.full((len(order), len(index.classes)), np.nan)
        grid[positions, classes] = rows[column]
        grids[column] = grid

    return PairedDifferences(
        pairs=[(index.position[pair[:2]], index.position[pair[2:]]) for pair in order],
        difference=grids["difference"],
        low=grids["low"],
        high=grids["high"],
        overall=overall[["difference", "low", "high"]].to_numpy(),
        confidence=float(rows["confidence"].iloc[0]),
        undecided=tables.undecided(measure),
    )


def pair_view(
    differences: PairedDifferences | None, index: ModelsAndClasses, model: int, measure: str
) -> PairView | None:
    """The pair that the page opens with: the shown model against the next one by aggregate.

    Parameters
    ----------
    differences : PairedDifferences or None
        Of the measure; None where no models are compared.
    index : ModelsAndClasses
    model : int
        Position of the shown model.
    measure : str
    """
    if differences is None:
        return None
    position = differences.closest_pair(model)
    first, second = differences.pairs[position]
    difference = differences.difference[position]
    low = differences.low[position]
    high = differences.high[position]
    compared = np.flatnonzero(~np.isnan(difference))
    largest_first = compared[np.argsort(-np.abs(difference[compared]), kind="stable")][:MOST_CLASSES]

    rows = []
    for k in largest_first:
        value = float(difference[k])
        rows.append(Track(index.classes[k], index.class_short[k], value, finite(low[k]), finite(high[k])))

    ends = np.abs(np.concatenate([low[largest_first], high[largest_first]]))
    ends = ends[np.isfinite(ends)]
    # The largest end rounded up to a tenth; 1 where there is no finite end, or all are 0.
    width = float(np.ceil(ends.max(initial=0.0) * 10) / 10) or 1.0
    overall, overall_low, overall_high = differences.overall[position]
    classes = f"all {numbers.counted(len(compared), 'class')}"
    if len(compared) > len(rows):
        classes = f"the {len(rows)} classes that differ most of {len(compared):,}"
    return PairView(
        first=first,
        second=second,
        rows=rows,
        scale=Scale(-width, width, "", 0.0),
        title=f"{index.labels[first]} minus {index.labels[second]}: {numbers.number(overall)} "
        f"({numbers.interval(overall_low, overall_high)}) over all samples",
        note=f"Differences of {printable(measure)} on the same samples, of {classes}; right of the line the first is "
        "better. Intervals hold for all pairs and classes together with "
        f"{numbers.percent(differences.confidence)} confidence." + (f" {UNDECIDED}" if differences.undecided else ""),
    )
