"""Findings of an audit, from its tables and its verdict, and the verdict with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gfscore.audit.agreement.falsification import FEW_MODELS, REFUTED, mean_scores_against_distances, rank_relation
from gfscore.audit.calibration.evidence import ROBUST, alone
from gfscore.audit.findings.finding import Finding
from gfscore.audit.groups.scores import group_gaps
from gfscore.audit.verdicts.verdict import (
    ATTACK_FREE,
    ATTACKED,
    Measures,
    headline_of,
    judged_measure,
    judged_models,
    ran_attacks,
    shown_model,
)
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels
from gfscore.statistics.classes import TIE_TOLERANCE, worst_class_set
from gfscore.tables.table import ALL

if TYPE_CHECKING:
    from gfscore.audit.tables import AuditTables
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gfscore.audit.tables import AuditTables


HALF = 0.5
"""A model that passes is said to fall where its accuracy under attack is surely below this."""

FEW = 20
"""A class is said to have few samples below this number: an interval of 95% is then wider than 0.4 at one half."""

KEY = ["threat", "model"]


def findings_of(tables: AuditTables, verdict: Mapping[str, Any], measures: Measures) -> list[Finding]:
    """Every finding of an audit by rank, from AuditTables, the contents of verdict.json and settings by measure."""
    judged = judged_measure(verdict, measures)
    scores = tables.of("class_scores", judged)
    found = [
        *_of_attacks(tables, verdict, measures, judged),
        *_of_distances(tables),
        *_of_certificates(tables),
        *_of_classes(scores, verdict, judged),
        *_of_groups(tables, judged),
        *_of_models(tables, judged),
        *_of_few_samples(scores, judged),
        *_of_undecided(verdict),
        *_of_calibration(tables),
    ]
    order = list(dict.fromkeys(finding.kind for finding in found))
    return sorted(found, key=lambda finding: (finding.rank, order.index(finding.kind)))


def _of_attacks(tables, verdict, measures, judged):
    bounded, stated = _measured(tables, measures), _stated(tables, measures)
    if not ran_attacks(measures):
        attack_free = measures[judged]["kind"] == ATTACK_FREE
        source = stated["source"].iloc[0] if len(stated) else None
        yield Finding("no_attack", {"measure": judged, "attack_free": attack_free, "stated": source})
    if measures[judged]["kind"] != ATTACKED:
        yield from _passing_model_falls(bounded if len(bounded) else stated, verdict)
    for name in (name for name, settings in measures.items() if settings["kind"] == ATTACK_FREE):
        yield from _order_reversed(tables, name, stated if stated[KEY].drop_duplicates().shape[0] > 1 else bounded)


def _passing_model_falls(rows, verdict):
    words = judged_models(verdict)
    passing = {model for model, word in words.items() if word == "PASS"}
    # As an array: of no rows, a list would select no columns.
    passes = np.array([key in passing for key in zip(rows["threat"], rows["model"], strict=True)], dtype=bool)
    low = rows[passes & (rows["bound"].to_numpy() < HALF)]
    if low.empty:
        return
    first = low.sort_values("attacked", kind="stable").iloc[0]
    numbers = {"accuracy": first["attacked"], "high": first["bound"], "others": len(low.drop_duplicates(KEY)) - 1}
    confidence = first["confidence"] if first["bounded"] else None
    yield Finding(
        "passing_model_falls", {"model": first["label"], "source": first["source"]}, _plain(numbers), confidence
    )


def _order_reversed(tables, measure, rows):
    # One kind of attack, chosen before any is looked at: there is nothing to correct for.
    scores = tables.of("model_summary", measure)[[*KEY, "value"]]
    both = scores.merge(rows.drop_duplicates(KEY)[[*KEY, "attacked", "source"]], on=KEY)
    if len(both) < FEW_MODELS:
        return
    rho, clear = rank_relation(both["value"], both["attacked"])
    if clear and rho < 0:
        subject = {"measure": measure, "source": both["source"].iloc[0]}
        yield Finding("order_reversed", subject, {"rho": rho, "models": len(both)})


def _measured(tables, measures):
    # Accuracies of the audit's adversarial measures, in the order of config, with upper bounds of each model alone.
    names = [name for name, settings in measures.items() if settings["kind"] == ATTACKED]
    summary = tables.model_summary
    rows = summary[summary["measure"].isin(names)].assign(label=model_labels)
    rows = rows.sort_values("measure", key=lambda column: column.map(names.index), kind="stable")
    return rows.assign(attacked=rows["value"], bound=rows["value_alone_high"], source=rows["measure"], bounded=True)


def _stated(tables, measures):
    # Robust accuracies that checkpoints or leaderboards state.
    rows = tables.of("model_summary", headline_of(measures)).assign(label=model_labels)
    rows = rows[rows["robust_accuracy"].notna()]
    source = rows["robust_accuracy_source"].where(rows["robust_accuracy_source"] != "published", "as published")
    source = source.fillna("robust accuracy")
    return rows.assign(attacked=rows["robust_accuracy"], bound=rows["robust_accuracy"], source=source, bounded=False)


def _of_distances(tables):
    table = tables.measures.get("falsification")
    if table is None:
        return
    whole = table[(table["class_index"] == ALL) & (table["calibration"] == UNCALIBRATED) & table["rate"].notna()]
    for (score, distances), rows in whole.groupby(["measure", "distances"], sort=False):
        refuted = int((mean_scores_against_distances(rows) == REFUTED).sum())
        if rows["rate"].max() > 0:
            numbers = {
                "models": len(rows),
                "refuted": refuted,
                "least": rows["rate"].min(),
                "most": rows["rate"].max(),
            }
            subject = {"score": score, "distances": distances}
            yield Finding("score_refuted", subject, _plain(numbers), float(rows["confidence"].iloc[0]))


def _of_certificates(tables):
    table = tables.measures.get("refutations")
    beyond = table[~table["within_chance"].astype(bool)] if table is not None else pd.DataFrame()
    if len(beyond):
        numbers = {"models": len(beyond), "refuted": int(beyond["refuted"].sum()), "n": int(beyond["n"].sum())}
        yield Finding("certificates_refuted", {"measure": beyond["measure"].iloc[0]}, numbers)
    signs = tables.measures.get("masking_signs")
    if signs is not None and len(signs):
        first = signs.sort_values("proof", ascending=False, kind="stable").iloc[0]
        subject = {"model": first["model"], "measure": first["measure"], "proof": bool(first["proof"])}
        numbers = {name: int(first[name]) for name in ("count", "n")} | {"models": len(signs[KEY].drop_duplicates())}
        yield Finding("gradients_masked", subject, numbers)


def _of_classes(scores, verdict, measure):
    scores = scores.assign(class_name=_readable(scores))
    shown = shown_model(verdict)
    models = {key: rows for key, rows in scores.groupby(KEY, sort=False) if (rows["n"] > 0).any()}
    if not models:
        return
    key = shown if shown is not None and shown in models else next(iter(models))
    rows = models[key]
    label = dict(zip(zip(scores["threat"], scores["model"], strict=True), model_labels(scores), strict=True))[key]
    absent = list(rows.loc[rows["n"] == 0, "class_name"])
    if absent:
        yield Finding("classes_without_samples", {"classes": absent[:3]}, {"count": len(absent), "classes": len(rows)})
    measured = rows[rows["n"] > 0].sort_values(["value", "class_index"])
    if len(measured) < 2:
        return
    first, second = measured.iloc[0], measured.iloc[1]
    suspects = worst_class_set(rows["low"], rows["high"])
    numbers = {
        **{name: first[name] for name in ("value", "low", "high")},
        "next": second["value"],
        "gap": second["value"] - first["value"],
        "suspects": len(suspects),
        "classes": len(measured),
        "models": len(models),
        "times": sum(_lowest(own, first["class_name"]) for own in models.values()),
    }
    subject = {"model": label, "measure": measure, "class": first["class_name"], "next": second["class_name"]}
    kind = "weakest_class" if rows["low"].max() > rows["high"].min() else "no_weakest_class"
    yield Finding(kind, subject, _plain(numbers), _confidence(first))


def _of_few_samples(scores, measure):
    fewest = scores.groupby("class_index")["n"].min()  # models may lack different samples
    few = fewest[(fewest > 0) & (fewest < FEW)]
    if len(few):
        numbers = {"count": len(few), "classes": len(fewest), "least": int(few.min()), "below": FEW}
        yield Finding("few_samples", {"measure": measure}, numbers)


def _lowest(rows, name):
    known = rows[rows["n"] > 0]
    return bool((known.loc[known["class_name"] == name, "value"] <= known["value"].min() + TIE_TOLERANCE).any())


def _readable(scores):
    names = scores.drop_duplicates("class_index").sort_values("class_index")
    readable = dict(zip(names["class_index"], readable_classes(list(names["class_name"])), strict=True))
    return scores["class_index"].map(readable)


def _of_groups(tables, judged):
    scores = tables.measures.get("group_scores")
    if scores is None:
        return
    gaps = group_gaps(scores[scores["measure"] == judged])
    if "sampled_gap" not in gaps or gaps["sampled_gap"].isna().all():
        return
    gaps = gaps.assign(label=model_labels(gaps))
    sampled = gaps[gaps["sampled_gap"].notna()]
    sure = sampled[sampled["gap_low"] > 0]
    widest = (sure if len(sure) else sampled).sort_values("sampled_gap", ascending=False, kind="stable").iloc[0]
    subject = {
        **{name: widest[name] for name in ("label", "attribute")},
        "measure": judged,
        "lowest": widest["sampled_lowest"],
        "highest": widest["sampled_highest"],
    }
    numbers = {
        "low_value": widest["sampled_low_value"],
        "high_value": widest["sampled_high_value"],
        "sure": len(sure[KEY].drop_duplicates()),
        "models": len(gaps[KEY].drop_duplicates()),
    }
    yield Finding("groups_differ", subject, _plain(numbers), float(widest["confidence"]))


def _of_models(tables, measure):
    ranks = tables.rank_intervals
    ranks = ranks[ranks["measure"] == measure] if ranks is not None else pd.DataFrame()
    if len(ranks) > 1:
        first = ranks[ranks["rank_best"] == 1]
        pairs = tables.model_comparisons
        pairs = pairs[pairs["measure"] == measure] if pairs is not None else pd.DataFrame({"p_holm": []})
        alpha = 1 - float(ranks["confidence"].iloc[0]) + 1e-12
        labels = dict(zip(ranks.index, model_labels(ranks), strict=True))
        order = first.sort_values("rank")
        numbers = {
            "models": len(ranks),
            "best": len(first),
            "pairs": len(pairs),
            "different": int((pairs["p_holm"] <= alpha).sum()),
        }
        subject = {"measure": measure, "models": [labels[place] for place in order.index[:3]]}
        kind = "no_best_model" if len(first) == len(ranks) else "best_models"
        yield Finding(kind, subject, numbers, float(ranks["confidence"].iloc[0]))
    summary = tables.of("model_summary", measure)
    if len(summary) >= FEW_MODELS:
        relations = {name: rank_relation(summary["value"], summary[name]) for name in ("rdi", "nrgc", "rdi_over_mean")}
        rhos = {name: rho for name, (rho, clear) in relations.items() if clear}
        opposed = [name for name in ("nrgc", "rdi_over_mean") if rhos.get("rdi", 0) * rhos.get(name, 0) < 0]
        if opposed:
            yield Finding(
                "metrics_disagree",
                {"measure": measure, "metric": opposed[0]},
                {"rdi": rhos["rdi"], "other": rhos[opposed[0]], "models": len(summary)},
            )


def _of_undecided(verdict):
    for rule in verdict["rules"]:
        models = [model for model in rule["models"] if model["verdict"] == "INCONCLUSIVE"]
        if models:
            needed = [model["samples_needed_per_class"] for model in models]
            known = [number for number in needed if number is not None]
            best_first = sorted(models, key=lambda model: model["value"], reverse=rule["direction"] == "at_least")
            yield Finding(
                "undecided_models",
                {"models": [model["model"] for model in best_first[:3]], "rule": rule["words"]},
                {
                    "count": len(models),
                    "of": len(rule["models"]),
                    "least": min(known) if known else None,
                    "most": max(known) if known else None,
                    "known": len(known),
                },
                rule["confidence"],
            )


def _of_calibration(tables):
    results = tables.calibration_results or {}
    after = {name: result["agreement"].get(ROBUST, {}).get("after") for name, result in results.items()}
    known = {name: rho for name, rho in after.items() if rho is not None}
    baselines = [result["baseline"].get(alone(ROBUST)) for result in results.values()]
    baselines = [rho for rho in baselines if rho is not None]
    if not known or not baselines:
        return
    best = max(known, key=lambda name: known[name])
    before = results[best]["agreement"][ROBUST].get("before")
    if known[best] <= max(0, baselines[0]) or (before is not None and before >= known[best]):
        subject = {"objective": best, "measure": results[best]["measure"]}
        yield Finding("calibration_fails", subject, {"after": known[best], "before": before, "alone": baselines[0]})


def _confidence(row):
    return None if math.isnan(row["confidence"]) else float(row["confidence"])


def _plain(numbers):
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in numbers.items()}


BESIDE = ("passing_model_falls", "no_attack", "few_samples")
"""Kinds of findings that a verdict is not read without: it rests on less than an attack, or on few samples."""


def with_findings(
    verdict: Mapping[str, Any], tables: AuditTables, measures: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Contents of verdict.json with the findings of the audit.

    Where the gate rests on a weaker evidence than the audit holds, `sentence` ends with what the stronger one says;
    where it rests on few samples, with that.
    Takes AuditTables and the settings of every measure of the audit.
    """
    findings = as_data(findings_of(tables, verdict, measures))
    sentence = " ".join([verdict["sentence"], *(f"But {lowered(words)}." for words in beside(findings))])
    return {**verdict, "sentence": sentence, "findings": findings}


def beside(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences that belong beside the verdict, of findings as verdict.json holds them."""
    return [
        finding["sentence"]
        for finding in findings
        if finding["kind"] in BESIDE and finding["subject"].get("attack_free", True)
    ]


def lowered(sentence: str) -> str:
    """Sentence as it goes on behind "But": a first word of the template in small letters, a name as it is."""
    of_template = sentence.startswith(("No ", "All ", "Both ", "The only "))
    return sentence[:1].lower() + sentence[1:] if of_template else sentence


def as_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data for JSON, each with its section and its sentence."""
    return [
        {
            "kind": finding.kind,
            "section": finding.section,
            "rank": finding.rank,
            "subject": dict(finding.subject),
            "numbers": dict(finding.numbers),
            "confidence": finding.confidence,
            "sentence": finding.sentence,
        }
        for finding in findings
    ]


def first_findings(worded: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """The `most` findings that stand first: the first of each rank, then the next ones, in the order of rank.

    Takes what as_data returns.
    """
    seen: list[int] = []
    place = []
    for position, finding in enumerate(worded):
        place.append((seen.count(finding["rank"]), position))
        seen.append(finding["rank"])
    chosen = sorted(sorted(range(len(worded)), key=lambda position: place[position])[:most])
    return [worded[position] for position in chosen]
