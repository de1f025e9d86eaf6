"""What a gate on a score may hide: that no attack ran, models that pass and fall to attacks, an order they reverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.names import model_labels
from gfscore.core.numbers import signed
from gfscore.measures import KINDS
from gfscore.show.report.report_rows import headline_of, verdicts_of
from gfscore.show.words.takeaways import rank_relation

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

HALF = 0.5
NEARLY_REVERSED = -0.8
KEY = ["threat", "model"]


def under_attack(
    tables: AuditTables, verdict: Mapping[str, Any], measures: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Sentences that belong before all others of an audit, of none to three, without a full stop.

    Takes AuditTables, the contents of verdict.json and the settings of each measure. The first says that no attack was
    run, where that is so; one names the passing model with the lowest accuracy under attack, where the upper bound of
    that accuracy is below one half; the other says so where the first measure of the page ranks the models
    significantly against their accuracy under attack.
    """
    sentences = _no_attack(measures), _weakest_to_pass(tables, verdict, measures), _order(tables, measures)
    return [sentence for sentence in sentences if sentence]


def _no_attack(measures):
    kinds = {settings["kind"] for settings in measures.values()}
    if any(KINDS[kind].attacks for kind in kinds):
        return None
    what = ": the score says how clearly the classes are told apart, not what an attack would leave"
    return f"This audit ran no attack on its images{what if 'great' in kinds else ''}"


def _weakest_to_pass(tables, verdict, measures):
    # Measured in this audit, with bounds, before what a manifest or a leaderboard says without any.
    known = (_measured(tables, measures), _stated(tables, measures))
    rows = next((found for found in known if len(found)), None)
    judged = verdicts_of(verdict["rules"])
    passing = {model for model, word in judged.items() if word == "PASS"}
    if rows is None or not passing:
        return None
    keys = np.array([key in passing for key in zip(rows["threat"], rows["model"], strict=True)])
    low = rows[keys & (rows["bound"] < HALF)]
    if low.empty:
        return None
    first = low.sort_values("attacked", kind="stable").iloc[0]
    # Each model once, by its strongest attack.
    others = len(low.drop_duplicates(KEY)) - 1
    models = f"{others} other model{'s that pass are' if others > 1 else ' that passes is'} right on less than half"
    sentence = (
        f"{first['label']} passes, yet is right on only {_percent(first['attacked'])} of the samples under attack"
    )
    return f"{sentence} ({first['source']})" + (f"; {models}" if others else "")


def _order(tables, measures):
    # One test, of one measure and one kind of attack chosen before any is looked at: there is nothing to correct for.
    measure = headline_of(measures)
    scores = tables.of("model_summary", measure)[[*KEY, "value"]]
    known = (_stated(tables, measures), _measured(tables, measures))
    rows = next((found for found in known if found[KEY].drop_duplicates().shape[0] > 1), None)
    if rows is None:
        return None
    sources = list(rows["source"].unique())
    both = scores.merge(rows.drop_duplicates(KEY)[[*KEY, "attacked"]], on=KEY)
    rho, clear = rank_relation(both["value"], both["attacked"])
    if not clear or rho >= 0:
        return None
    relation = "is nearly the reverse of" if rho <= NEARLY_REVERSED else "runs against"
    by = f", {sources[0]}" if len(sources) == 1 else ""
    return f"The order of the models by {measure} {relation} their order under attack (Spearman {signed(rho)}{by})"


def _measured(tables, measures):
    # Accuracies of the audit's adversarial measures, in the order of config, with upper bounds of each model alone.
    summary = tables.model_summary
    names = [name for name, settings in measures.items() if settings["kind"] == "adversarial"]
    rows = summary[summary["measure"].isin(names)].assign(label=model_labels)
    rows = rows.sort_values("measure", key=lambda column: column.map(names.index), kind="stable")
    return rows.assign(attacked=rows["value"], bound=rows["value_alone_high"], source=rows["measure"])


def _stated(tables, measures):
    # Robust accuracies that checkpoints or leaderboards state.
    rows = tables.of("model_summary", headline_of(measures)).assign(label=model_labels)
    rows = rows[rows["robust_accuracy"].notna()]
    source = rows["robust_accuracy_source"].where(rows["robust_accuracy_source"] != "published", "as published")
    source = source.fillna("robust accuracy")
    return rows.assign(attacked=rows["robust_accuracy"], bound=rows["robust_accuracy"], source=source)


def _percent(share):
    return f"{100 * share:.2g}%"
