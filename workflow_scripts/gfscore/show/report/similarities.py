"""What the page says about agreement by class: on which classes the models' predictions differ most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gfscore.core.class_names import classes_of
from gfscore.core.names import class_phrase, printable
from gfscore.core.numbers import number
from gfscore.show.report.report_rows import ends_of
from gfscore.statistics.disparity import TIE_TOLERANCE

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

LEAST = 3
"""Classes named for each pair of models."""

PAIR = ["first", "second"]


def similarity_views(tables: AuditTables, measures: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Mapping of each of `measures` whose predictions are compared to its view; empty without similarities.

    A view has `sentence`, on which class the models agree least; `pair_count`; `classes`, one row per class with the
    mean agreement over pairs (`value`), its `baseline`, and `least`, the row of the pair that agrees least with
    `as_low`, how many pairs do, None without samples; `pairs`, one row per pair with its agreement on all samples and
    `least`, the classes it agrees least on. Lowest agreement first, both ends of long lists; `classes_left_out` and
    `pairs_left_out` lie between them.
    """
    if tables.similarities is None:
        return {}
    agreeing = tables.similarities[tables.similarities["similarity"] == "agreement"]
    return {
        measure: _view(agreeing[agreeing["measure"] == measure])
        for measure in measures
        if (agreeing["measure"] == measure).any()
    }


def _view(rows):
    whole = rows[rows["class_index"].isna()].sort_values("value", kind="stable")
    rows = rows[rows["class_index"].notna()]
    names = dict(enumerate(classes_of(rows)))
    rows = rows.assign(name=rows["class_index"].map(names)).sort_values(["value", "class_index"], kind="stable")
    known = rows[rows["value"].notna()]
    classes = rows.groupby("class_index")[["value", "baseline"]].mean()
    classes["name"] = classes.index.map(names)
    lowest = known.groupby("class_index")["value"].transform("min")
    known = known.assign(
        as_low=(known["value"] <= lowest + TIE_TOLERANCE).groupby(known["class_index"]).transform("sum")
    )
    least = known.drop_duplicates("class_index").set_index("class_index").to_dict("index")
    classes["least"] = [least.get(index) for index in classes.index]
    of_pair = {pair: own.head(LEAST).to_dict("records") for pair, own in known.groupby(PAIR, sort=False)}
    listed = classes.sort_values("value", kind="stable").to_dict("records")
    pairs = [{**row, "least": of_pair[row["first"], row["second"]]} for row in whole.to_dict("records")]
    return {
        "sentence": _sentence(classes.dropna(subset="value"), whole),
        "pair_count": len(whole),
        "classes": ends_of(listed),
        "classes_left_out": len(listed) - len(ends_of(listed)),
        "pairs": ends_of(pairs),
        "pairs_left_out": len(pairs) - len(ends_of(pairs)),
    }


def _sentence(classes, pairs):
    lowest = classes["value"].min()
    tied = classes[classes["value"] <= lowest + TIE_TOLERANCE]
    who, two, average = "Models", "two of them give", " on average"
    if len(pairs) == 1:
        who, two, average = " and ".join(printable(pairs[end].iloc[0]) for end in PAIR), "both give", ""
    alike = f"the same prediction{average}, by chance {number(tied['baseline'].mean())}"
    if len(tied) == len(classes):
        return f"{who} agree on every class equally: {two} {number(lowest)} of its samples {alike}"
    more = f" and {len(tied) - 1:,} more" if len(tied) > 1 else ""
    of_class = "its" if len(tied) == 1 else "their"
    named = f"{class_phrase(tied['name'].iloc[0])}{more}"
    return f"{who} agree least on {named}: {two} {number(lowest)} of {of_class} samples {alike}"
