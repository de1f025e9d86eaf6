"""The temperature search: one panel per objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.core.names import model_count
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLES = {
    "cross_model_accuracy": "Cross-model accuracy (Eq. 8): Spearman with clean accuracy",
    "within_model_class_accuracy": "Within-model class accuracy: mean Spearman",
    "ranking_stability": "Ranking stability (Eq. 9): smallest Spearman",
    "ranking_stability_endpoints": "Ranking stability, end points: Spearman",
    "likelihood": "Likelihood: share of models with T* below T",
    "attack_distance": "Spearman with attack distance",
}


BINS = 400
"""Parts of the range of log T whose least and largest value are drawn where a curve has more points."""


def searched(subject: Subject) -> pd.DataFrame | None:
    """Each objective against the temperature; `best` marks T*, `optimal` the temperatures as good as it.

    Where each model has its own T* (likelihood), the share of models whose T* is at most T. An objective without an
    optimum has no rows. `edge`: the optimum reaches the end of the search. Of a curve of many points those that an eye
    can tell apart.
    """

    from gfscore.audit.calibration.evidence import ROBUST, alone

    table, results = subject.tables.calibration, subject.tables.calibration_results
    if table is None or not results:
        return None
    parts = []
    for objective, result in results.items():
        if own := result["t_star_by_model"]:
            stars = np.sort(list(own.values()))
            t = np.repeat(np.concatenate([[stars[0] / 1.2], stars, [stars[-1] * 1.2]]), 2)[1:-1]
            share = np.repeat(np.arange(len(stars) + 1) / len(stars), 2)
            part = pd.DataFrame({"temperature": t, "value": share, "best": False, "optimal": False})
        elif result["t_star"] is not None:
            part = table[table["objective"] == objective].sort_values("temperature", kind="stable")
            t = part["temperature"].to_numpy()
            stretches = result.get("stretches") or [result["interval"]]
            inside = [(t >= low * (1 - 1e-9)) & (t <= high * (1 + 1e-9)) for low, high in stretches]
            nearest = np.abs(np.log(t) - np.log(result["t_star"])).argmin()
            part = part[["temperature", "value"]].assign(
                best=np.arange(len(t)) == nearest, optimal=np.logical_or.reduce(inside)
            )
            part = _thinned(part)
        else:
            continue
        after = result["agreement"].get(ROBUST, {})
        named = {"objective": objective, "panel": TITLES.get(objective, objective), "edge": bool(result["edge"])}
        parts.append(
            part.assign(
                **named,
                after=after.get("after"),
                before=after.get("before"),
                alone=result["baseline"].get(alone(ROBUST)),
            )
        )
    if not parts:
        return None
    models = subject.tables.model_summary
    return (
        pd.concat(parts, ignore_index=True)
        .assign(models=model_count(models))
        .astype({"after": float, "before": float, "alone": float})
    )


def _thinned(part):
    # Least and largest value of each bin, T*, and both ends of what is shaded.

    if len(part) <= 2 * BINS:
        return part
    t, value, optimal = (part[name].to_numpy() for name in ("temperature", "value", "optimal"))
    place = (BINS * (np.log(t) - np.log(t[0])) / (np.log(t[-1]) - np.log(t[0]))).astype(int)
    order = np.lexsort((value, place))
    first = np.flatnonzero(np.diff(place[order], prepend=-1))
    turns = np.flatnonzero(np.diff(optimal))
    kept = [order[first], order[np.append(first[1:], len(order)) - 1], turns, turns + 1, np.flatnonzero(part["best"])]
    return part.iloc[np.unique(np.concatenate([[0, len(part) - 1], *kept]))]


def best_objective(frame: pd.DataFrame) -> Finding:
    """Whether any calibrated score ranks models like robust accuracy better than clean accuracy alone does."""
    objectives = frame.drop_duplicates("objective")
    known = objectives[objectives["after"].notna() & objectives["alone"].notna()]
    if known.empty:
        edges = int(objectives["edge"].sum())
        return Finding(
            "optimum_at_edge" if edges else "optimum_inside", numbers={"times": edges, "objectives": len(objectives)}
        )
    best = known.loc[known["after"].idxmax()]
    numbers = {name: float(best[name]) for name in ("after", "before", "alone")}
    if best["after"] <= 0:
        kind = "calibration_useless"
    elif best["alone"] >= best["after"]:
        kind = "accuracy_as_good"
    elif best["before"] >= best["after"]:
        kind = "calibration_no_gain"
    else:
        kind = "calibration_helps"
    return Finding(kind, {"objective": str(best["objective"]).replace("_", " ")}, numbers)


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A panel for each objective: its curve, the temperatures that are as good as the best one, and T*."""
    for axes, part in drawing.panels(figure, frame, "panel", most=4, least=200):
        drawing.reserve(axes, drawing.PANEL_HEIGHT)
        drawing.numbers(axes.xaxis, "temperature T (log scale)", part["temperature"], log=True)
        drawing.numbers(axes.yaxis, "objective (higher is better)", part["value"])
        drawing.curves(axes, part, x="temperature", y="value", line="objective", dot="best", shade="optimal", rule=1.0)


CHART = Chart(
    name="calibration_curves",
    title="Calibration",
    question="Is there a temperature at which the score can be trusted?",
    section="trust",
    tables=("calibration", "model_summary"),
    about="audit",
    data=searched,
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
