"""Places of the models by FP as lambda grows, with the exact lambdas at which two of them change places."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd

MOST_DRAWN = 400
"""Swaps that lines are drawn through; of more, so many that lie evenly among them: no eye tells the difference."""
LEAST_RANGE = 1.0
FEWEST = 2
MOST_MODELS = 30


def places(subject: Subject) -> pd.DataFrame:
    """Place of each model by FP(lambda) = class mean - lambda RDI, the best 1, for lambda from 0 to 1 or more.

    Lines are level between swaps and slant around them; of more than MOST_MODELS models the best at the audit's lambda
    have one. `moved`: the place at the audit's lambda is not that at 0. Of all models: `models`, `places_moved`, the
    smallest lambda that any two swap at (`first_swap`), and how many `swaps` there are.
    """
    rows = subject.rows("model_summary")
    if len(rows) < FEWEST:
        raise NothingToDraw
    swaps = np.sort(subject.tables.of_measure("lambda_swaps", str(subject.measure))["fp_lambda"].to_numpy(dtype=float))
    end = max(LEAST_RANGE, 2 * subject.fp_lambda)
    inside = np.unique(swaps[swaps <= end])
    drawn = np.linspace(0, len(inside) - 1, min(len(inside), MOST_DRAWN))
    edges = np.concatenate([[0.0], inside[np.unique(drawn.astype(int))], [end]])

    between = (edges[:-1] + edges[1:]) / 2
    ranks = np.column_stack([_ranks(rows, fp_lambda) for fp_lambda in between])
    ranks_of_audit = _ranks(rows, subject.fp_lambda)
    moved = ranks[:, 0] != ranks_of_audit
    lines = []
    for index, label in enumerate(rows["label"]):
        if ranks_of_audit[index] > MOST_MODELS:
            continue
        x, y = _line(ranks[index], edges)
        lines.append(pd.DataFrame({"model": label, "fp_lambda": x, "place": y, "moved": moved[index]}))
    frame = pd.concat(lines, ignore_index=True).assign(
        models=len(rows),
        places_moved=int(moved.sum()),
        first_swap=swaps[0] if len(swaps) else np.nan,
        swaps=len(swaps),
        audit_lambda=subject.fp_lambda,
    )
    return frame.sort_values("moved", kind="stable", ignore_index=True)


def _ranks(rows, fp_lambda):
    # Ordered by value, then by name, so that ties do not depend on the order of the table.
    fp = (rows["class_mean"] - fp_lambda * rows["rdi"]).to_numpy()
    order = np.lexsort((rows["label"].to_numpy(dtype=str), -fp))
    ranks = np.empty(len(rows), dtype=int)
    ranks[order] = np.arange(1, len(rows) + 1)
    return ranks


def _line(ranks, edges):
    # Points of a line that is level between the edges and slants around those at which the rank changes.
    lengths = edges[1:] - edges[:-1]
    x = [edges[0]]
    y = [float(ranks[0])]
    for index in range(1, len(ranks)):
        if ranks[index] == ranks[index - 1]:
            continue
        half = min(0.012 * edges[-1], 0.5 * lengths[index - 1], 0.5 * lengths[index])
        x += [edges[index] - half, edges[index] + half]
        y += [float(ranks[index - 1]), float(ranks[index])]
    return [*x, edges[-1]], [*y, float(ranks[-1])]


def reranking(frame: pd.DataFrame) -> Finding:
    """How many models change places when RDI is weighed, and where the first swap lies."""
    first = frame.iloc[0]
    models = int(first["models"])
    if not first["swaps"]:
        return Finding("places_fixed", numbers={"models": models})
    moved = int(first["places_moved"])
    numbers = {
        "models": models,
        "moved": moved,
        "first": float(first["first_swap"]),
        "lam": float(first["audit_lambda"]),
    }
    return Finding("places_change" if moved else "places_kept", numbers=numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A line for each model, which stands out where its place changes up to the audit's lambda."""
    drawing.reserve(axes, drawing.CURVES_HEIGHT)
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
    as_failures=True,
    shows="Place by FP = class mean \u2212 \u03bb \u00d7 RDI of {measure_title}, the best on top",
    note="Lines change places at the exact \u03bb of a swap. Thick lines change places between 0 and the audit's "
    "\u03bb, {fp_lambda}; of more than 30 models the best 30 there have a line. Places are of the values measured; "
    "intervals of FP may overlap.",
    order=3,
)
