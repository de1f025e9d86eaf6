"""What the measures of an audit say of each other, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.agreement.falsification import Falsification, Falsified, sentence
from gfscore.audit.classwise.target_rows import contest
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import enumeration
from gfscore.core.numbers import count, model_count, number, p_value, percent, signed
from gfscore.statistics.certificates import judge_refutations
from gfscore.statistics.multiplicity import SIGNIFICANT, holm

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ROUNDING = 1e-12

SUCCESS = {
    "success": "the share of other classes' samples turned into the class",
    "excess": "that share minus the one without an attack",
    "among_misclassified": "the share of the class among samples misclassified under attack",
}
"""Definitions of targeted success in words."""

REFUTED, NOT_SETTLED, NOT_REFUTED = "refuted", "not settled", "not refuted"
"""What attack distances may say of a mean score."""


def falsified(row: Mapping[str, Any], *, name: str) -> str:
    """Sentence on one row of the table falsification, of all samples of a model, whose name it uses."""
    counts = ("n", "correct", "violations", "rate", "low", "high", "censored", "mean_score", "mean_distance", "p_mean")
    group = Falsified(**{key: row[key] for key in counts})
    confidence = row["confidence"]
    return sentence(Falsification(row["temperature"], confidence, classes=[], model=group), name=name)


def refutations_of(rows: pd.DataFrame, measure: str, models: int) -> str | None:
    """How many of the models' scores attack distances refute, over rows at T = 1 of all samples; None for none."""
    refuted = int((rows["violations"] > 0).sum())
    if not refuted:
        return None
    whose = "the only model" if models == 1 else f"{refuted} of {models} models"
    return f"Attack distances refute {measure} as a lower bound on the distance to an adversarial example, for {whose}"


def mean_scores_against_distances(rows: pd.DataFrame) -> NDArray[np.object_]:
    """Whether the mean score of each model is REFUTED, NOT_SETTLED or NOT_REFUTED by its mean distance, as words (M,).

    Takes falsification rows at T = 1 of all samples, one per model, of one score and one measure of distances. Refuted
    where the mean score surely exceeds the mean distance, by Holm over the models at the confidence of the rows, and
    every sample was broken. One that was not counts at the largest distance searched, which may lie below its true
    distance, so that the mean distance no longer bounds the true mean from above.
    """
    above = rows["mean_score"].to_numpy() > rows["mean_distance"].to_numpy()
    sure = holm(rows["p_mean"], family=len(rows)) <= 1 - rows["confidence"].to_numpy() + ROUNDING
    broken = rows["censored"].to_numpy() == 0
    return np.select([above & sure & broken, above], [REFUTED, NOT_SETTLED], NOT_REFUTED).astype(object)


def why_not_settled(rows: pd.DataFrame, verdicts: NDArray[np.object_]) -> str:
    """Clause on the models that mean_scores_against_distances does not settle, empty without any."""
    unsettled = rows[verdicts == NOT_SETTLED]
    if unsettled.empty:
        return ""
    reasons, unbroken = [], int(unsettled["censored"].sum())
    if unbroken:
        were = "sample was" if unbroken == 1 else "samples were"
        reasons.append(f"{count(unbroken)} {were} not broken up to the largest distance searched")
    if (unsettled["censored"] == 0).any():
        reasons.append(f"means too close for {percent(rows['confidence'].iloc[0])} confidence")
    whose = "" if len(rows) == 1 else f"{len(unsettled)} "
    return f"{whose}not settled: {', or '.join(reasons)}"


def mean_scores_refuted(rows: pd.DataFrame) -> str:
    """In how many models attacks refute the mean score, and the range of falsification rates.

    Takes falsification rows at T = 1 of all samples, one per model, of one score and one measure of distances. Models
    without a sample that is classified correctly are left out.
    """
    rates = rows["rate"].dropna()
    if rates.empty:
        return "No sample is classified correctly, so that attacks have nothing to refute"
    verdicts = mean_scores_against_distances(rows)
    unsettled = why_not_settled(rows[rows["rate"].notna()], verdicts[rows["rate"].notna()])
    sure = f"{percent(rows['confidence'].iloc[0])} confidence"
    total, refuted = len(rates), int((verdicts == REFUTED).sum())
    low, high = number(rates.min()), number(rates.max())
    if not rates.max():
        of = "" if total == 1 else f" in any of the {total} models"
        return f"Attacks find no example nearer than the score{of}, which confirms nothing"
    share = f"examples nearer than the score for {low if low == high else f'{low} to {high}'} of the correct samples"
    if total == 1:
        if unsettled:
            return f"Whether attacks refute the mean score is {unsettled}; {share}"
        return f"Attacks {f'refute the mean score with {sure}' if refuted else 'do not refute the mean score'}; {share}"
    if not refuted:
        unsettled = unsettled and f" ({unsettled})"
        return f"Attacks refute the mean score of none of the {total} models{unsettled}, yet find {share}"
    often = f"all {total}" if refuted == total else f"{refuted} of {total}"
    details = "; ".join(filter(None, (f"{sure} for all of these", unsettled)))
    return f"Attacks refute the mean score of {often} models ({details}), with {share}"


def mean_scores_refuted_by_measure(falsification: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Those sentences by score and then by measure of distances, of a falsification table or None."""
    if falsification is None:
        return {}
    whole = falsification[(falsification["class_index"] == ALL) & (falsification["calibration"] == UNCALIBRATED)]
    return {
        score: {distances: mean_scores_refuted(part) for distances, part in rows.groupby("distances", sort=False)}
        for score, rows in whole.groupby("measure", sort=False)
    }


def certificates(row: Mapping[str, Any], *, name: str) -> str:
    """Sentence on one row of the table refutations."""
    _, words = judge_refutations(int(row["refuted"]), int(row["n"]), alpha=row["alpha"])
    return f"{name}: {words} ({count(row['attacked'])} certificates were attacked)"


def central_claim(rows: pd.DataFrame, definition: str) -> str | None:
    """Whether CFPS or 1 - recall predicts targeted success better: target_predictors rows of one measure.

    Names the test, its p-value and how few models stand behind it; None when no model has a defined difference. The
    p-value is adjusted by Holm for the definitions in the rows that can be tested, so that with probability at least
    0.95 no sentence names a better predictor where there is none.
    """
    contests = {name: contest(own["difference"]) for name, own in rows.groupby("definition", sort=False)}
    contests = {name: each for name, each in contests.items() if each.models}
    found = contests.get(definition)
    if found is None:
        return None
    tests = len(contests)
    adjusted = dict(zip(contests, holm([each.p for each in contests.values()], family=tests), strict=True))
    p = float(adjusted[definition])
    defined = rows[(rows["definition"] == definition) & rows["difference"].notna()]
    by_cfps, by_miss = (signed(defined[name].mean()) for name in ("rho_cfps", "rho_miss_rate"))
    start = (
        f"Targeted success as {SUCCESS[definition]}: over classes, its mean Spearman correlation is {by_cfps} with "
        f"CFPS and {by_miss} with 1 - recall"
    )
    holms = f", Holm over {tests} definitions" if tests > 1 else ""
    test = f"p {_equals(p)}, sign-flip test over {model_count(found.models)}{holms}"
    if p > SIGNIFICANT:
        smallest = min(1.0, tests * 2.0 ** (1 - found.models))
        hopeless = f", which cannot get below {number(smallest)}" if smallest > SIGNIFICANT else ""
        return f"{start}; which predicts better is not settled ({test}{hopeless})"
    better = "CFPS" if found.mean > 0 else "1 - recall"
    return f"{start}; {better} predicts better ({test}, which takes the models as independent)"


def differing_classes(rows: pd.DataFrame) -> str:
    """In how many models distances differ between classes (log_rank_tests rows of one measure)."""
    tested = rows[rows["p_permutation"].notna()]
    if tested.empty:
        return (
            "Distances cannot be compared between classes: fewer than two have samples, nothing was found, or every "
            "sample is wrong anyway"
        )
    differ = int((tested["p_permutation"] * len(tested) <= SIGNIFICANT).sum())
    whose = "the only model" if len(tested) == 1 else f"{differ} of {len(tested)} models"
    adjusted = "" if len(tested) == 1 else ", each p-value times the number of models"
    smallest = len(tested) / (1 + tested["permutations"].max())
    if smallest > SIGNIFICANT:
        return (
            "Whether distances differ between classes is not settled: a log-rank test by shuffling cannot get below "
            f"{number(min(1.0, smallest))}{adjusted}"
        )
    if not differ:
        return f"In no model do distances differ significantly between classes (log-rank test by shuffling{adjusted})"
    return f"Distances differ significantly between classes in {whose} (log-rank test by shuffling{adjusted})"


def opposed(rows: pd.DataFrame) -> str | None:
    """Pairs of measures that rank the models in significantly opposite order (measure_agreement rows), or None.

    Their p-values are adjusted by Holm for all pairs, so unrelated ones are named with probability at most SIGNIFICANT.
    """
    tested = rows[rows["p"].notna()]
    adjusted = holm(tested["p"], family=len(tested))
    pairs = tested[(tested["rho"] < 0) & (np.asarray(adjusted) <= SIGNIFICANT)]
    if pairs.empty:
        return None
    words = [f"{row.first} and {row.second} ({signed(row.rho)})" for row in pairs.itertuples()]
    some = f"; {len(words) - 4} more pairs" if len(words) > 4 else ""
    adjustment = f", p <= {SIGNIFICANT} by Holm over {len(tested)} pairs" if len(tested) > 1 else ""
    return f"These measures rank the models in opposite order{adjustment}: {enumeration(words[:4])}{some}"


def undecided(rows: pd.DataFrame) -> str | None:
    """How many decisions are open over all models (class_shares rows of all samples), or None when none is."""
    open_, total = int(rows["undecided"].sum()), int(rows["n"].sum())
    if not open_:
        return None
    return (
        f"{count(open_)} of {count(total)} decisions (share {number(open_ / total)}) were open when the budget was "
        "spent; they count as not robust in the value and in lower bounds, and as robust in upper bounds"
    )


def _equals(p):
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"
