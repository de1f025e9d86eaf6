"""What the page says about groups of samples: values, fairness metrics, and what balancing one attribute changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.groups.fairness import METRICS
from gfscore.audit.groups.metrics import MACRO, WORST
from gfscore.core.names import model_labels
from gfscore.measures import measure_of
from gfscore.show.report.report_rows import Bounded
from gfscore.show.words.group_words import group_gaps, sure_gaps, widest_gap

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables


def groups_view(tables: AuditTables, measures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Contents of the section on groups, or None for an audit without (AuditTables, settings of each measure)."""
    scores = tables.measures.get("group_scores")
    if scores is None or scores.empty:
        return None
    metrics = tables.measures["group_metrics"]
    whole = scores[scores["class_index"] == ALL]
    sizes = whole.drop_duplicates(["attribute", "group_index"])
    return {
        "measures": [_values(scores, name, settings) for name, settings in measures.items()],
        "metrics": [_metrics(rows) for _, rows in metrics.groupby("measure", sort=False)],
        "balanced": _balanced(whole, metrics),
        "left_out": sizes.loc[sizes["left_out"] > 0]
        .drop_duplicates("attribute")[["attribute", "left_out"]]
        .to_dict("records"),
        "empty": bool((whole["n"] == 0).any()),
        "confidence": float(scores["confidence"].iloc[0]),
    }


def _values(scores, measure, settings):
    gaps, highest = group_gaps(scores[scores["measure"] == measure]), measure_of(settings).value_range
    width = highest[1] - highest[0]
    rows = [
        {**row, "label": label, "bounded": Bounded(row["gap"], row["gap_low"], row["gap_high"], width)}
        for label, row in zip(model_labels(gaps), gaps.to_dict("records"), strict=True)
    ]
    return {"name": measure, "sentences": [widest_gap(gaps), sure_gaps(gaps)], "rows": rows}


def _metrics(rows):
    # One line per model and attribute: the mean over classes, the worst class, the printed forms, the balanced part.
    labelled, found = rows.assign(label=model_labels(rows)), []
    one = labelled["class_index"].nunique() == 1 and labelled["class_index"].iloc[0] != ALL
    for (label, attribute), own in labelled.groupby(["label", "attribute"], sort=False):
        line = {"label": label, "attribute": attribute, "small": bool(own["small"].any())}
        for metric, part in own.groupby("metric", sort=False):
            by_name = part.set_index("class_name")
            mean, worst = (by_name.iloc[0],) * 2 if one else (by_name.loc[MACRO], by_name.loc[WORST])
            line[metric] = {"worst": worst["value"], "printed": mean["as_printed"], "balanced": mean["balanced_value"]}
            line[metric]["bounded"] = Bounded(mean["value"], mean["wilson_low"], mean["wilson_high"], 1.0)
        found.append(line)
    positive = labelled["class_name"].iloc[0] if one else None
    has_balanced = bool(labelled["balanced_n"].notna().any())
    return {"measure": rows["measure"].iloc[0], "rows": found, "positive": positive, "balanced": has_balanced}


def _balanced(whole, metrics):
    # Samples of every group before and after, and the metrics of each measure, mean over models.
    if whole["balanced_n"].isna().all():
        return None
    first = whole[(whole["measure"] == whole["measure"].iloc[0])].drop_duplicates(["attribute", "group_index"])
    totals = first.groupby("attribute", sort=False)[["n", "balanced_n"]].transform("sum")
    shares = first[["n", "balanced_n"]] / totals
    groups = first[["attribute", "group", "n", "balanced_n"]].assign(before=shares["n"], after=shares["balanced_n"])
    mean = metrics[(metrics["class_name"] == MACRO) | (metrics["class_index"].nunique() == 1)]
    changed = (
        mean.groupby(["measure", "attribute", "metric"], sort=False)[["value", "balanced_value"]].mean().reset_index()
    )
    lines = []
    for (measure, attribute), own in changed.groupby(["measure", "attribute"], sort=False):
        by_metric = own.set_index("metric")
        lines.append(
            {"measure": measure, "attribute": attribute} | {name: by_metric.loc[name].to_dict() for name in METRICS}
        )
    return {"groups": groups.to_dict("records"), "metrics": lines, "total": int(totals["balanced_n"].max())}
