"""RDI against the number of samples per class: the bound of the GF-Score paper's Eq. 12 beside draws from the data."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd

DRAWS = 400
MOST_MODELS = 30
BOUND = "bound (Eq. 12)"


def deviations(subject: Subject) -> pd.DataFrame:
    """Distance of RDI from its value on all samples when every class has n of them: the bound, and draws by model.

    Of more than MOST_MODELS models only the ones with the largest distance have a line. The audit's own samples are the
    population, so the bound has to hold for every line; `beyond` counts draws beyond it.
    """
    from gfscore.audit.values import row_generator
    from gfscore.statistics.intervals import rdi_bound, rdi_deviations, sample_sizes

    models = subject.measured.get(str(subject.measure))
    scores = subject.rows("class_scores")
    if not models:
        raise NothingToDraw
    counts = [np.unique(values.labels, return_counts=True)[1] for values in models]
    classes = max(len(count) for count in counts)
    smallest = min(int(count.min()) for count in counts)
    confidence = float(scores["confidence"].iloc[0])
    lowest, highest = subject.meaning.value_range
    sizes = sample_sizes(smallest)
    bound = np.asarray(rdi_bound(sizes, classes=classes, alpha=1 - confidence, width=highest - lowest))

    lines = []
    for values in models:
        rng = row_generator(subject.seed, values.columns())
        draws = rdi_deviations(values.low, values.labels, sizes=sizes, draws=DRAWS, rng=rng)
        line = {
            "line": values.model.classifier,
            "n": sizes,
            "distance": np.quantile(draws, confidence, axis=1, method="inverted_cdf"),
            "bound": False,
            "beyond": (draws > bound[:, None]).sum(axis=1),
        }
        lines.append(pd.DataFrame(line))
    # The line of a model ends with the largest number of samples. Stable, so that equal ones keep their order.
    ends = [-line["distance"].iloc[-1] for line in lines]
    widest = sorted(np.argsort(ends, kind="stable")[:MOST_MODELS])

    line_of_bound = pd.DataFrame({"line": BOUND, "n": sizes, "distance": bound, "bound": True, "beyond": 0})
    frame = pd.concat([line_of_bound, *(lines[index] for index in widest)], ignore_index=True)
    return frame.assign(models=len(models), draws=DRAWS, confidence=confidence)


def width_of_bound(frame: pd.DataFrame) -> Finding:
    """How much wider the bound is than draws of the largest size are spread."""
    last = frame[frame["n"] == frame["n"].max()]
    bound = float(last.loc[last["bound"], "distance"].max())
    spread = float(last.loc[~last["bound"], "distance"].max())
    numbers = {"n": int(frame["n"].max()), "found": spread, "bound": bound}
    if not spread:
        return Finding("rdi_does_not_vary", numbers=numbers)
    numbers["ratio"] = bound / spread
    return Finding("rdi_bound_is_wide", numbers=numbers, confidence=float(frame["confidence"].iloc[0]))


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """The bound, which stands out, and a line for each model."""
    drawing.reserve(axes, drawing.CURVES_HEIGHT)
    drawing.numbers(axes.xaxis, "samples per class, n (log scale)", frame["n"], log=True, whole=True)
    title = "distance from the RDI of all samples ({short_unit}; lower is better)"
    drawing.numbers(axes.yaxis, title, frame["distance"], log=True)
    drawing.curves(axes, frame, x="n", y="distance", line="line", bold="bound", points=True)
    drawing.name_lines(axes, frame, x="n", y="distance", line="line", bold="bound")


CHART = Chart(
    name="rdi_concentration",
    title="RDI against sample size",
    question="How far may RDI be off with so many samples?",
    section="sure",
    tables=("class_scores",),
    about="score",
    data=deviations,
    draw=draw,
    finding=width_of_bound,
    as_failures=True,
    shows="Distance of RDI from its value on all samples, when every class has n of them, {measure_title}",
    note="Upper line: bound of the GF-Score paper's Eq. 12 at {confidence}, whatever the data. Lower lines, one per "
    "model (of more than 30 those that end highest): what {confidence} of 400 draws of n samples per class, with "
    "replacement, stay within. They do not show that noise alone puts RDI above its true value. Right end: the "
    "smallest class here.",
    per_class=True,
    order=2,
)
