"""RDI against the number of samples per class: the bound of the GF-Score paper's Eq. 12 beside draws from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DRAWS, MOST_MODELS = 400, 30
BOUND = "bound (Eq. 12)"


def deviations(subject: Subject) -> pd.DataFrame | None:
    """Distance of RDI from its value on all samples when every class has n of them: the bound, and draws by model.

    Of more than MOST_MODELS models those of the largest distance have a line. The audit's own samples are the
    population, so the bound has to hold for every line; `beyond` counts draws beyond it.
    """

    from gfscore.audit.values import row_generator
    from gfscore.statistics.intervals import rdi_bound, rdi_deviations, sample_sizes

    measured, scores = subject.measured.get(str(subject.measure)), subject.rows("class_scores")
    if not measured or scores is None:
        return None
    counts = [np.unique(item.labels, return_counts=True)[1] for item in measured]
    confidence, (lowest, highest) = float(scores["confidence"].iloc[0]), subject.meaning.value_range
    sizes = sample_sizes(int(min(count.min() for count in counts)))
    classes = max(map(len, counts))
    bound = np.asarray(rdi_bound(sizes, classes=classes, alpha=1 - confidence, width=highest - lowest))
    whole = pd.DataFrame({"line": BOUND, "n": sizes, "distance": bound, "bound": True, "beyond": 0})
    parts = []
    for item in measured:
        rng = row_generator(subject.seed, item.columns())
        found = rdi_deviations(item.low, item.labels, sizes=sizes, draws=DRAWS, rng=rng)
        beyond = (found > bound[:, None]).sum(axis=1)
        distance = np.quantile(found, confidence, axis=1, method="inverted_cdf")
        line = {"line": item.model.model, "n": sizes, "distance": distance, "bound": False}
        parts.append(pd.DataFrame(line | {"beyond": beyond}))
    # The line of a model ends with the largest number of samples. Stable, so that equal ones keep their order.
    widest = np.argsort([-part["distance"].iloc[-1] for part in parts], kind="stable")[:MOST_MODELS]
    frame = pd.concat([whole, *(parts[place] for place in sorted(widest))], ignore_index=True)
    return frame.assign(models=len(measured), draws=DRAWS, confidence=confidence)


def width_of_bound(frame: pd.DataFrame) -> Finding:
    """How much wider the bound is than draws of the largest size are spread."""
    last = frame[frame["n"] == frame["n"].max()]
    bound, found = (float(last.loc[last["bound"] == flag, "distance"].max()) for flag in (True, False))
    numbers = {"n": int(frame["n"].max()), "found": found, "bound": bound}
    if not found:
        return Finding("rdi_does_not_vary", numbers=numbers)
    return Finding(
        "rdi_bound_is_wide", numbers=numbers | {"ratio": bound / found}, confidence=float(frame["confidence"].iloc[0])
    )


def draw(frame: pd.DataFrame, axes: Axes) -> None:
    """The bound, which stands out, and a line for each model."""
    drawing.reserve(axes, drawing.LINE_HEIGHT)
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
    shows="Distance of RDI from its value on all samples, when every class has n of them, {measure_title}",
    note="Upper line: bound of the GF-Score paper's Eq. 12 at {confidence}, whatever the data. Lower lines, one per "
    "model (of more than 30 those that end highest): what {confidence} of 400 draws of n samples per class, with "
    "replacement, stay within. They do not show that noise alone puts RDI above its true value. Right end: the "
    "smallest class here.",
    per_class=True,
    order=2,
)
