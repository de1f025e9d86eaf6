"""Which class is taken for which: mean confusion matrix over models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd

MOST = 40


def mean_shares(subject: Subject) -> pd.DataFrame:
    """Share of each true class that is taken for another, mean over models; of at most 40 classes.

    `share` is null on the diagonal, where `recall` holds the share that is recognised.
    """
    matrices = matrices_of(subject)
    shares = list(matrices.shares.values())
    frame = cells_of(np.mean(shares, axis=0), matrices)
    return frame.assign(models=len(shares))


@dataclass(frozen=True)
class Matrices:
    """Confusion matrices of the models of an audit."""

    shares: Mapping[str, np.typing.NDArray[np.float64]]
    """Shares (K, K) of the samples of each class, by model."""

    classes: Sequence[str]
    samples: Sequence[int]
    """Fewest samples of each class, copies of an image counted once."""


def matrices_of(subject: Subject) -> Matrices:
    """Confusion matrices of every model; NothingToDraw beyond 40 classes."""
    from gfscore.audit.classwise.confusion import confusion_matrices, row_shares

    confusions, errors = rows_of_errors(subject)
    errors = errors.sort_values("class_index", kind="stable")
    classes = errors["class"].drop_duplicates().tolist()
    if len(classes) > MOST:
        raise NothingToDraw
    samples = errors.groupby("class_index")["images"].min().tolist()
    shares = {}
    for model, counts in confusion_matrices(confusions, len(classes)).items():
        shares[model] = row_shares(counts, errors.loc[errors["label"] == model, "n"])
    return Matrices(shares, classes, samples)


def rows_of_errors(subject: Subject) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of confusions and of class_errors with `images`, all corruptions and severities together."""
    confusions = subject.rows("confusions")
    errors = subject.rows("class_errors")
    return confusions[confusions["corruption"].isna()], with_images(errors)


def with_images(errors: pd.DataFrame) -> pd.DataFrame:
    """Rows of class_errors, all corruptions and severities together.

    `images` are the samples of a class without their copies: as many as a corruption of one severity has.
    """
    whole = errors[errors["corruption"].isna()]
    conditions = errors[errors["corruption"].notna()]
    if conditions.empty:
        return whole.assign(images=whole["n"])
    keys = ["label", "class_index"]
    return whole.join(conditions.groupby(keys)["n"].max().rename("images"), on=keys)


def cells_of(shares: np.typing.NDArray[np.float64], matrices: Matrices) -> pd.DataFrame:
    """One row for each cell of a matrix (K, K) of shares."""
    classes = matrices.classes
    cells = pd.MultiIndex.from_product([classes, classes], names=["true", "predicted"]).to_frame(index=False)
    on_diagonal = np.eye(len(classes), dtype=bool).ravel()
    return cells.assign(
        n=np.repeat(matrices.samples, len(classes)),
        share=np.where(on_diagonal, np.nan, shares.ravel()),
        recall=np.where(on_diagonal, shares.ravel(), np.nan),
    )


def most_confused(frame: pd.DataFrame) -> Finding:
    """Which class is most often taken for which."""
    if not frame["share"].max() > 0:
        return Finding("nothing_confused")
    most = frame.loc[frame["share"].idxmax()]
    names = {"true": str(most["true"]), "predicted": str(most["predicted"])}
    numbers = {"share": float(most["share"]), "models": int(most["models"])}
    return Finding("most_confused", names, numbers | others_equal(frame["share"], most["share"]))


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
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
