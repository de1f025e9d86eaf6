"""What the tables of the report page hold, row by row, before it is put into words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gfscore.audit.metrics import AGAINST_CHANCE, METRICS, highest_values
from gfscore.audit.verdicts.gate_rules import FALSIFICATION, combine
from gfscore.core import numbers
from gfscore.core.names import model_labels, printable, without_threat
from gfscore.measures import measure_of
from gfscore.show.words import takeaways
from gfscore.statistics.disparity import worst_class_set
from gfscore.statistics.multiplicity import SIGNIFICANT, holm
from gfscore.statistics.ranking import EXACT_UP_TO, exact_p_value_of, spearman_or_none

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables
    from gfscore.measures.declaration import Measure

T = TypeVar("T")

MOST_CLASSES_LISTED, CLASSES_AT_EACH_END = 100, 12
MOST_EMPTY = 3
INTERVALS = {
    "clopper_pearson": "Clopper-Pearson",
    "hoeffding": "Hoeffding",
    "empirical_bernstein": "empirical Bernstein",
}
"""Methods of intervals that bear names, as they read in a sentence."""


def interval_name(method: str) -> str:
    """A method of intervals, a key of gfscore.statistics.class_bounds.METHODS, as it reads in a sentence."""
    return INTERVALS.get(method, method.replace("_", " "))


def headline_of(measures: Mapping[str, Mapping[str, Any]]) -> str:
    """The measure that pages put first: robustness before accuracy, the attack-free score before all.

    Takes the settings of each measure, in the order of the audit.
    """
    kinds = [settings["kind"] for settings in measures.values()]
    first = next((kind for kind in ("great", "certified") if kind in kinds), kinds[0])
    return next(measure for measure, settings in measures.items() if settings["kind"] == first)


@dataclass(frozen=True)
class Bounded:
    """A value with its lower and upper bound, and the end of its range, beyond which no bound is printed.

    The bounds are None where nothing bounds the value.
    """

    value: float
    low: float | None
    high: float | None
    highest: float


@dataclass(frozen=True)
class MeasureView:
    """Everything the page says about one measure at T = 1."""

    name: str
    kind: str
    meaning: Measure
    confidence: float
    interval: str
    ranking: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    class_names: list[str]
    classes_left_out: int
    vulnerability: list[dict[str, Any]]
    agreements: list[dict[str, Any]]
    alone: dict[str, Any]
    conflict: str | None
    robust_sources: list[str]

    def any_known(self, column: str) -> bool:
        """Whether any model has a value in a column of the ranking that may be unknown for all."""
        return any(not numbers.is_missing(row[column]) for row in self.ranking)


def measure_view(
    tables: AuditTables,
    measure: str,
    settings: Mapping[str, Any],
    *,
    models: Iterable[Mapping[str, Any]],
    verdicts: Mapping[tuple[str, str], str],
) -> MeasureView:
    """MeasureView of one measure.

    Takes AuditTables, name and settings of the measure, `models` (mappings with dataset, threat, model and what is
    known about each) and `verdicts`, as verdicts_of returns them.
    """
    meaning = measure_of(settings)
    summary = tables.of("model_summary", measure)
    scores = tables.of("class_scores", measure)
    known = {(entry["threat"], entry["model"]): entry for entry in models}
    names = _names_in_order(scores)
    highest = highest_values(meaning.value_range, classes=len(names))
    summary = summary.assign(label=model_labels(summary)).sort_values(
        ["value", "label"], ascending=[False, True], ignore_index=True
    )
    ranking = [
        _ranking_row(row, position + 1, known.get((row["threat"], row["model"]), {}), verdicts, highest)
        for position, row in enumerate(summary.to_dict("records"))
    ]
    classes = [_class_rows(scores, row, highest["value"]) for row in ranking]
    ranked = tables.of("vulnerability", measure).to_dict("records")
    return MeasureView(
        name=measure,
        kind=settings["kind"],
        meaning=meaning,
        confidence=float(summary["confidence"].iloc[0]),
        interval=interval_name(summary["interval"].iloc[0]),
        ranking=ranking,
        classes=classes,
        class_names=names,
        classes_left_out=len(ranked) - len(ends_of(ranked)),
        vulnerability=ends_of(ranked),
        agreements=[
            _agreement(summary, "value", "accuracy", "its aggregate and clean accuracy"),
            _agreement(summary, "value", "robust_accuracy", "its aggregate and robust accuracy"),
        ],
        alone=_agreement(summary, "accuracy", "robust_accuracy", "clean accuracy alone and robust accuracy"),
        conflict=takeaways.metric_conflict(summary),
        robust_sources=sorted({row["robust_source"] for row in ranking if row["robust_source"]}),
    )


def _ranking_row(row, position, entry, verdicts, highest):
    cells = {
        name: Bounded(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"), highest[name]) for name in METRICS
    }
    cells["value"] = Bounded(row["value"], row["value_alone_low"], row["value_alone_high"], highest["value"])
    plain = (
        "accuracy", "published_clean_accuracy", "published_robust_accuracy", "robust_accuracy", "between_class_sd",
        "wcr_class", "wcr_tied", "worst_class_set", "threat", "model",
        *(f"{metric.name}_{suffix}" for metric in AGAINST_CHANCE for suffix in ("permuted", "p")),
    )  # fmt: skip
    source = row["robust_accuracy_source"]
    return {
        "position": position,
        "label": row["label"],
        "about": described(entry),
        "verdict": verdicts.get((row["threat"], row["model"])),
        "robust_source": source if isinstance(source, str) else None,
        **cells,
        **{name: row[name] for name in plain},
    }


def described(entry: Mapping[str, Any]) -> str:
    """What a model is, in words: training method, architecture and source, as far as they are known."""
    training = entry.get("training") or {}
    parts = [entry.get(key) or training.get(key) for key in ("method", "architecture")]
    known = [str(part) for part in parts if part]
    return ", ".join(known) or str(entry.get("source") or "")


def verdicts_of(rules: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Verdict of each model over all of `rules` (of verdict.json), by (threat, model)."""
    judged: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        for model in rule["models"]:
            judged.setdefault((model["threat"], model["model"]), []).append(model["verdict"])
    return {model: combine(verdicts) for model, verdicts in judged.items()}


def judged_rules(verdict: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rules of verdict.json as both pages show them: models with labels and bounds, which pass, fail or neither.

    `undecided` are those that do neither, each with its `remedy`; `unit` is what samples are counted per.
    """
    return [_judged_rule(rule) for rule in verdict["rules"]]


def _judged_rule(rule):
    labels = without_threat([f"{model['threat']}/{model['model']}" for model in rule["models"]])
    models = [
        {**model, "label": label, "bounded": Bounded(model["value"], model["low"], model["high"], rule["range"][1])}
        for label, model in zip(labels, rule["models"], strict=True)
    ]
    by_verdict = {
        word: [model for model in models if model["verdict"] == word] for word in ("PASS", "FAIL", "INCONCLUSIVE")
    }
    undecided = [{**model, "remedy": remedy(model, rule)} for model in by_verdict["INCONCLUSIVE"]]
    return {**rule, "models": models, "by_verdict": by_verdict, "undecided": undecided, "unit": _unit(rule)}


def remedy(model: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    """What would settle an undecided model of a rule of verdict.json, as a noun in a sentence.

    The numbers of samples hold if each class, or group, keeps the distribution it has shown.
    """
    empty = [printable(name) for name in model["classes_without_samples"]]
    if empty:
        more = f" and {numbers.count(len(empty) - MOST_EMPTY)} more" if len(empty) > MOST_EMPTY else ""
        return f"samples of {_unit(rule)} {', '.join(empty[:MOST_EMPTY])}{more}"
    if model["samples_needed_per_class"] is None:
        return "no number of samples that could be planned"
    together = rule["statistic"] == FALSIFICATION and rule["class"] is None
    what = "correctly classified samples" if together else f"samples per {_unit(rule)}"
    further = model["further_samples_needed"]
    added = "in a new audit" if further is None else f"({numbers.count(further)} more in all)"
    return f"about {numbers.count(model['samples_needed_per_class'])} {what} {added}"


def _unit(rule):
    return "group" if rule["attribute"] else "class"


def _names_in_order(scores):
    return list(scores.drop_duplicates("class_index").sort_values("class_index")["class_name"])


def _class_rows(scores, model, highest):
    rows = scores[(scores["threat"] == model["threat"]) & (scores["model"] == model["model"])]
    rows = rows.sort_values("class_index", ignore_index=True)
    suspects = worst_class_set(rows["low"], rows["high"])
    listed = [
        {
            "name": row.class_name,
            "n": int(row.n),
            "value": Bounded(row.value, row.low, row.high, highest),
            "accuracy": row.accuracy,
            "suspect": index in suspects,
        }
        for index, row in enumerate(rows.itertuples())
    ]
    if len(listed) > MOST_CLASSES_LISTED:
        listed.sort(key=lambda row: (row["n"] == 0, row["value"].value))
    return {"label": model["label"], "rows": ends_of(listed), "suspects": len(suspects)}


def ends_of(rows: list[T]) -> list[T]:
    """Rows of classes as a table lists them: all of up to 100, else the first and the last 12."""
    if len(rows) <= MOST_CLASSES_LISTED:
        return rows
    return rows[:CLASSES_AT_EACH_END] + rows[-CLASSES_AT_EACH_END:]


def _agreement(summary, first, second, words):
    both = summary[[first, second]].dropna()
    rho = spearman_or_none(both[first], both[second]) if len(both) > 1 else None
    exact = rho is not None and len(both) <= EXACT_UP_TO
    return {
        "words": words,
        "rho": rho,
        "models": len(both),
        "p": exact_p_value_of(both[first], both[second]) if exact else None,
        "p_two_sided": takeaways.rank_p_value(both[first], both[second]) if rho is not None else None,
        "trivial": bool(np.allclose(both[first], both[second])),
    }


def against_robust_accuracy(views: Iterable[MeasureView]) -> list[tuple[str, float]]:
    """Measures that order the models significantly against their robust accuracy: pairs (name, rho).

    By Holm over the measures, so that unrelated ones are named with probability at most SIGNIFICANT.
    """
    tested = [(view.name, view.agreements[1]) for view in views if view.agreements[1]["p_two_sided"] is not None]
    adjusted = holm([row["p_two_sided"] for _, row in tested], family=len(tested))
    found = zip(tested, adjusted, strict=True)
    return [(name, row["rho"]) for (name, row), p in found if row["rho"] < 0 and p <= SIGNIFICANT]


def agreement_rows(views: Sequence[MeasureView]) -> list[tuple[str | None, dict[str, Any]]]:
    """Rank agreements of all measures as (measure or None, row).

    Without those that hold by definition, and those with an accuracy that is unknown for every model.
    """
    rows = [(view.name, row) for view in views if not view.agreements[0]["trivial"] for row in view.agreements]
    return [(name, row) for name, row in [*rows, (None, views[0].alone)] if row["models"]]
