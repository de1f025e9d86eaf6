"""How alike the models err, beside how alike they would look by chance."""

from __future__ import annotations

import math
from itertools import product

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.core.names import without_threat
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import SIGNIFICANT

KINDS = {"confusion_cosine": "Confusion matrices, cosine", "error_cosine": "Errors alone, cosine"}
NO_PAIR = {"cosine": None, "what": None, "p": None, "n": None}
"""Cell of a model with itself."""


def similarities(subject: Subject) -> pd.DataFrame:
    """Cosine of class-wise predictions of every pair of models below the diagonal, its mean under shuffling above it.

    `p` of a pair (errors alone) is adjusted by Benjamini-Hochberg over the pairs; NaN elsewhere. `models` are those
    compared, the first of the `models_of_audit`.
    """
    from gfscore.statistics.multiple_tests import false_discovery

    rows = subject.rows("similarities")
    classes = rows.loc[rows["n"] > 0, "class_index"].nunique()
    rows = rows[rows["class_index"].isna()]
    models = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    names = dict(zip(models, without_threat(models), strict=True))
    pairs_left_out = math.comb(len(models) + subject.left_out, 2) - math.comb(len(models), 2)

    cells_of_kinds = []
    for kind, title in KINDS.items():
        pairs = rows[rows["similarity"] == kind]
        tested = pairs["p_value"].notna()
        p = pd.Series(math.nan, index=pairs.index)
        if tested.any():
            family = int(tested.sum()) + pairs_left_out
            p[tested] = false_discovery(pairs.loc[tested, "p_value"], family=family, method="bh")
        cells = {}
        for row in pairs.assign(p=p).itertuples():
            earlier, later = sorted((row.first, row.second), key=models.index)
            cells[later, earlier] = {"cosine": row.value, "what": "pair", "p": row.p, "n": row.n}
            cells[earlier, later] = {"cosine": row.baseline, "what": "chance", "p": None, "n": row.n}

        for first, second in product(models, models):
            cell = cells.get((first, second), NO_PAIR)
            names_of_pair = {"first": names[first], "second": names[second]}
            cells_of_kinds.append({"kind": title, **names_of_pair, "errors_alone": kind == "error_cosine", **cell})
    frame = pd.DataFrame(cells_of_kinds).astype({"cosine": float, "p": float})
    models_of_audit = subject.rows("class_errors")["label"].nunique()
    return frame.assign(models=len(models), models_of_audit=models_of_audit, classes=classes)


def alike(frame: pd.DataFrame) -> Finding:
    """How many pairs of models err significantly more alike than by chance, and which pair most."""
    errors = frame[frame["errors_alone"] & frame["cosine"].notna()]
    pairs = errors[errors["what"] == "pair"]
    chance = errors[errors["what"] == "chance"]
    if pairs.empty:
        return Finding("no_errors_to_compare")
    numbers = {
        "mean": float(pairs["cosine"].mean()),
        "mean_chance": float(chance["cosine"].mean()),
        "pairs": len(pairs),
    }
    classes = int(frame["classes"].iloc[0])
    smallest_p = 1 / math.factorial(classes)
    if smallest_p > SIGNIFICANT:
        return Finding("alike_not_settled", numbers={**numbers, "classes": classes})

    significant = pairs[pairs["p"] <= SIGNIFICANT].sort_values("cosine", ascending=False, kind="stable")
    if significant.empty:
        return Finding("not_alike", numbers=numbers)
    most = significant.iloc[0]
    names = {"models": (str(most["second"]), str(most["first"]))}
    numbers |= {"times": len(significant), **others_equal(significant["cosine"], most["cosine"])}
    return Finding("alike", names, numbers, 1 - SIGNIFICANT)


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A matrix for confusion matrices and one for errors alone, models in rows and in columns."""
    for axes, panel in drawing.panels(figure, frame, "kind", most_columns=2, least_width=340, one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
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
    tables=("similarities", "class_errors"),
    data=similarities,
    draw=draw,
    panels=True,
    finding=alike,
    shows="Cosine similarity of class-wise predictions; 1: the same, 0: nothing shared",
    note="Models: the first {models} of the {models_of_audit} in the audit. Below the diagonal: similarity of the "
    "pair. Above it: what chance gives, the mean when the second model's classes are renamed at random; a similarity "
    "near it is no evidence of a common weakness. Second panel: without the diagonal of the confusion matrices, so "
    "that being right does not count as being alike. Significantly: permutation p, one-sided, by Benjamini-Hochberg "
    "over the pairs.",
    order=8,
)
