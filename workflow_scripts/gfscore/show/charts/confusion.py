"""Which class is taken for which: mean confusion matrix over models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST = 40


def mean_shares(subject: Subject) -> pd.DataFrame | None:
    """Share of each true class that is taken for another, mean over models; of at most 40 classes.

    `share` is null on the diagonal, where `recall` holds the share that is recognised.
    """

    from gfscore.audit.classwise.confusion import row_shares

    found = matrices_of(subject)
    if found is None:
        return None
    counts, names, n = found
    return tidy(np.mean([row_shares(own) for own in counts.values()], axis=0), names, n).assign(models=len(counts))


def matrices_of(subject: Subject) -> tuple[dict, list[str], list[int]] | None:
    """Counts (K, K) by model, the names of the classes, and the fewest samples of each; None beyond 40 classes."""
    from gfscore.audit.classwise.confusion import confusion_matrices

    found = rows_of_errors(subject)
    if found is None:
        return None
    confusions, errors = found
    errors = errors.sort_values("class_index", kind="stable")
    names = errors["class"].drop_duplicates().tolist()
    if not 0 < len(names) <= MOST:
        return None
    return confusion_matrices(confusions, len(names)), names, errors.groupby("class", sort=False)["n"].min().tolist()


def rows_of_errors(subject: Subject) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Rows of confusions and of class_errors, all corruptions and severities together; None without."""
    confusions, errors = subject.rows("confusions"), subject.rows("class_errors")
    if confusions is None or errors is None:
        return None
    return confusions[confusions["corruption"].isna()], errors[errors["corruption"].isna()]


def tidy(matrix: Any, names: list[str], n: list[int]) -> pd.DataFrame:
    """Rows of a matrix (K, K) of shares."""

    cells = [
        {"true": true, "predicted": predicted, "n": n[i], "share": float("nan") if i == j else matrix[i, j],
         "recall": matrix[i, j] if i == j else float("nan")}
        for i, true in enumerate(names) for j, predicted in enumerate(names)
    ]  # fmt: skip
    return pd.DataFrame(cells)


def most_confused(frame: pd.DataFrame) -> Finding:
    """Which class is most often taken for which."""
    if not frame["share"].max() > 0:
        return Finding("nothing_confused")
    most = frame.loc[frame["share"].idxmax()]
    numbers = {"share": float(most["share"])} | ({"models": int(most["models"])} if "models" in frame else {})
    return Finding("most_confused", {"true": str(most["true"]), "predicted": str(most["predicted"])}, numbers)


def draw(frame: pd.DataFrame, axes: Axes) -> None:
    """True classes in rows, predicted ones in columns; the recall on the diagonal has no colour."""
    drawing.heatmap(
        axes,
        frame,
        row="true",
        column="predicted",
        value="share",
        limits=drawing.limits_from_zero(frame["share"]),
        scale_title="share taken for another class (lower is better)",
        diagonal="recall",
        row_title="true class",
        column_title="predicted class",
        square=True,
    )


CHART = Chart(
    name="confusion",
    title="Confusion matrix",
    question="Which class is taken for which?",
    section="class",
    tables=("confusions", "class_errors"),
    data=mean_shares,
    draw=draw,
    finding=most_confused,
    shows="Confusion matrix, mean over models: {measure_title}",
    note="Diagonal: recall, the share that is recognised, without a colour. Rows sum to 1 but for abstentions. A "
    "share of n independent samples is known to within \N{PLUS-MINUS SIGN}1.36/\N{SQUARE ROOT}n (95%, Hoeffding).",
    per_class=True,
    order=5,
)
