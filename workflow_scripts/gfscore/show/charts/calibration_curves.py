"""The temperature search: one panel per objective."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gfscore.audit.findings.finding import Finding, ties
from gfscore.core.names import model_count
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd
from gfscore.statistics.tolerances import FEW_MODELS

TITLES = {
    "cross_model_accuracy": "Cross-model accuracy (Eq. 8): Spearman with clean accuracy",
    "within_model_class_accuracy": "Within-model class accuracy: mean Spearman",
    "ranking_stability": "Ranking stability (Eq. 9): smallest Spearman",
    "ranking_stability_endpoints": "Ranking stability, end points: Spearman",
    "likelihood": "Likelihood: share of models with T* below T",
    "attack_distance": "Spearman with attack distance",
}
"""Titles of the panels, by objective."""

BINS = 400
"""Bins of log T, each drawn by its smallest and largest value, of curves with more than two points a bin."""

ROUNDING = 1e-9
"""Relative difference of equal temperatures, for ends of optimal stretches."""


def objective_curves(subject: Subject) -> pd.DataFrame:
    """Curve of each objective over the temperature.

    Where each model has its own T* (likelihood), the curve is the share of models whose T* is at most T.

    Returns
    -------
    DataFrame
        Points of the curves, temperature and value, long curves thinned; an objective without an optimum has none.
        `y_title` says what the value is; `best` marks T*, `optimal` the temperatures as good as it; `edge`: an optimum
        reaches an end of the search. `before`, `after` and `alone` are Spearman correlations with robust accuracy: of
        the score at T = 1 and at T*, and of clean accuracy; `known` models have a robust accuracy.
    """
    from gfscore.audit.calibration.evidence import ROBUST, alone

    table = subject.rows("calibration")
    curves = []
    for objective, calibration in subject.tables.calibration_results.items():
        if calibration.t_star_by_model:
            curve = steps_at_optima(calibration.t_star_by_model.values())
        elif calibration.t_star is not None:
            rows = table[table["objective"] == objective]
            curve = values_at_temperatures(rows, calibration.t_star, calibration.stretches or [])
        else:
            continue
        agreement = calibration.agreement_with(ROBUST)
        curves.append(
            curve.assign(
                objective=objective,
                panel=TITLES.get(objective, objective),
                edge=bool(calibration.edge),
                after=agreement.after,
                before=agreement.before,
                alone=calibration.baseline.get(alone(ROBUST)),
            )
        )
    if not curves:
        raise NothingToDraw
    summary = subject.tables.model_summary
    known = model_count(summary[summary["robust_accuracy"].notna()])
    frame = pd.concat(curves, ignore_index=True).assign(models=model_count(summary), known=known)
    return frame.astype({"after": float, "before": float, "alone": float})


def steps_at_optima(optima: Iterable[float]) -> pd.DataFrame:
    """Curve of the share of models whose T* is at most T: a step up at the T* of each model.

    It goes from a little below the smallest T* to a little above the largest. No point is marked as best or optimal,
    as these belong to single models.
    """
    t_star = np.sort(list(optima))
    ends_of_steps = np.concatenate([[t_star[0] / 1.2], t_star, [t_star[-1] * 1.2]])
    share = np.arange(len(t_star) + 1) / len(t_star)
    # Each step is drawn from its left end to its right end.
    points = {"temperature": np.repeat(ends_of_steps, 2)[1:-1], "value": np.repeat(share, 2)}
    return pd.DataFrame({**points, "best": False, "optimal": False, "y_title": "share of models"})


def values_at_temperatures(rows: pd.DataFrame, t_star: float, stretches: Sequence[tuple[float, float]]) -> pd.DataFrame:
    """Curve of the values that a search computed, with T* and the temperatures that are as good.

    Parameters
    ----------
    rows : DataFrame
        Temperatures and values of one objective, in any order.
    t_star : float
        Chosen temperature.
    stretches : sequence of (float, float)
        Intervals of temperatures that are as good.
    """
    rows = rows.sort_values("temperature", kind="stable")
    temperatures = rows["temperature"].to_numpy()

    nearest_to_t_star = np.abs(np.log(temperatures) - np.log(t_star)).argmin()
    best = np.arange(len(rows)) == nearest_to_t_star
    optimal = np.zeros(len(rows), dtype=bool)
    for low, high in stretches:
        optimal |= (temperatures >= low * (1 - ROUNDING)) & (temperatures <= high * (1 + ROUNDING))

    curve = rows[["temperature", "value"]].assign(best=best, optimal=optimal)
    return thinned(curve).assign(y_title="objective (higher is better)")


def thinned(curve: pd.DataFrame) -> pd.DataFrame:
    """Points that look like the whole curve: extremes in each bin of log T, T*, and the ends of optimal stretches."""
    if len(curve) <= 2 * BINS:
        return curve
    log_t = np.log(curve["temperature"].to_numpy())
    position = (log_t - log_t[0]) / (log_t[-1] - log_t[0])
    bins = (BINS * position).astype(int)
    # Sorted by value within each bin, the first of a bin is its smallest value and the last its largest.
    order = np.lexsort((curve["value"].to_numpy(), bins))
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    ends = np.append(starts[1:], len(order)) - 1
    smallest, largest = order[starts], order[ends]

    # A stretch of optimal temperatures begins or ends between a row and the next.
    changes = np.flatnonzero(np.diff(curve["optimal"].to_numpy()))
    best = np.flatnonzero(curve["best"])
    rows = np.concatenate([[0, len(curve) - 1], smallest, largest, changes, changes + 1, best])
    return curve.iloc[np.unique(rows)]


def best_objective(frame: pd.DataFrame) -> Finding:
    """Whether any calibrated score ranks models like robust accuracy better than clean accuracy alone does."""
    objectives = frame.drop_duplicates("objective")
    compared = objectives[objectives["after"].notna() & objectives["alone"].notna()]
    if compared.empty:
        at_edge = int(objectives["edge"].sum())
        kind = "optimum_at_edge" if at_edge else "optimum_inside"
        return Finding(kind, numbers={"times": at_edge, "objectives": len(objectives)})

    models = int(frame["known"].iloc[0])
    if models < FEW_MODELS:
        return Finding("calibration_few", numbers={"models": models})
    best = compared.loc[compared["after"].idxmax()]
    if best["after"] <= 0:
        kind = "calibration_useless"
    elif best["alone"] >= best["after"]:
        kind = "accuracy_as_good"
    elif best["before"] >= best["after"]:
        kind = "calibration_no_gain"
    else:
        kind = "calibration_helps"
    names = {"objective": str(best["objective"]).replace("_", " ")}
    numbers = {"after": float(best["after"]), "before": float(best["before"]), "alone": float(best["alone"])}
    numbers["tied_objectives"] = ties(compared["after"], best["after"])
    return Finding(kind, names, numbers)


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each objective: its curve, the temperatures that are as good as the best one, and T*."""
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=4, least_width=200):
        drawing.reserve(axes, drawing.PANEL_HEIGHT)
        drawing.numbers(axes.xaxis, "temperature T (log scale)", panel["temperature"], log=True)
        drawing.numbers(axes.yaxis, panel["y_title"].iloc[0], panel["value"])
        drawing.curves(axes, panel, x="temperature", y="value", line="objective", dot="best", shade="optimal", rule=1.0)


CHART = Chart(
    name="calibration_curves",
    title="Calibration",
    question="Is there a temperature at which the score can be trusted?",
    section="trust",
    tables=("calibration", "model_summary"),
    about="audit",
    data=objective_curves,
    draw=draw,
    panels=True,
    finding=best_objective,
    shows="Each objective against the temperature T; higher is better",
    note="Shaded: the temperatures that are as good as the best one. Filled dot: T*, in the widest shaded stretch. "
    "Dashed line: T = 1. Where an optimum reaches the end of the search, the search range, not the data alone, "
    "decides where it lies. An objective without an optimum has no panel. Likelihood has an optimum for each "
    "model: its panel shows how these spread.",
    order=7,
)
