"""What moving a latent dimension does to decoded images."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.core.numbers import is_missing, number, percent
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd


def effects(subject: Subject) -> pd.DataFrame:
    """Mean change of each trait of decoded images from one side of a dimension to the other.

    Measured traits change by standard deviations, attributes by probability. Names of rows hold in brackets the
    Tolerance of the dimension and the share of its censored moves.
    """
    rows = subject.rows("projection_effects")
    rows = rows.sort_values(["mapper", "dimension_index"], kind="stable")
    measured = rows["how"] == "measured"
    trait = rows["trait"].where(~measured, rows["trait"].str.replace("_", " "))
    # Names of attributes and of latent dimensions tell mappers apart, unless two have the same.
    dimension = rows["dimension"]
    if rows.groupby("dimension")["mapper"].nunique().max() > 1:
        dimension = rows["mapper"] + " " + dimension

    row_names = []
    for name, tolerance, censored in zip(dimension, rows["tolerance"], rows["censored"], strict=True):
        share = "n/a" if is_missing(censored) else percent(round(float(censored), 3))
        row_names.append(f"{name}  ({number(tolerance)}; {share})")
    shift = rows["shift"].astype(float)
    rows = rows.assign(row=row_names, dimension=dimension, trait=trait, shift=shift, measured=measured)
    columns = ["row", "dimension", "trait", "shift", "measured", "tolerance", "censored", "divergence"]

    # The note has one accuracy, or its range over the mappers: the models that are constant differ between them.
    accuracies = rows["accuracy"].astype(float)
    lowest, highest = number(accuracies.min()), number(accuracies.max())
    accuracy = lowest if lowest == highest else f"{lowest} to {highest}"
    return rows[[*columns, "models", "mapper"]].assign(accuracy=accuracy)


def strongest_effect(frame: pd.DataFrame) -> Finding:
    """The dimension that changes a trait most."""
    valued = frame[frame["shift"].notna()]
    if valued.empty or not valued["shift"].abs().max():
        return Finding("nothing_moves")
    sizes = valued["shift"].abs()
    most = valued.loc[sizes.idxmax()]
    kind = "effect_raises" if most["shift"] > 0 else "effect_lowers"
    if not most["measured"]:
        kind += "_probability"
    names = {"dimension": str(most["dimension"]), "trait": str(most["trait"])}
    return Finding(kind, names, {"shift": float(most["shift"]), **others_equal(sizes, sizes.max())})


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Changes as colours; dimensions in rows, traits in columns."""
    drawing.heatmap(
        axes,
        frame,
        row="row",
        column="trait",
        value="shift",
        limits=drawing.limits_around_zero(frame["shift"]),
        scale_title="change (standard deviations)",
        colours="differences",
    )


CHART = Chart(
    name="projection_effects",
    title="What latent dimensions change",
    question="What does each latent dimension change in an image?",
    section="whom",
    tables=("projection_effects",),
    about="audit",
    data=effects,
    draw=draw,
    rows="row",
    finding=strongest_effect,
    shows="Mean change of a decoded image when one dimension is moved from one side to the other, in standard "
    "deviations of the trait over real images; of attributes, of their probability",
    note="In brackets: Tolerance and share of censored moves, means over models that are not constant, of clean "
    "accuracy {accuracy}. A dimension may move several traits at once: disentanglement is asked of the mapper, "
    "not guaranteed.",
    order=6,
)
