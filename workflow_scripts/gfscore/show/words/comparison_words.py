"""What the comparison of models shows, in sentences computed from its tables (rows of one measure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.names import enumeration, model_labels, shortened
from gfscore.core.numbers import count, percent

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 3


def not_compared(about: Mapping[str, Any]) -> str | None:
    """Why the models of a measure are not compared (entry of comparison.json), or None where they are."""
    return None if about["compared"] else f"The models are not compared: {about['reason']}."


def best_model(ranks: pd.DataFrame) -> str:
    """Which models may truly be the best (rank_intervals rows)."""
    labels, total = np.array(model_labels(ranks)), len(ranks)
    first = [shortened(name, 40) for name in labels[ranks["rank_best"].to_numpy() == 1]]
    sure = f"with {percent(ranks['confidence'].iloc[0])} confidence, jointly for all ranks"
    if len(first) == 1:
        return f"{first[0]} is significantly the best of {total} models ({sure})"
    if len(first) == total:
        return f"No order is certain: any of the {total} models may be the best ({sure})"
    named = enumeration(first) if len(first) <= MOST_NAMED else f"{len(first)} of the {total} models"
    return f"{named} may be the best ({sure})"


def undecided(about: Mapping[str, Any]) -> str | None:
    """How undecided values count (entry of comparison.json), or None where every value is decided."""
    if not about["undecided"]:
        return None
    return (
        f"{count(about['undecided'])} values are undecided: bounds, p-values and ranks let each count for either model "
        "of a pair, while differences and aggregates count them as not robust"
    )


def differences_found(classes: pd.DataFrame, pairs: pd.DataFrame, about: Mapping[str, Any]) -> str:
    """How many differences are significant, per class and on the whole (comparisons and model_comparisons rows).

    `about` is the measure's entry of comparison.json.
    """
    alpha = 1 - about["confidence"]
    by_class, overall = (int((rows["p_holm"] <= alpha + 1e-12).sum()) for rows in (classes, pairs))
    loose = int((classes["p_bh"] <= alpha + 1e-12).sum())
    if about["every_pair"]:
        family = f"{count(len(pairs))} pairs of models"
    else:
        reference = shortened(about["reference"].split("/", 1)[-1], 40)
        every = count(about["pairs_corrected_for"])
        family = f"{count(len(pairs))} pairs with {reference} (of {every}; all are allowed for)"
    return (
        f"Of {family}, {count(overall)} differ significantly in their aggregate; of the "
        f"{count(len(classes))} differences on one class, {count(by_class)} are significant after Holm's correction, "
        f"{count(loose)} when up to {percent(alpha)} of the findings may be false (Benjamini-Hochberg)"
    )


def reversals(pairs: pd.DataFrame) -> str:
    """How often the model of the smaller aggregate is significantly better on some class (model_comparisons rows)."""
    turned = pairs[pairs["sure_wins_second"] > 0]
    if turned.empty:
        return "No model with a smaller aggregate is significantly better on any class"
    most = turned.loc[turned["sure_wins_second"].idxmax()]
    example = (
        f"{shortened(most['second_model'], 40)} beats {shortened(most['first_model'], 40)} on "
        f"{int(most['sure_wins_second'])} of {int(most['classes'])}"
    )
    return (
        f"In {count(len(turned))} of {count(len(pairs))} pairs the model of the smaller aggregate is significantly "
        f"better on some class ({example})"
    )
