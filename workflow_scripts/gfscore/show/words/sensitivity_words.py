"""How rankings depend on the scale of the logits, lambda and the metric, in sentences computed from the tables.

Each function takes rows of one measure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.comparison.sensitivity import unchanged_lambdas
from gfscore.audit.metrics import METRICS
from gfscore.core.names import enumeration, marked_labels, model_labels, shortened
from gfscore.core.numbers import count, number, setting, signed
from gfscore.statistics.disparity import TIE_TOLERANCE
from gfscore.statistics.ranking import spearman

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ["dataset", "threat", "model"]
CHANGES = ["shift", "scale"]


def shifted(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sensitivity table in which only a constant was added."""
    return rows[rows["scale"] == 1]


def scaled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sensitivity table in which the logits were only multiplied."""
    return rows[rows["shift"] == 0]


def order_under_changes(rows: pd.DataFrame) -> str | None:
    """Whether the order of the models survives a shift or a scale of the logits (sensitivity rows)."""
    unchanged, others = _by_change(rows, "value")
    if len(unchanged) < 2 or not others:
        return None
    rhos = [float(spearman(unchanged, values)) for values in others.values()]
    known = [rho for rho in rhos if not math.isnan(rho)]
    what = f"Shifting the logits by up to {_most(rows['shift'])} or scaling them by {_ends(rows['scale'])}"
    if not known:
        return f"{what} leaves no order of the models to compare"
    if min(known) > 1 - 1e-12:
        return f"{what} leaves the order of the {len(unchanged)} models as it is"
    leaders = _leaders(rows)
    first = (
        f"; {leaders[0]} stays first"
        if len(leaders) == 1
        else f"; {enumeration(leaders) if len(leaders) <= 3 else f'{len(leaders)} models'} come first under some change"
    )
    return (
        f"{what} changes no prediction, yet it changes the order of the models (Spearman down to "
        f"{signed(min(known))}){first}"
    )


def equality_under_changes(rows: pd.DataFrame, statistic: str) -> str | None:
    """Whether the models' order by a disparity metric survives the same changes (sensitivity rows)."""
    unchanged, others = _by_change(rows, statistic)
    rhos = [float(spearman(unchanged, values)) for values in others.values()]
    known = [rho for rho in rhos if not math.isnan(rho)]
    if len(unchanged) < 2 or not known:
        return None
    title = METRICS[statistic].title
    if min(known) > 1 - 1e-12:
        return f"The order of the models by {title} stays"
    return f"The order of the models by {title} moves as well (Spearman down to {signed(min(known))})"


def statistic_ranges(rows: pd.DataFrame, statistic: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Smallest and largest value of a statistic over the changes, by model: {(threat, model): (low, high)}.

    NaN where it is undefined under every change.
    """
    return {
        key: (float(group[statistic].min()), float(group[statistic].max()))
        for key, group in rows.groupby(["threat", "model"], sort=False)
    }


def gate_under_changes(rule: Mapping[str, Any], rows: pd.DataFrame) -> str | None:
    """How a rule of the gate fares when the logits are shifted or scaled, or None for a statistic not in the table.

    Takes a rule of verdict.json (statistic, threshold) and the sensitivity rows of its measure. Compares measured
    values with the threshold, not bounds: the verdict itself is for the logits as they are.
    """
    if rule["statistic"] not in rows:
        return None
    ranges = statistic_ranges(rows, rule["statistic"])
    threshold = rule["threshold"]
    either = [key for key, (low, high) in ranges.items() if low < threshold <= high]
    span = f"{number(min(low for low, _ in ranges.values()))} to {number(max(high for _, high in ranges.values()))}"
    title = METRICS[rule["statistic"]].title_at_gate
    start = f"When the logits are shifted or scaled, the measured {title} runs from {span}"
    if not either:
        return f"{start}; every model stays on its side of the threshold {setting(threshold)}"
    models = "1 model stands" if len(either) == 1 else f"{len(either)} models stand"
    return (
        f"{start}; {models} above or below the threshold {setting(threshold)} depending on the scale of the logits, "
        "which no prediction depends on"
    )


def lambda_choice(swaps: pd.DataFrame, *, lam: float) -> str:
    """In which range of lambda the ranking by FP is that of the configured one (lambda_swaps rows)."""
    low, high = unchanged_lambdas(swaps["fp_lambda"], lam=lam)
    if swaps.empty:
        return "No two models change places under FP, whatever lambda is"
    upper = "on" if math.isinf(high) else f"to {number(high)}"
    if low == high:
        stays = f"At lambda = {setting(lam)} itself two models change places under FP"
    else:
        stays = f"The ranking by FP at lambda = {setting(lam)} holds from lambda = {number(low)} {upper}"
    pairs = "1 pair of models changes" if len(swaps) == 1 else f"{count(len(swaps))} pairs of models change"
    return f"{stays}; {pairs} places at some lambda above 0, first at {number(swaps['fp_lambda'].min())}"


def metric_choice(places: pd.DataFrame, *, guessing: Collection[str] = ()) -> str | None:
    """Which models are the most equal by each disparity metric (metric_ranks rows).

    `guessing` are the labels "threat/model" of those that may be guessing, which is said of them.
    """
    best: dict[tuple[str, ...], list[str]] = {}
    for metric in (metric for metric in METRICS.values() if metric.kind == "disparity" and metric.ranks_models):
        rows = places[places["metric"] == metric.name].dropna(subset="place")
        if len(rows) < 2:
            return None
        labels = np.array(marked_labels(rows, guessing, limit=40))
        leaders = tuple(sorted(labels[rows["place"] <= rows["place"].min() + TIE_TOLERANCE]))
        best.setdefault(leaders, []).append(metric.title)
    named = [f"{_names(leaders)} by {enumeration(metrics)}" for leaders, metrics in best.items()]
    if len(best) == 1:
        return f"The choice of metric does not matter for the first place: {named[0]}"
    return f"Which model comes first depends on the metric: {'; '.join(named)}"


def _names(leaders):
    return enumeration(leaders) if len(leaders) <= 3 else f"{len(leaders)} models"


def _by_change(rows, statistic):
    # Values (M,) without a change, and by change.
    wide = rows.pivot_table(index=IDENTITY, columns=CHANGES, values=statistic, dropna=False, sort=False)
    columns = {change: wide[change].to_numpy() for change in wide.columns}
    return columns.pop((0.0, 1.0)), columns


def _leaders(rows):
    best = rows[rows["place"] == rows.groupby(CHANGES)["place"].transform("min")]
    labels = dict(zip(best.index, model_labels(best), strict=True))
    return [shortened(name, 40) for name in dict.fromkeys(labels[index] for index in best.sort_values(CHANGES).index)]


def _most(shifts):
    return f"\u00b1{setting(shifts.abs().max())}"


def _ends(scales):
    return f"{setting(scales.min())} to {setting(scales.max())}"
