"""Places of the models by FP as lambda grows, with the exact lambdas at which two of them change places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_DRAWN = 400
"""Swaps that lines are drawn through; of more, so many that lie evenly among them: no eye tells the difference."""
LEAST_RANGE, FEWEST, MOST_MODELS = 1.0, 2, 30


def places(subject: Subject) -> pd.DataFrame | None:
    """Place of each model by FP(lambda) = class mean - lambda RDI, the best 1, for lambda from 0 to 1 or more.

    Lines are level between swaps and slant around them; of more than MOST_MODELS models the best at the audit's lambda
    have one. `moved`: the place at the audit's lambda is not that at 0. Of all models: `models`, `places_moved`, the
    smallest lambda that any two swap at (`first_swap`), and how many `swaps` there are.
    """

    rows, swaps = subject.rows("model_summary"), subject.tables.lambda_swaps
    if rows is None or swaps is None or len(rows) < FEWEST:
        return None
    swaps = np.sort(swaps.loc[swaps["measure"] == subject.measure, "fp_lambda"].to_numpy(dtype=float))
    end = max(LEAST_RANGE, 2 * subject.fp_lambda)
    inside = np.unique(swaps[swaps <= end])
    drawn = inside[np.unique(np.linspace(0, len(inside) - 1, min(len(inside), MOST_DRAWN)).astype(int))]
    edges = np.concatenate([[0.0], drawn, [end]])
    found = np.column_stack([_places(rows, lam) for lam in (edges[:-1] + edges[1:]) / 2])
    chosen = _places(rows, subject.fp_lambda)
    parts = []
    for row, label in enumerate(rows["label"]):
        if chosen[row] > MOST_MODELS:
            continue
        x, y = _line(found[row], edges)
        parts.append(pd.DataFrame({"model": label, "fp_lambda": x, "place": y, "moved": found[row, 0] != chosen[row]}))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(
        models=len(rows),
        places_moved=int((found[:, 0] != chosen).sum()),
        first_swap=swaps[0] if len(swaps) else np.nan,
        swaps=len(swaps),
        audit_lambda=subject.fp_lambda,
    ).sort_values("moved", kind="stable", ignore_index=True)


def _places(rows, lam):
    # Ordered by value, then by name, so that ties do not depend on the order of the table.

    fp = (rows["class_mean"] - lam * rows["rdi"]).to_numpy()
    order = np.lexsort((rows["label"].to_numpy(dtype=str), -fp))
    found = np.empty(len(rows), dtype=int)
    found[order] = np.arange(1, len(rows) + 1)
    return found


def _line(found, edges):
    lengths = edges[1:] - edges[:-1]
    x, y = [edges[0]], [float(found[0])]
    for index in range(1, len(found)):
        if found[index] != found[index - 1]:
            half = min(0.012 * edges[-1], 0.5 * lengths[index - 1], 0.5 * lengths[index])
            x += [edges[index] - half, edges[index] + half]
            y += [float(found[index - 1]), float(found[index])]
    return [*x, edges[-1]], [*y, float(found[-1])]


def reranking(frame: pd.DataFrame) -> Finding:
    """How many models change places when RDI is weighed, and where the first swap lies."""
    models, moved = int(frame["models"].iloc[0]), int(frame["places_moved"].iloc[0])
    first, lam = float(frame["first_swap"].iloc[0]), float(frame["audit_lambda"].iloc[0])
    numbers = {"models": models, "moved": moved, "first": first, "lam": lam}
    if not frame["swaps"].iloc[0]:
        return Finding("places_fixed", numbers={"models": models})
    return Finding("places_change" if moved else "places_kept", numbers=numbers)


def draw(frame: pd.DataFrame, axes: Axes) -> None:
    """A line for each model, which stands out where its place changes up to the audit's lambda."""
    drawing.reserve(axes, drawing.LINE_HEIGHT)
    title = "\u03bb, weight of RDI in FP (0: class mean alone; no unit)"
    drawing.numbers(axes.xaxis, title, frame["fp_lambda"], zero=True, end=float(frame["fp_lambda"].max()))
    drawing.numbers(axes.yaxis, "place (1 is best)", frame["place"], whole=True, reverse=True)
    drawing.curves(axes, frame, x="fp_lambda", y="place", line="model", bold="moved")
    drawing.name_lines(axes, frame, x="fp_lambda", y="place", line="model", bold="moved")


CHART = Chart(
    name="fp_reranking",
    title="Ranking by FP",
    question="Does weighing disparity change which model is best?",
    section="which",
    tables=("model_summary", "lambda_swaps"),
    about="score",
    data=places,
    draw=draw,
    finding=reranking,
    shows="Place by FP = class mean \u2212 \u03bb \u00d7 RDI of {measure_title}, the best on top",
    note="Lines change places at the exact \u03bb of a swap. Thick lines change places between 0 and the audit's "
    "\u03bb, {fp_lambda}; of more than 30 models the best 30 there have a line. Places are of the values measured; "
    "intervals of FP may overlap.",
    order=3,
)
