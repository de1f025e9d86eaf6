"""The first screen: what was audited, the verdict, the evidence by class, the models, and up to three findings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.findings.finding import REMEDY, FindingInWords, first_findings
from gfscore.audit.findings.words import in_words
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.findings import qualifying_sentences
from gfscore.audit.verdicts.gate_rules import DECLINE, FAIL, INCONCLUSIVE, PASS
from gfscore.audit.verdicts.judging import MOST_REPEATED
from gfscore.audit.verdicts.verdict import (
    EVIDENCE_INTERVAL,
    WORST_CLASS,
    Measures,
    RuleVerdict,
    Verdict,
    evidence_interval_of,
    has_attacks,
)
from gfscore.core import numbers
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import enumeration, printable, upper_first
from gfscore.show.page.elements import ModelsAndClasses, finite
from gfscore.show.page.provenance import data_of, remarks_of, time_of, version_of
from gfscore.show.page.tracks import Scale, Track

MOST_CLASSES = 14
"""Largest number of classes in the picture; the section on classes has all."""

MOST_EMPTY = 3
"""Largest number of classes without samples in the picture."""

MOST_NAMED = 3
"""Largest number of models that the verdict names."""

MOST_FINDINGS = 3

OPEN_BAND = "band: what undecided samples leave open"


# ---- the screen ----


@dataclass(frozen=True)
class Evidence:
    """Evidence by class of every model: rows, worst first, whether they are ranges, and how to read them.

    `per_class` is the number of samples of a class.
    `judged_first` says whether its threshold is the first rule's, like the threshold of the models; `crossed`, whether
    the interval of a class begins below it in a model that passes.
    """

    title: str
    about: str
    scale: Scale
    rows: list[list[Track]]
    classes: int
    per_class: str
    ranges: bool
    judged_first: bool
    crossed: bool

    @property
    def left_out(self) -> int:
        """Number of classes that are not among the rows."""
        return max(0, self.classes - MOST_CLASSES)


@dataclass(frozen=True)
class Strip:
    """The models: what the gate judges of each, best first, against its threshold."""

    title: str
    scale: Scale
    rows: list[Track]
    judged: bool
    more_is_better: bool
    about: str
    ranges: bool = False


@dataclass(frozen=True)
class Outcome:
    """Models that one rule gives the same verdict: the verdict, their number, and names of the best."""

    word: str
    number: int
    names: str


@dataclass(frozen=True)
class RuleView:
    """A rule in words, what would settle its undecided models, its outcomes, and its number of models."""

    words: str
    settling: str | None
    outcomes: list[Outcome]
    models: int


@dataclass(frozen=True)
class VerdictView:
    """The verdict as a word, its rules, and the models that readers are warned of, each with the reason."""

    word: str
    rules: list[RuleView]
    warned: list[tuple[str, str]]


@dataclass(frozen=True)
class FirstScreen:
    """Values of the template at the top of the page.

    Parameters
    ----------
    measure : str
        Measure that the gate judges.
    chosen : int
        Position of the model whose classes are shown first.
    labels, classes : list of str
        Whole names of models and classes.
    facts : dict
        What was audited.
    judged_at, judged_by, data_digest : str
        When the verdict was judged, by which version, and the first letters of the dataset's digest.
    verdict : VerdictView
    qualifications : list of str
        Sentences that the verdict is not read without.
    remarks : list of str
        Remarks on samples.
    evidence : Evidence
    strip : Strip
    remedy : str or None
        What a remedy does to the worst class of a model that fails, in a few words.
    findings : list of FindingInWords
        The first ones of those that the verdict above them does not say.
    """

    measure: str
    chosen: int
    labels: list[str]
    classes: list[str]
    facts: dict[str, str | int | None]
    judged_at: str
    judged_by: str
    data_digest: str
    verdict: VerdictView
    qualifications: list[str]
    remarks: list[str]
    evidence: Evidence
    strip: Strip
    remedy: str | None
    findings: list[FindingInWords]


def first_screen(tables: AuditTables, verdict: Verdict, measures: Measures, index: ModelsAndClasses) -> FirstScreen:
    """The first screen of an audit's page.

    Parameters
    ----------
    tables : AuditTables
    verdict : Verdict
        With its findings.
    measures : mapping of str to NamedMeasure
        The audit's measures by name.
    index : ModelsAndClasses
    """
    measure = verdict.judged_measure(measures)
    model = verdict.shown_model
    chosen = 0
    if model is not None:
        chosen = index.position.get(model, 0)

    qualifications = qualifying_sentences(verdict.findings)
    findings = []
    for finding in verdict.findings:
        # The verdict itself says which models stay undecided and what would settle them.
        if finding.kind != "undecided_models" and finding.rank != REMEDY and finding.sentence not in qualifications:
            findings.append(finding)

    return FirstScreen(
        measure=measure,
        chosen=chosen,
        labels=index.labels,
        classes=index.classes,
        facts=facts(tables, index, verdict, measure),
        judged_at=time_of(verdict),
        judged_by=version_of(verdict),
        data_digest=data_of(verdict),
        verdict=verdict_view(verdict, index, measures),
        qualifications=qualifications,
        remarks=remarks_of(verdict),
        evidence=evidence_by_class(tables, verdict, measures, index),
        strip=strip_of_models(tables, verdict, measures, index),
        remedy=remedy_of_failing(verdict),
        findings=first_findings(findings, MOST_FINDINGS),
    )


def facts(tables: AuditTables, index: ModelsAndClasses, verdict: Verdict, measure: str) -> dict[str, str | int | None]:
    """What was audited: data, samples and classes of the measure that is judged, models."""
    # `n` counts the samples without a value too.
    scores = tables.class_scores
    scores = scores.assign(measured=scores["n"] - scores["n_missing"])
    counts_of_every_measure = scores.groupby(["threat", "model", "measure", "calibration"], sort=False)[
        "measured"
    ].sum()
    rows = scores[(scores["measure"] == measure) & (scores["calibration"] == UNCALIBRATED)]
    counts = rows.groupby(["threat", "model"], sort=False)[["measured", "n", "n_missing", "n_rows"]].sum()
    repeated = (counts["n_rows"] > (1 + MOST_REPEATED) * counts["n"]).any()
    return {
        "dataset": printable(rows["dataset"].iloc[0]),
        "samples": _span(counts["measured"]),
        "expected": _span(counts["n"]) if counts["n_missing"].any() else None,
        "rows": _span(counts["n_rows"]) if repeated else None,
        "per_class": _span(rows["measured"]),
        "all": _span(counts_of_every_measure),
        "classes": len(index.classes),
        "models": len(index.models),
        "excluded": len(verdict.excluded),
    }


def _span(counts: pd.Series) -> str:
    if counts.empty:
        return "0"
    return numbers.count_range(counts.min(), counts.max())


# ---- evidence by class ----


def evidence_by_class(tables: AuditTables, verdict: Verdict, measures: Measures, index: ModelsAndClasses) -> Evidence:
    """Range in which each class's robust accuracy must lie, of every model.

    From what is proven to what attacks leave; without a proof what attacks leave, open to the left; without a measure
    of accuracy under attack the class values of the judged measure.
    """
    interval = verdict.evidence_interval(measures)
    attacked = verdict.attacked_measure(measures)
    measure = interval or attacked or verdict.judged_measure(measures)
    meaning = measures[measure].description
    lowest, highest = map(float, meaning.value_range)

    scores = tables.of_measure("class_scores", measure)
    grids = {name: index.grid(scores, name) for name in ("value", "value_most", "low", "high", "n")}
    grids["clean"] = np.full(grids["value"].shape, np.nan)
    if meaning.value_range == (0.0, 1.0):
        grids["clean"] = index.grid(scores, "accuracy")
    if interval:
        grids["band_low"] = grids["value"]
    elif attacked:
        grids["band_low"] = np.zeros(grids["value"].shape)

    rows = []
    for position in range(len(index.models)):
        values_of_model = {name: grid[position] for name, grid in grids.items()}
        rows.append(_class_rows(index, values_of_model, closed=interval is not None, highest=highest))

    rule = _rule_on_classes(verdict, measure, measures)
    threshold = None if rule is None else float(rule.threshold)
    crossed = False
    if rule is not None and rule.measure == measure:
        passing = [index.position[model.key] for model in rule.models_with(PASS) if model.key in index.position]
        crossed = bool((grids["low"][passing] < rule.threshold).any())
    title = f"{meaning.title} of each class"
    unit = meaning.unit
    if attacked:
        ball = meaning.title.partition(", ")[2]
        title = (
            f"Each class between proof and attack, {ball}" if interval else f"What attacks leave of each class, {ball}"
        )
        unit = meaning.title
    return Evidence(
        title=title,
        about=_about(interval, attacked, measures, tables),
        scale=Scale(lowest, highest, printable(unit), threshold),
        rows=rows,
        classes=len(index.classes),
        per_class=_span(scores["n"][scores["n"] > 0]),
        ranges=interval is not None,
        judged_first=rule is not None and rule is verdict.rules[0],
        crossed=crossed,
    )


def _rule_on_classes(verdict: Verdict, measure: str, measures: Measures) -> RuleVerdict | None:
    # The first one about the worst class of this measure, or of one that it is made of.
    for rule in verdict.rules:
        names = (rule.measure, evidence_interval_of(rule.measure, measures))
        if measure in names and rule.statistic == WORST_CLASS:
            return rule
    return None


def _about(interval: str | None, attacked: str | None, measures: Measures, tables: AuditTables) -> str:
    # How to read the evidence by class.
    if interval:
        rows = tables.of_measure("model_summary", interval)
        if len(rows) == 1:
            (row,) = rows.itertuples()
            proven, left = numbers.lower_bound(row.value), numbers.upper_bound(row.value_most, highest=1)
            shares = f"Of all samples {proven} is proven robust, and attacks leave {left}"
        else:
            proven = numbers.span(rows["value"].min(), rows["value"].max(), 1)
            left = numbers.span(rows["value_most"].min(), rows["value_most"].max(), 1)
            shares = f"By model, {proven} of all samples is proven robust, and attacks leave {left}"
        ball = measures[interval].description.title.partition(", ")[2]
        return (
            f"{shares}. Band: from the share of samples that is proven ({printable(ball)}) to the share that attacks "
            f"leave; in between, open ({printable(interval)}). Dot: nothing is open"
        )
    if attacked:
        return (
            f"Dot: share of the samples that every attack of {printable(attacked)} leaves right. Nothing is proven: "
            "the band is open to the left, since a stronger attack may leave less"
        )
    if has_attacks(measures):
        return "Nothing here bounds the robust accuracy of a class: the audit has no measure of accuracy under attack"
    return "No measure of this audit attacks: a class is at most as robust as it is accurate; no more is known here"


def _class_rows(index: ModelsAndClasses, values: dict[str, Any], *, closed: bool, highest: float) -> list[Track]:
    # Classes of one model, from arrays (K,): the ones without samples, then the lowest ones.
    sampled = values["n"] > 0
    present = np.flatnonzero(sampled)
    # Of classes with equal proven shares, the class that attacks leave less of.
    order = np.lexsort((values["value_most"][present], values["value"][present]))
    lowest_first = present[order][:MOST_CLASSES]
    empty = np.flatnonzero(~sampled)[: min(MOST_EMPTY, MOST_CLASSES - len(lowest_first))]

    rows = []
    for k in [*empty, *lowest_first]:
        band = None
        if sampled[k] and "band_low" in values:
            band = (float(values["band_low"][k]), float(values["value_most"][k]))
        track = Track(
            index.classes[k],
            index.class_short[k],
            finite(values["value"][k]),
            finite(values["low"][k]),
            finite(values["high"][k]),
            band=band,
            closed=closed,
            clean=finite(values["clean"][k]),
            missing=numbers.MISSING if sampled[k] else "no samples",
            highest=highest,
        )
        rows.append(track)
    return rows


# ---- models ----


def strip_of_models(tables: AuditTables, verdict: Verdict, measures: Measures, index: ModelsAndClasses) -> Strip:
    """What the first rule judges of every model; without a rule the worst class of the headline measure."""
    measure = verdict.judged_measure(measures)
    if verdict.rules:
        return _judged_strip(verdict, measures, measure, index)

    lowest, highest = measures[measure].description.value_range
    rows = []
    for row in tables.of_measure("model_summary", measure).itertuples():
        key = (row.threat, row.model)
        if key in index.position:
            position = index.position[key]
            is_range = row.wcr_most > row.wcr
            track = Track(
                index.labels[position],
                index.short[position],
                finite(row.wcr),
                finite(row.wcr_low),
                finite(row.wcr_high),
                band=(row.wcr, row.wcr_most) if is_range else None,
                closed=is_range,
                model=position,
                highest=highest,
            )
            rows.append(track)
    _sort_best_first(rows, more_is_better=True)
    title = "Worst class"
    scale = Scale(float(lowest), float(highest), f"{title}, {printable(measure)}", None)
    about = "Intervals of each model alone"
    ranges = any(row.is_range for row in rows)
    if ranges:
        about += f"; {OPEN_BAND}"
    return Strip(title, scale, rows, judged=False, more_is_better=True, about=about, ranges=ranges)


def _judged_strip(verdict: Verdict, measures: Measures, measure: str, index: ModelsAndClasses) -> Strip:
    rule = verdict.rules[0]
    verdicts = verdict.model_verdicts
    title = "Worst class" if rule.statistic == WORST_CLASS else upper_first(rule.title)
    about = f"Intervals of all models together, {numbers.percent(rule.confidence)} confidence"
    if len(verdict.rules) > 1:
        about += f"; values of the first of {len(verdict.rules)} rules, signs of all"

    proven = rule.statistic == WORST_CLASS and measures[measure].kind.name == EVIDENCE_INTERVAL
    if proven:
        about += "; band: from what is proven to what attacks leave"
    elif any(model.value_most > model.value for model in rule.models):
        about += f"; {OPEN_BAND}"
    lowest, highest = rule.range
    rows = []
    for model in rule.models:
        if model.key in index.position:
            position = index.position[model.key]
            is_range = proven or model.value_most > model.value
            track = Track(
                index.labels[position],
                index.short[position],
                finite(model.value),
                finite(model.low),
                finite(model.high),
                band=(model.value, model.value_most) if is_range else None,
                closed=is_range,
                model=position,
                verdict=verdicts[model.key],
                highest=highest,
            )
            rows.append(track)
    _sort_best_first(rows, more_is_better=rule.more_is_better)
    scale = Scale(float(lowest), float(highest), f"{title}, {printable(measure)}", float(rule.threshold))
    ranges = any(row.is_range for row in rows)
    return Strip(title, scale, rows, judged=True, more_is_better=rule.more_is_better, about=about, ranges=ranges)


def _sort_best_first(rows: list[Track], *, more_is_better: bool) -> None:
    # Models without a value are last in either direction.
    sign = -1 if more_is_better else 1
    rows.sort(key=lambda row: np.inf if row.value is None else sign * row.value)


# ---- verdict ----


def remedy_of_failing(verdict: Verdict) -> str | None:
    """What the surest remedy of a model that does not pass would do, in a few words; None where none was measured."""
    verdicts = verdict.model_verdicts
    for word in (FAIL, INCONCLUSIVE):
        for finding in verdict.findings:
            model = str(finding.subject.get("threat")), str(finding.subject.get("name"))
            if finding.rank == REMEDY and verdicts.get(model) == word:
                return in_words(f"{finding.kind}_in_short", finding.subject, finding.numbers, finding.confidence)
    return None


def verdict_view(verdict: Verdict, index: ModelsAndClasses, measures: Measures) -> VerdictView:
    """The verdict for the first screen: word, each rule in words with its counts, and what would settle the rest."""
    rules = []
    for rule in verdict.rules:
        outcomes = []
        for word in (PASS, FAIL, INCONCLUSIVE):
            models = rule.models_with(word)
            if not models:
                continue
            best = rule.best_first(models)[:MOST_NAMED]
            names = [index.short[index.position[model.key]] for model in best]
            if len(models) > MOST_NAMED:
                names.append(f"{len(models) - MOST_NAMED:,} more")
            outcomes.append(Outcome(word, len(models), enumeration(names)))
        rules.append(RuleView(demand(rule, measures), settling(rule), outcomes, len(rule.models)))

    warned = [(printable(remark.model), printable(remark.reason)) for remark in verdict.warned]
    return VerdictView(verdict.verdict, rules, warned)


def demand(rule: RuleVerdict, measures: Measures) -> str:
    """What a rule asks, as a question: statistic, measure by its title, threshold and confidence."""
    meaning = measures[rule.measure].description
    title = meaning.title[:1].lower() + meaning.title[1:]
    measure = f"{title} ({printable(rule.measure)})"
    limit = f"{rule.direction.replace('_', ' ')} {numbers.setting(rule.threshold)}"
    if rule.statistic == WORST_CLASS:
        question = f"is the {measure} {limit} in every class"
    elif rule.statistic == DECLINE:
        question = f"does no class decline in {measure} by more than {numbers.setting(rule.threshold)} "
        question += "since the last release"
    else:
        question = f"is the {rule.title} of {measure} {limit}"

    confidence = f"with {numbers.percent(rule.confidence)} confidence"
    if len(rule.models) > 1:
        confidence += " for all models together"
    if rule.looks.planned > 1:
        confidence += f", at look {rule.looks.this} of {rule.looks.planned}"
    rests_on = ""
    if measures[rule.measure].kind.name == EVIDENCE_INTERVAL:
        rests_on = " PASS takes proofs, FAIL takes attacks."
    return f"Asked: {question}, {confidence}?{rests_on}"


def settling(rule: RuleVerdict) -> str | None:
    """What would settle the models that a rule leaves undecided, as a clause, or None where there are none."""
    models = rule.models_with(INCONCLUSIVE)
    if not models:
        return None
    unit = "group" if rule.attribute else "class"
    needed = []
    lacking = 0
    further = []
    deciding = []
    for model in models:
        if model.samples_needed_per_class is not None:
            needed.append(model.samples_needed_per_class)
            if model.further_samples_needed is not None:
                further.append(model.further_samples_needed)
        elif model.classes_without_samples:
            lacking += 1
        elif model.open_samples is not None and model.open_samples.cause:
            deciding.append(model.open_samples)

    clauses = []
    if lacking:
        of_these = "" if lacking == len(models) else f"for {numbers.count(lacking)} of them "
        clauses.append(f"{of_these}it takes samples of every {unit}")
    if deciding and len(models) == 1:
        clauses.append(deciding[0].words)
    elif deciding:
        samples = _span(pd.Series([open_samples.count for open_samples in deciding]))
        settled = sum(open_samples.may_settle for open_samples in deciding)
        these_models = "each has" if len(deciding) == len(models) else f"{len(deciding)} of them have"
        could = "all" if settled == len(deciding) else numbers.count(settled) if settled else "none"
        clauses.append(f"{these_models} {samples} open samples; deciding these alone could settle {could} of them")
    if needed:
        audit = "of a new audit"
        if len(further) == len(needed):
            audit = f"({numbers.count(max(further))} more in all)"
        these_models = "it" if len(needed) == len(models) else f"{len(needed)} of them"
        clauses.append(f"about {_span(pd.Series(needed))} samples per {unit} {audit} would settle {these_models}")
    return "; ".join(clauses) or "no number of samples is known that would settle it"
