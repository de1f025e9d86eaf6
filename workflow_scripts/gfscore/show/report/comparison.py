"""What the page says about models against each other, and about choices that their order depends on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from gfscore.audit.metrics import MAIN
from gfscore.core.names import model_labels
from gfscore.measures import measure_of
from gfscore.show.report.report_rows import Bounded
from gfscore.show.words import comparison_words, sensitivity_words

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.audit_tables import AuditTables

MOST_PAIRS, MOST_IN_MATRIX = 150, 20

INDICES = tuple(metric.name for metric in MAIN if metric.at_equality == 0)
"""Metrics that measure inequality alone."""


def comparison_views(
    tables: AuditTables, measures: Mapping[str, Mapping[str, Any]], *, lam: float, guessing: Collection[str] = ()
) -> list[dict[str, Any]]:
    """One mapping per measure for the section on comparisons, the measures in the order given; empty without tables.

    Takes AuditTables, the settings of each measure, lambda of FP, and `guessing` as metric_choice does.
    """
    if not tables.comparison:
        return []
    return [
        _comparison_view(tables, name, measure_of(settings).value_range, lam=lam, guessing=guessing)
        for name, settings in measures.items()
        if name in tables.comparison
    ]


def _comparison_view(tables, measure, value_range, *, lam, guessing):
    about = tables.comparison[measure]
    ranks, pairs, classes, swaps, metrics = (
        _of_measure(getattr(tables, name), measure)
        for name in ("rank_intervals", "model_comparisons", "comparisons", "lambda_swaps", "metric_ranks")
    )
    view = {"name": measure, "about": about, "reason": comparison_words.not_compared(about)}
    view["choices"] = [
        sentence
        for sentence in (
            sensitivity_words.lambda_choice(swaps, lam=lam),
            sensitivity_words.metric_choice(metrics, guessing=guessing),
        )
        if sentence and about["models"] > 1
    ]
    if not about["compared"]:
        return view
    labels = dict(zip(_identities(ranks, ""), model_labels(ranks), strict=True))
    highest = value_range[1] - value_range[0]
    listed = [
        {
            "first": labels[first],
            "second": labels[second],
            "difference": Bounded(row["difference"], row["low"], row["high"], highest),
            **{name: row[name] for name in PLAIN},
        }
        for first, second, row in zip(
            _identities(pairs, "first_"), _identities(pairs, "second_"), pairs.to_dict("records"), strict=True
        )
    ]
    return view | {
        "sentences": [
            sentence
            for sentence in (
                comparison_words.best_model(ranks),
                comparison_words.undecided(about),
                comparison_words.differences_found(classes, pairs, about),
                comparison_words.reversals(pairs),
            )
            if sentence
        ],
        "ranks": [{**row, "label": labels[row["threat"], row["model"]]} for row in ranks.to_dict("records")],
        "pairs": listed[:MOST_PAIRS],
        "pairs_left_out": len(listed) - len(listed[:MOST_PAIRS]),
        "matrix": _matrix(list(labels.values()), listed)
        if about["every_pair"] and len(labels) <= MOST_IN_MATRIX
        else None,
    }


PLAIN = (
    "p_holm", "p_sign_flip_adjusted", "classes", "wins_first", "wins_second", "sure_wins_first", "sure_wins_second",
)  # fmt: skip
"""Columns of model_comparisons that the page shows as they are."""


def _of_measure(frame, measure):
    return frame[frame["measure"] == measure].reset_index(drop=True)


def _identities(frame, prefix):
    return list(zip(frame[f"{prefix}threat"], frame[f"{prefix}model"], strict=True))


def _matrix(labels, pairs):
    # Significant wins of the row's model over the column's, over classes; None on the diagonal.
    wins = {}
    for pair in pairs:
        wins[pair["first"], pair["second"]] = pair["sure_wins_first"]
        wins[pair["second"], pair["first"]] = pair["sure_wins_second"]
    return [(row, [wins.get((row, column)) for column in labels]) for row in labels]


def sensitivity_views(table: pd.DataFrame | None, rules: Collection[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Mapping from each great measure to what the page says about changes of the logits; empty without any.

    Takes the sensitivity table, or None, and the rules of verdict.json.
    """
    if table is None or table.empty:
        return {}
    labelled = table.assign(label=model_labels(table))
    return {
        measure: _sensitivity_view(rows, rules, measure) for measure, rows in labelled.groupby("measure", sort=False)
    }


def _sensitivity_view(rows, rules, measure):
    sentences = [sensitivity_words.order_under_changes(rows)]
    sentences += [sensitivity_words.equality_under_changes(rows, metric) for metric in INDICES]
    return {
        "order": sentences[0],
        "sentences": [sentence for sentence in sentences if sentence],
        "shift": _grid(sensitivity_words.shifted(rows), "shift"),
        "scale": _grid(sensitivity_words.scaled(rows), "scale"),
        "ranges": [
            {
                "label": label,
                **{
                    name: (float(group[name].min()), float(group[name].max()))
                    for name in ("place", *(metric.name for metric in MAIN))
                },
            }
            for label, group in rows.groupby("label", sort=False)
        ],
        "gate": {
            rule["words"]: sensitivity_words.gate_under_changes(rule, rows)
            for rule in rules
            if rule["measure"] == measure
        },
    }


def _grid(rows, change):
    return {
        "changes": sorted(rows[change].unique()),
        "rows": [
            (label, group.sort_values(change)["value"].tolist()) for label, group in rows.groupby("label", sort=False)
        ],
    }
