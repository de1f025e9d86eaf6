"""Whether measures rank the models alike."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import FEW_MODELS

MODELS = "models"


def correlations(subject: Subject) -> pd.DataFrame:
    """Rank correlation over models of every two measures, null on the diagonal; `n` are the models compared."""
    rows = subject.rows("measure_agreement")
    rows = some(rows[rows["over"] == MODELS])

    turned = rows.rename(columns={"first": "second", "second": "first"})
    pairs = pd.concat([rows, turned]).set_index(["first", "second"])[["rho", "p", "n"]]
    measures = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    cells = pd.MultiIndex.from_product([measures, measures], names=["first", "second"])
    frame = pairs.rename(columns={"n": "models"}).reindex(cells).reset_index()
    return frame.astype({"rho": float, "p": float, "models": float})


def opposed(frame: pd.DataFrame) -> Finding:
    """The two measures whose rankings of the models agree least."""
    place = {name: index for index, name in enumerate(drawing.categories(frame, "first"))}
    # Each pair has two cells.
    pairs = frame[frame["rho"].notna() & (frame["first"].map(place) < frame["second"].map(place))]
    if pairs.empty:
        return Finding("measures_unranked")
    models = int(pairs["models"].max())
    if models < FEW_MODELS:
        return Finding("measures_few", numbers={"models": models})
    least = pairs.loc[pairs["rho"].idxmin()]
    names = {"first": str(least["first"]), "second": str(least["second"])}
    numbers = {"rho": float(least["rho"]), "models": int(least["models"])}
    if len(pairs) == 1:
        return Finding("measures_of_one_pair", names, numbers)
    return Finding("measures_least_alike", names, numbers | others_equal(pairs["rho"], least["rho"]))


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Correlations as colours; measures in rows and in columns."""
    drawing.heatmap(
        axes,
        frame,
        row="first",
        column="second",
        value="rho",
        limits=drawing.limits_around_zero(frame["rho"]),
        scale_title="Spearman correlation",
        colours="differences",
        square=True,
    )


CHART = Chart(
    name="measure_agreement",
    title="Agreement of the measures",
    question="Do measures rank the models alike?",
    section="trust",
    tables=("measure_agreement",),
    about="audit",
    data=correlations,
    draw=draw,
    finding=opposed,
    as_failures=True,
    sentences={
        "measures_least_alike": "Of all pairs of measures {first} and {second} rank the models least alike: Spearman "
        "{rho:signed} over {models:models}",
        "measures_of_one_pair": "Spearman {rho:signed} over {models:models} between {first} and {second}",
        "measures_few": "{models:models}: too few to show whether measures rank models alike",
        "measures_unranked": "Of every two measures one has the same value for all models: no order can be compared",
    },
    shows="Rank correlation of every two measures over the models; 1: the same order, \u22121: the opposite one",
    note="Models share their samples, and correlations of few models vary much by chance. Empty beside the diagonal: "
    "one of the two measures has the same value for all models.",
    order=2,
    figure=False,
)
