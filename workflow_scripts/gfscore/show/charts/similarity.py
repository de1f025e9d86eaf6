"""How alike the models err, beside how alike they would look by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KINDS = {"confusion_cosine": "Confusion matrices, cosine", "error_cosine": "Errors alone, cosine"}


def similarities(subject: Subject) -> pd.DataFrame | None:
    """Cosine of class-wise predictions of every pair of models below the diagonal, its mean under shuffling above it.

    `p` of a pair (errors alone) is adjusted by Benjamini-Hochberg over the pairs; NaN elsewhere.
    """

    from gfscore.core.names import without_threat
    from gfscore.statistics.multiple_tests import false_discovery

    rows = subject.rows("similarities")
    if rows is None:
        return None
    classes = rows["class_index"].nunique()
    rows = rows[rows["class_index"].isna()]
    models = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    names = dict(zip(models, without_threat(models), strict=True))
    parts = []
    for kind, title in KINDS.items():
        own = rows[rows["similarity"] == kind]
        known = own["p_value"].notna()
        p = pd.Series(float("nan"), index=own.index)
        if known.any():
            p[known] = false_discovery(own.loc[known, "p_value"], family=int(known.sum()), method="bh")
        cells = {}
        for row, adjusted in zip(own.itertuples(), p, strict=True):
            a, b = sorted((row.first, row.second), key=models.index)
            cells[b, a], cells[a, b] = (row.value, "pair", adjusted, row.n), (row.baseline, "chance", None, row.n)
        parts += [
            {"kind": title, "first": names[a], "second": names[b], "errors_alone": kind == "error_cosine"}
            | dict(zip(("cosine", "what", "p", "n"), cells.get((a, b), (None, None, None, None)), strict=True))
            for a in models for b in models
        ]  # fmt: skip
    return pd.DataFrame(parts).astype({"cosine": float, "p": float}).assign(models=len(models), classes=classes)


def alike(frame: pd.DataFrame) -> Finding:
    """How many pairs of models err significantly more alike than by chance, and which pair most."""
    import math

    from gfscore.statistics.multiple_tests import SIGNIFICANT

    errors = frame[frame["errors_alone"] & frame["cosine"].notna()]
    pairs, chance = errors[errors["what"] == "pair"], errors[errors["what"] == "chance"]
    if pairs.empty:
        return Finding("no_errors_to_compare")
    found = pairs[pairs["p"] <= SIGNIFICANT].sort_values("cosine", ascending=False, kind="stable")
    numbers = {
        "mean": float(pairs["cosine"].mean()),
        "mean_chance": float(chance["cosine"].mean()),
        "pairs": len(pairs),
    }
    if 1 / math.factorial(int(frame["classes"].iloc[0])) > SIGNIFICANT:
        return Finding("alike_not_settled", numbers=numbers | {"classes": int(frame["classes"].iloc[0])})
    if found.empty:
        return Finding("not_alike", numbers=numbers)
    names = {"models": (str(found["second"].iloc[0]), str(found["first"].iloc[0]))}
    return Finding("alike", names, numbers | {"times": len(found)}, 1 - SIGNIFICANT)


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A matrix for confusion matrices and one for errors alone, models in rows and in columns."""
    for axes, part in drawing.panels(figure, frame, "kind", most=2, least=340, one_row_axis=True):
        drawing.heatmap(
            axes,
            part,
            row="first",
            column="second",
            value="cosine",
            limits=(0.0, 1.0),
            scale_title="cosine similarity (no unit)",
            square=True,
        )


CHART = Chart(
    name="similarity",
    title="Similarity of the models",
    question="Do models share weaknesses?",
    section="class",
    tables=("similarities",),
    data=similarities,
    draw=draw,
    panels=True,
    finding=alike,
    shows="Cosine similarity of class-wise predictions; 1: the same, 0: nothing shared",
    note="Below the diagonal: similarity of the pair. Above it: what chance gives, the mean when the second model's "
    "classes are renamed at random; a similarity near it is no evidence of a common weakness. Second panel: without "
    "the diagonal of the confusion matrices, so that being right does not count as being alike. Significantly: "
    "permutation p, one-sided, by Benjamini-Hochberg over the pairs.",
    order=8,
)
