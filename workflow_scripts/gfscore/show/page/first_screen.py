"""The first screen: what was audited, the verdict, the evidence by class, the models, and three findings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.gate_rules import FAIL, INCONCLUSIVE, PASS
from gfscore.audit.verdicts.judging import MOST_REPEATED
from gfscore.audit.verdicts.verdict import Measures, ModelVerdict, RuleVerdict, Verdict, has_attacks, proven_measure
from gfscore.core import numbers
from gfscore.core.names import enumeration, printable
from gfscore.measures import measure_of
from gfscore.show.page.elements import ModelsAndClasses, Scale, Track, finite

MOST_CLASSES, MOST_NAMED = 14, 3
"""Largest number of classes in the picture (the section on classes has all), and of models named in the verdict."""

WORST_CLASS = "wcr"


@dataclass(frozen=True)
class Evidence:
    """Evidence by class of every model: rows, worst first, and how to read them."""

    title: str
    about: str
    scale: Scale
    rows: list[list[Track]]
    classes: int

    @property
    def left_out(self) -> int:
        """Classes that are not among the rows."""
        return max(0, self.classes - MOST_CLASSES)


def evidence_by_class(tables: AuditTables, verdict: Verdict, measures: Measures, index: ModelsAndClasses) -> Evidence:
    """Range in which each class's robust accuracy must lie, of every model; else the judged measure's class values."""
    attacked = verdict.attacked_measure(measures)
    measure = attacked or verdict.judged_measure(measures)
    proven = proven_measure(attacked, measures)
    meaning = measure_of(measures[measure])
    scores = tables.of("class_scores", measure)
    value, low, high, n, clean = (index.grid(scores, name) for name in ("value", "low", "high", "n", "accuracy"))
    below = index.grid(tables.of("class_scores", proven), "value") if proven else None
    below_low = index.grid(tables.of("class_scores", proven), "low") if proven else low
    clean = clean if meaning.value_range == (0.0, 1.0) else np.full(clean.shape, np.nan)
    rows = [
        _rows(
            index,
            {"value": value[m], "low": below_low[m], "high": high[m], "n": n[m], "clean": clean[m]},
            below=None if below is None else below[m],
            attacked=attacked is not None,
            highest=meaning.value_range[1],
        )
        for m in range(len(index.models))
    ]
    rules = [rule for rule in verdict.rules if rule.measure == measure and rule.statistic == WORST_CLASS]
    threshold = float(rules[0].threshold) if rules else None
    lowest, highest = map(float, meaning.value_range)
    return Evidence(
        title="What attacks leave of each class" if attacked else f"{meaning.title} of each class",
        about=_about(attacked, proven, measures),
        scale=Scale(lowest, highest, printable(meaning.title if attacked else meaning.unit), threshold),
        rows=rows,
        classes=len(index.classes),
    )


def _about(attacked, proven, measures):
    if attacked and proven:
        return f"Band: proven ({printable(proven)}) to what attacks leave ({printable(attacked)})"
    if attacked:
        return (
            f"Dot: share of the samples that every attack of {printable(attacked)} leaves right. Nothing is proven: "
            "the band is open to the left, since a stronger attack may leave less"
        )
    if has_attacks(measures):
        return "Nothing here bounds the robust accuracy of a class: the audit has no measure of accuracy under attack"
    return "No measure of this audit attacks: a class is at most as robust as it is accurate; no more is known here"


def _rows(index, values, *, below, attacked, highest):
    sampled = values["n"] > 0
    known, absent = np.flatnonzero(sampled), np.flatnonzero(~sampled)
    order = known[np.argsort(values["value"][known], kind="stable")][:MOST_CLASSES]
    absent = absent[: min(3, MOST_CLASSES - len(order))]
    rows = []
    for k in [*absent, *order]:
        value, low, high, tick = (finite(values[name][k]) for name in ("value", "low", "high", "clean"))
        lowest = 0.0 if below is None else float(below[k])
        band = (lowest, float(values["value"][k])) if attacked and sampled[k] else None
        aside = "" if sampled[k] else "no samples"
        more = {"band": band, "proven": below is not None, "tick": tick, "aside": aside, "highest": highest}
        rows.append(Track(index.classes[k], index.class_short[k], value, low, high, **more))
    return rows


@dataclass(frozen=True)
class Strip:
    """The models: what the gate judges of each, best first, against its threshold."""

    title: str
    scale: Scale
    rows: list[Track]
    judged: bool
    about: str


def strip_of_models(tables: AuditTables, verdict: Verdict, measures: Measures, index: ModelsAndClasses) -> Strip:
    """What the first rule judges of every model; without a rule the worst class of the headline measure."""
    measure = verdict.judged_measure(measures)
    if verdict.rules:
        return _judged_strip(verdict, measure, index)
    return _summary_strip(tables, measures, measure, index)


def _judged_strip(verdict: Verdict, measure: str, index: ModelsAndClasses) -> Strip:
    rule = verdict.rules[0]
    words = verdict.model_verdicts
    title = "Worst class" if rule.statistic == WORST_CLASS else rule.title[:1].upper() + rule.title[1:]
    about = f"Intervals of all models together, {numbers.percent(rule.confidence)} confidence"
    if len(verdict.rules) > 1:
        about += f"; values of the first of {len(verdict.rules)} rules, signs of all"

    lowest, highest = rule.range
    rows = []
    for model in rule.models:
        if model.key in index.position:
            values = model.value, model.low, model.high
            aside = printable(model.worst_class or "")
            rows.append(_model_track(index, model.key, values, highest, word=words[model.key], aside=aside))
    rows.sort(key=_value_or_least, reverse=rule.more_is_better)
    scale = Scale(float(lowest), float(highest), f"{title}, {printable(measure)}", float(rule.threshold))
    return Strip(title, scale, rows, judged=True, about=about)


def _summary_strip(tables: AuditTables, measures: Measures, measure: str, index: ModelsAndClasses) -> Strip:
    title = "Worst class"
    lowest, highest = measure_of(measures[measure]).value_range
    rows = []
    for row in tables.of("model_summary", measure).itertuples():
        key = (row.threat, row.model)
        if key in index.position:
            rows.append(_model_track(index, key, (row.wcr, row.wcr_low, row.wcr_high), highest))
    rows.sort(key=_value_or_least, reverse=True)
    scale = Scale(float(lowest), float(highest), f"{title}, {printable(measure)}", None)
    return Strip(title, scale, rows, judged=False, about="Intervals of each model alone")


def _model_track(
    index: ModelsAndClasses,
    key: tuple[str, str],
    values: tuple[float, float, float],
    highest: float,
    *,
    word: str | None = None,
    aside: str = "",
) -> Track:
    value, low, high = (finite(number) for number in values)
    position = index.position[key]
    name = index.label(*key)
    return Track(name, index.short[position], value, low, high, key=position, word=word, aside=aside, highest=highest)


def _value_or_least(row: Track) -> float:
    return -np.inf if row.value is None else row.value


def verdict_view(verdict: Verdict, index: ModelsAndClasses, measures: Measures) -> dict[str, Any]:
    """The verdict for the first screen: word, each rule in words with its counts, and what would settle the rest."""
    rules = []
    for rule in verdict.rules:
        outcomes = []
        for word in (PASS, FAIL, INCONCLUSIVE):
            models = rule.models_with(word)
            if models:
                names = _names_best_first(models, rule, index)
                outcomes.append({"word": word, "number": len(models), "names": names})
        rules.append(
            {
                "words": demand(rule, measures),
                "settling": settling(rule),
                "outcomes": outcomes,
                "models": len(rule.models),
            }
        )
    warned = [(printable(remark.model), printable(remark.reason)) for remark in verdict.warned]
    return {"word": verdict.verdict, "rules": rules, "warned": warned}


def _names_best_first(models: list[ModelVerdict], rule: RuleVerdict, index: ModelsAndClasses) -> str:
    # As far as there is room.
    best = rule.best_first(models)[:MOST_NAMED]
    names = [index.short[index.position[model.key]] for model in best]
    if len(models) > MOST_NAMED:
        names.append(f"{len(models) - MOST_NAMED:,} more")
    return enumeration(names)


def demand(rule: RuleVerdict, measures: Measures) -> str:
    """What a rule asks, as a question: statistic, measure by its title, threshold and confidence."""
    meaning = measure_of(measures[rule.measure])
    limit = f"{rule.direction.replace('_', ' ')} {numbers.setting(rule.threshold)}"
    title = meaning.title[:1].lower() + meaning.title[1:]
    what = f"{title} ({printable(rule.measure)})"
    if rule.statistic == WORST_CLASS:
        asked = f"is the {what} {limit} in every class"
    else:
        asked = f"is the {rule.title} of {what} {limit}"
    looks = rule.looks
    together = " for all models together" if len(rule.models) > 1 else ""
    look = f", at look {looks.this} of {looks.planned}" if looks.planned > 1 else ""
    return f"Asked: {asked}, with {numbers.percent(rule.confidence)} confidence{together}{look}?"


def settling(rule: RuleVerdict) -> str | None:
    """What would settle the models that a rule leaves undecided, as a clause, or None where there are none."""
    models = rule.models_with(INCONCLUSIVE)
    if not models:
        return None
    unit = "group" if rule.attribute else "class"
    if any(model.classes_without_samples for model in models):
        return f"samples of every {unit} would settle it"
    known = [model for model in models if model.samples_needed_per_class is not None]
    if not known:
        return "no number of samples is known that would settle it"
    about = _span(pd.Series([model.samples_needed_per_class for model in known]))
    which = "it" if len(known) == len(models) else f"{len(known)} of them"
    further = [model.further_samples_needed for model in known if model.further_samples_needed is not None]
    where = f"({numbers.count(max(further))} more in all)" if len(further) == len(known) else "of a new audit"
    return f"about {about} samples per {unit} {where} would settle {which}"


def facts(tables: AuditTables, index: ModelsAndClasses, verdict: Verdict, measure: str) -> dict[str, Any]:
    """What was audited: data, samples and classes of the measure that is judged, models."""
    rows = tables.of("class_scores", measure)
    counts = rows.groupby(["threat", "model"], sort=False)[["n", "n_missing", "n_rows"]].sum()
    expected = counts["n"] + counts["n_missing"]
    repeated = (counts["n_rows"] > (1 + MOST_REPEATED) * expected).any()
    every = tables.class_scores.groupby(["threat", "model", "measure", "calibration"], sort=False)["n"].sum()
    return {
        "dataset": printable(rows["dataset"].iloc[0]),
        "samples": _span(counts["n"]),
        "expected": _span(expected) if counts["n_missing"].any() else None,
        "rows": _span(counts["n_rows"]) if repeated else None,
        "per_class": _span(rows["n"][rows["n"] > 0]),
        "all": _span(every),
        "classes": len(index.classes),
        "models": len(index.models),
        "excluded": len(verdict.excluded),
    }


def _span(counts):
    if counts.empty:
        return "0"
    low, high = counts.min(), counts.max()
    return numbers.count(low) if low == high else f"{numbers.count(low)} to {numbers.count(high)}"
