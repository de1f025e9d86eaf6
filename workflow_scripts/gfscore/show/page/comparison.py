"""The page of two audits of the same data: is any class worse, by how much, how sure."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from gfscore.audit.class_changes import BETTER, UNDECIDED, WORSE
from gfscore.audit.verdicts.gate_rules import DECLINE
from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core import numbers
from gfscore.core.labels import readable_classes
from gfscore.core.mappings import only
from gfscore.core.names import class_phrase, enumeration, model_labels, printable, printable_all, shortened_all
from gfscore.measures import NamedMeasure
from gfscore.show.page.elements import (
    LONGEST_CLASS,
    LONGEST_MODEL,
    Detail,
    bounded,
    counted,
    finite,
    named,
    table_of,
    valued,
)
from gfscore.show.page.html import environment, text_of
from gfscore.show.page.provenance import data_of, time_of, version_of
from gfscore.show.page.tracks import Scale, Track, width_of
from gfscore.tables.csv_files import csv_text

MOST_CLASSES = 14
"""Largest number of classes in the picture, the largest declines first."""

MOST_MODELS = 14
"""Largest number of models in the strip."""

MOST_FINDINGS = 3

MOST_NAMED = 3

MARGIN = 1.08
"""Room on either side of the scale, as a factor."""


@dataclass(frozen=True)
class Side:
    """One of the two audits: its title, its verdict, and the SHA-256 of the statement of its bundle, if it is one."""

    title: str
    verdict: Verdict
    statement_sha256: str | None

    @property
    def about(self) -> str:
        """When and by what it was judged."""
        return f"{time_of(self.verdict)} by {version_of(self.verdict)}"


@dataclass(frozen=True)
class Answer:
    """The answer in a word, the class of its style, its sign, and in sentences."""

    word: str
    style: str
    sign: str
    sentences: list[str]


def render_comparison(
    earlier: Side,
    later: Side,
    *,
    classes: pd.DataFrame,
    statistics: pd.DataFrame,
    models: Mapping[str, str],
    measures: Mapping[str, NamedMeasure],
    confidence: float,
) -> str:
    """The page as text; every name is escaped.

    Parameters
    ----------
    earlier, later : Side
    classes : DataFrame
        class_changes of at least one model and measure.
    statistics : DataFrame
        audit_changes.
    models : mapping of str to str
        Model of the earlier audit, "threat/model", by model of the later one.
    measures : mapping of str to NamedMeasure
        Measures of the later audit.
    confidence : float
        Confidence of the bounds of all classes together.
    """
    # Classes with samples, under printable names.
    by_index = classes.drop_duplicates("class_index")
    names = readable_classes(list(by_index["class_name"]))
    readable = dict(zip(by_index["class_index"], names, strict=True))
    rows = classes[classes["n"] > 0].copy()
    rows["label"] = printable_all(model_labels(rows.assign(dataset="")))
    rows["class"] = rows["class_index"].map(readable).map(printable)
    rows["undecided"] = rows["change_most"] > rows["change_least"]

    compared = only(measures, rows["measure"].unique())
    shown = _shown(rows, later.verdict.judged_measure(compared))
    measure = str(shown["measure"])
    meaning = measures[measure].description
    rows_of_measure = rows[rows["measure"] == measure]
    rows_of_model = rows_of_measure[rows_of_measure["label"] == shown["label"]]
    declined_most = rows_of_model.sort_values("change", kind="stable").head(MOST_CLASSES)
    # One row per model, its class that declined most; the largest decline first.
    worst = rows_of_measure.loc[rows_of_measure.groupby("label", sort=False)["change"].idxmin()]
    worst = worst.sort_values("change", kind="stable").head(MOST_MODELS)

    title = f"{printable(earlier.title)}, then {printable(later.title)}"
    if earlier.title == later.title:
        title = f"{printable(later.title)}: two releases"
    return (
        environment()
        .get_template("compare.html")
        .render(
            style=text_of("page.css"),
            title=title,
            data=f"{printable(later.verdict.dataset.name)}, digest {data_of(later.verdict)}",
            earlier=earlier,
            later=later,
            models=_models_in_words(models),
            answer=_answer(rows, shown, later.verdict, confidence),
            shown=shown,
            title_of_measure=printable(meaning.title),
            unit=printable(meaning.unit),
            tracks=_tracks(declined_most, declined_most["class"], shortened_all(declined_most["class"], LONGEST_CLASS)),
            bands=bool(rows_of_model["undecided"].any()),
            left_out=max(0, len(rows_of_model) - MOST_CLASSES),
            scale=_scale(rows_of_model, "Change"),
            limit=_limit(later.verdict, measure),
            strip=_tracks(worst, worst["label"] + ": " + worst["class"], shortened_all(worst["label"], LONGEST_MODEL)),
            strip_scale=_scale(worst, "Largest decline of a class"),
            confidence=numbers.percent(confidence),
            findings=_findings(rows, shown, earlier.verdict, later.verdict, statistics),
            details=_details(rows, statistics),
            terms=_terms(earlier, later),
            csv=_link(classes),
            csv_of_statistics=_link(statistics),
            width_of=width_of,
            percent=numbers.percent,
        )
    )


# ---- the answer ----


def _shown(rows: pd.DataFrame, judged: str) -> pd.Series:
    # The class that declined most surely, where there is one in the measure that the gate judges; where none did, the
    # largest decline. Measures have ranges of their own, so that their changes are not compared with each other.
    worse = rows[rows["verdict"] == WORSE]
    for candidates in (worse[worse["measure"] == judged], worse):
        if len(candidates):
            return candidates.loc[candidates["high"].idxmin()]
    rows_of_judged = rows[rows["measure"] == judged]
    return rows_of_judged.loc[rows_of_judged["change"].idxmin()]


def _answer(rows: pd.DataFrame, shown: pd.Series, verdict: Verdict, confidence: float) -> Answer:
    worse = int((rows["verdict"] == WORSE).sum())
    better = int((rows["verdict"] == BETTER).sum())
    sure = f"with {numbers.percent(confidence)} confidence for all classes, models and measures together"
    before = numbers.span(shown["first"], shown["first_most"])
    after = numbers.span(shown["second"], shown["second_most"])
    change = f"{_name(shown)}: {before}, then {after}"
    interval_of_class = numbers.interval(shown["low"], shown["high"])
    if shown["undecided"]:
        interval_of_samples = numbers.interval(shown["change_least"], shown["change_most"])
        bounds = f"a change of {interval_of_samples} of these samples, {interval_of_class} of the class"
    else:
        bounds = f"a change of {numbers.number(shown['change'])}, {interval_of_class}"
    if worse:
        counted_classes = f"{numbers.count(worse)} of {numbers.counted(len(rows), 'class')}"
        if len(rows[["label", "measure"]].drop_duplicates()) > 1:
            counted_classes += ", counting every model and measure"
        sentences = [f"Worse: {counted_classes}; sure {sure}.", f"The surest: {change}, {bounds}."]
        word, style, sign = "WORSE", "fail", "×"
    else:
        least = rows.loc[rows["low"].idxmin()]
        seen = "The largest decline seen" if shown["change"] < 0 else "No decline was seen; the smallest change"
        sentences = [f"No class is surely worse, {sure}. {seen}: {change}, {bounds}."]
        if least["low"] < 0:
            hidden = numbers.upper_bound(-least["low"])
            sentences.append(f"What may still be hidden: at most {hidden} of {_name(least)}.")
        word, style, sign = "NO CHANGE SHOWN", "inconclusive", "?"
    if better:
        sentences.append(f"Surely better: {numbers.count(better)}.")
    if better and not worse:
        word, style, sign = "BETTER", "pass", "✓"
    for rule in verdict.rules:
        if rule.statistic == DECLINE:
            limit = f"more than {numbers.setting(rule.threshold)} since the last release"
            sentences.append(f"Gate, {rule.verdict}: no class declines in {printable(rule.measure)} by {limit}.")
    return Answer(word, style, sign, sentences)


def _name(row: pd.Series) -> str:
    return f"{class_phrase(row['class'])} of {row['label']} in {row['measure']}"


def _limit(verdict: Verdict, measure: str) -> float | None:
    # Largest decline that the gate of the later audit lets pass.
    for rule in verdict.rules:
        if rule.statistic == DECLINE and rule.measure == measure:
            return float(rule.threshold)
    return None


# ---- pictures ----


def _tracks(rows: pd.DataFrame, names: pd.Series, short: list[str]) -> list[Track]:
    # Changes of the rows, with their whole and their short names.
    tracks = []
    for (_, row), name, short_name in zip(rows.iterrows(), names, short, strict=True):
        track = Track(
            name,
            short_name,
            finite(row["change"]),
            finite(row["low"]),
            finite(row["high"]),
            band=(row["change_least"], row["change_most"]) if row["undecided"] else None,
            closed=bool(row["undecided"]),
        )
        tracks.append(track)
    return tracks


def _scale(rows: pd.DataFrame, title: str) -> Scale:
    # Symmetric about 0, so that a decline and a gain of one size look alike.
    farthest = max(float(rows["high"].max()), -float(rows["low"].min()), 0.01) * MARGIN
    return Scale(-farthest, farthest, title, 0.0)


# ---- findings, tables, provenance ----


def _findings(
    rows: pd.DataFrame, shown: pd.Series, earlier: Verdict, later: Verdict, statistics: pd.DataFrame
) -> list[str]:
    sentences = []
    if earlier.verdict != later.verdict:
        asked_alike = [rule.words for rule in earlier.rules] == [rule.words for rule in later.rules]
        question = "" if asked_alike else ", by other rules"
        sentences.append(f"The gate said {earlier.verdict}, and now says {later.verdict}{question}")
    others = rows[(rows["verdict"] == WORSE) & (rows.index != shown.name)].sort_values("high", kind="stable")
    for _, row in others.head(1).iterrows():
        sentences.append(f"Also worse: {_name(row)} by {numbers.interval(-row['high'], -row['low'])}")
    better = rows[rows["verdict"] == BETTER].sort_values("low", kind="stable", ascending=False)
    for _, row in better.head(1).iterrows():
        sentences.append(f"Better: {_name(row)} by {numbers.interval(row['low'], row['high'])}")
    decided = statistics[statistics["verdict"].isin([BETTER, WORSE])]
    if len(decided):
        counts = decided["verdict"].value_counts()
        words = [f"{numbers.count(count)} {word}" for word, count in counts.items()]
        sentences.append(f"Of the numbers made of all classes, {enumeration(words)} by disjoint intervals")
    undecided = int((rows["verdict"] == UNDECIDED).sum())
    sentences.append(f"No change can be shown for {numbers.count(undecided)} of {numbers.count(len(rows))} classes")
    return sentences[:MOST_FINDINGS]


def _details(rows: pd.DataFrame, statistics: pd.DataFrame) -> list[Detail]:
    undecided = bool(rows["undecided"].any())
    columns = [
        named("Class", "class"),
        named("Model", "label"),
        named("Measure", "measure"),
        counted("n", "n"),
        valued("Before", "first"),
        *([valued("at most", "first_most")] if undecided else []),
        valued("After", "second"),
        *([valued("at most", "second_most")] if undecided else []),
        valued("Change", "change"),
        bounded("Interval", "low", "high"),
        named("Verdict", "verdict"),
    ]
    ordered = rows.sort_values("change", kind="stable")
    class_table = table_of(ordered, "Classes of both audits", "classes", columns)

    with_verdict = statistics[statistics["verdict"].notna()].copy()
    labels = zip(with_verdict["threat"], with_verdict["model"], strict=True)
    with_verdict["label"] = [printable("/".join(label)) for label in labels]
    order = with_verdict["verdict"].map({WORSE: 0, BETTER: 1}).fillna(2)
    with_verdict = with_verdict.loc[order.sort_values(kind="stable").index]
    columns = [
        named("Model", "label"),
        named("Measure", "measure"),
        named("Statistic", "statistic"),
        valued("Before", "first"),
        bounded("Interval before", "first_low", "first_high"),
        valued("After", "second"),
        bounded("Interval after", "second_low", "second_high"),
        named("Verdict", "verdict"),
    ]
    statistics_table = table_of(with_verdict, "Statistics of both audits", "statistics", columns)
    return [
        Detail("Every class: before, after and change", table=class_table),
        Detail("Numbers made of all classes: worst class, disparity, mean", table=statistics_table),
    ]


def _models_in_words(models: Mapping[str, str]) -> str:
    words = []
    for later, earlier in list(models.items())[:MOST_NAMED]:
        words.append(printable(later) if later == earlier else f"{printable(earlier)}, now {printable(later)}")
    if len(models) > MOST_NAMED:
        words.append(f"{numbers.count(len(models) - MOST_NAMED)} more")
    return enumeration(words)


def _terms(earlier: Side, later: Side) -> list[tuple[str, str]]:
    terms = []
    for name, side in (("Before", earlier), ("After", later)):
        terms.append((f"{name}: judged", side.about))
        terms.append((f"{name}: verdict", printable(side.verdict.sentence)))
        for label, model in side.verdict.models.items():
            if model.checkpoint_sha256:
                words = f"{name}: checkpoint or given file of {printable(label)}, SHA-256"
                terms.append((words, printable(model.checkpoint_sha256)))
        if side.statement_sha256:
            terms.append((f"{name}: statement of the bundle, SHA-256", side.statement_sha256))
    return terms


def _link(frame: pd.DataFrame) -> str:
    # The table as a file within the page, which a browser saves without a request.
    return f"data:text/csv;base64,{base64.b64encode(csv_text(frame).encode()).decode()}"
