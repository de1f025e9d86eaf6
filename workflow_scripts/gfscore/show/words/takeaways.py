"""One sentence per figure, computed from the table behind it: what the data show, or that they do not show it.

Every function takes rows of one measure and one calibration. "Significantly" refers to the simultaneous intervals
of the classes of one model; models are only said to have intervals that overlap or do not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.calibration.model_evidence import ROBUST, alone
from gfscore.audit.metrics import METRICS
from gfscore.core.names import capitalised, class_phrase, enumeration, marked_labels
from gfscore.core.numbers import MISSING, model_count, number, setting, signed, temperature
from gfscore.statistics.disparity import TIE_TOLERANCE, worst_class_set
from gfscore.statistics.multiplicity import SIGNIFICANT, holm
from gfscore.statistics.ranking import EXACT_UP_TO, exact_p_value_of, spearman

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

FEW_MODELS = 5
"""Of fewer no rank correlation can be significant: two of the 4! orders of four models are 8% of them."""
MOST_NAMED = 3
UNCHANGED = 1e-9
UNLIKE = "classes differ in how values are distributed, perhaps not in their means"


def weakest_class(scores: pd.DataFrame) -> str:
    """Which class is the weakest, in how many models, and whether the intervals support it (class_scores rows)."""
    models = _models(scores)
    total = len(models)
    if all(rows["value"].max() - rows["value"].min() <= TIE_TOLERANCE for rows in models):
        which = "All classes with samples" if (scores["n"] == 0).any() else "All classes"
        return f"{which} have the same value" + (f" in each of the {total} models" if total > 1 else "")
    lowest: dict[str, int] = {}
    alone: dict[str, int] = {}
    differing = 0
    for rows in models:
        for name in rows.loc[rows["value"] <= rows["value"].min() + TIE_TOLERANCE, "class_name"]:
            lowest[name] = lowest.get(name, 0) + 1
        # A class without samples has its bounds too, the whole range: it may be the weakest.
        suspects = worst_class_set(rows["low"], rows["high"])
        differing += _differ(rows)
        if len(suspects) == 1:
            name = rows["class_name"].iloc[suspects[0]]
            alone[name] = alone.get(name, 0) + 1
    if total == 1:
        return _weakest_of_one(models[0], alone, differing)
    return _weakest_of_several(lowest, alone, differing, total)


def _weakest_of_several(lowest, alone, differing, total):
    times = max(lowest.values())
    top = [name for name, count in lowest.items() if count == times]
    often = f"all {total}" if times == total else f"{times} of {total}"
    if differing == 0:
        most = f"; {class_phrase(top[0])} scores lowest most often ({times} of {total})" if len(top) == 1 else ""
        return f"No two classes differ beyond their intervals in any of the {total} models{most}"
    if len(top) > MOST_NAMED:
        sentence = f"No single class is the weakest: {len(top)} classes score lowest in {often} models each"
        return sentence + _significantly_lowest(alone, total)
    named = enumeration([class_phrase(name) for name in top])
    elsewhere = _significantly_lowest({name: count for name, count in alone.items() if name not in top}, total)
    if len(top) > 1:
        sentence = capitalised(f"{named} score lowest most often, in {often} models each")
        if all(alone.get(name) == times for name in top):
            return f"{sentence}, each time significantly{elsewhere}"
        return sentence + _significantly_lowest(alone, total)
    sure = alone.get(top[0], 0)
    if sure == 0:
        return capitalised(f"{named} scores lowest in {often} models, but significantly so in none") + elsewhere
    also = "each time significantly" if sure == times else f"significantly so in {sure}"
    return capitalised(f"{named} is the weakest class in {often} models, {also}") + elsewhere


def _significantly_lowest(alone, total):
    # Ending of a sentence that would else keep silent on classes that are the weakest beyond doubt in some model.
    if not alone:
        return ""
    if len(alone) > MOST_NAMED:
        return f"; significantly lowest are {len(alone)} classes, in {sum(alone.values())} of {total} models"
    models = [f"{class_phrase(name)} in {count} of {total}" for name, count in alone.items()]
    return f"; significantly lowest {'is' if len(models) == 1 else 'are'} {enumeration(models)}"


def _weakest_of_one(rows, alone, differing):
    lowest = rows["value"].min()
    tied = list(rows.loc[rows["value"] <= lowest + TIE_TOLERANCE, "class_name"])
    named = class_phrase(tied[0]) if len(tied) == 1 else f"{len(tied)} classes"
    verb = "scores" if len(tied) == 1 else "score"
    if not differing:
        return f"No two classes differ beyond their intervals; {named} {verb} lowest ({number(lowest)})"
    if alone:
        return capitalised(f"{named} is significantly the weakest class, at {number(lowest)}")
    suspects = worst_class_set(rows["low"], rows["high"])
    return capitalised(f"{named} {verb} lowest ({number(lowest)}); {len(suspects)} classes may be the weakest")


def score_and_rdi(summary: pd.DataFrame) -> str:
    """Whether models with a higher mean are less equal, by RDI and by NRGC (model_summary rows)."""
    total = len(summary)
    if total < FEW_MODELS:
        return f"{model_count(total)}: too few to show a relation between mean and disparity"
    by_rdi, clear = rank_relation(summary["value"], summary["rdi"])
    if math.isnan(by_rdi):
        return f"All {total} models have the same mean or the same RDI: no relation to see"
    if not clear:
        return f"No clear relation between mean and RDI over {total} models (Spearman {signed(by_rdi)})"
    direction = "less" if by_rdi > 0 else "more"
    sentence = f"Models with a higher mean are {direction} equal by RDI (Spearman {signed(by_rdi)})"
    by_nrgc, clear = rank_relation(summary["value"], summary["nrgc"])
    if not by_rdi * by_nrgc < 0:
        return sentence
    if not clear:
        return f"{sentence}, with no clear relation by NRGC ({signed(by_nrgc)})"
    return f"{sentence}, but {'more' if by_rdi > 0 else 'less'} equal by NRGC ({signed(by_nrgc)})"


def metric_conflict(summary: pd.DataFrame) -> str | None:
    """Sentence that says so when RDI and a scale-free metric disagree about robustness against fairness, or None.

    They do where the rank correlations of the score with RDI and with NRGC or RDI / mean are both significant and of
    opposite sign: signs alone are opposed in a fifth of audits of equal models. Source: docs/what-reproduces.md.
    """
    if len(summary) < FEW_MODELS:
        return None
    relations = {name: rank_relation(summary["value"], summary[name]) for name in ("rdi", "nrgc", "rdi_over_mean")}
    rhos = {name: rho for name, (rho, clear) in relations.items() if clear}
    opposed = [name for name in ("nrgc", "rdi_over_mean") if rhos.get("rdi", 0) * rhos.get(name, 0) < 0]
    if not opposed:
        return None
    against = enumeration([f"{METRICS[name].title} ({signed(rhos[name])})" for name in opposed])
    less, more = ("less", "more") if rhos["rdi"] > 0 else ("more", "less")
    return (
        f"Models with a higher mean are {less} equal by RDI ({signed(rhos['rdi'])}), but {more} equal by {against}. "
        "RDI grows with the scale of the measure and these do not, so whether robustness costs fairness here depends "
        "on the metric (rank correlations over models)."
    )


def disparity(summary: pd.DataFrame, *, guessing: Collection[str] = ()) -> str:
    """Range of RDI over models, and in how many of them it is above chance (model_summary rows).

    `guessing` are the labels "threat/model" of models that may be guessing, which is said of them.

    Above chance are models whose permutation p is at most 5% after Holm's adjustment for the number of models and whose
    interval of RDI lies above 0. The p alone says that values are not distributed alike in all classes, which classes
    of one mean and different spread also bring about.
    """
    labels, values = marked_labels(summary, guessing, limit=28), summary["rdi"].to_numpy()
    best, worst = int(values.argmin()), int(values.argmax())
    if values[best] == values[worst]:
        span = f"RDI is {number(values[best])}" + (" in every model" if len(values) > 1 else "")
    else:
        span = f"RDI runs from {number(values[best])} ({labels[best]}) to {number(values[worst])} ({labels[worst]})"
    tested = summary[summary["rdi_p"].notna()]
    total = len(tested)
    if total == 0:
        return f"{span}; samples are undecided, so that chance is not known"
    unlike = holm(tested["rdi_p"], family=total) <= SIGNIFICANT
    # An interval is absent at a temperature chosen on the same samples, and then not above 0.
    above = int((unlike & (tested["rdi_low"].to_numpy(dtype=np.float64) > 0)).sum())
    open_ = int(unlike.sum()) - above
    if not unlike.any():
        return f"{span}, not distinguishable from chance" + (" in any model" if total > 1 else "")
    of_all = f"all {total}" if max(above, open_) == total else f"{above or open_} of {total}"
    if not above:
        where = "" if total == 1 else f"in {of_all} models "
        return f"{span}; {where}{UNLIKE}"
    if total == 1:
        return f"{span}, above chance"
    rest = f"; in {open_} more, {UNLIKE}" if open_ else ""
    return f"{span}, above chance in {of_all} models{rest}"


def vulnerability(table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Which class ranks lowest over models, how often it is the weakest, and whether the intervals support it.

    Takes vulnerability rows and the class_scores rows behind them.
    """
    known = table[table["mean_rank"].notna()].sort_values(["mean_rank", "class_index"])
    if known.empty:
        return "No class has samples in every model, so that none can be ranked"
    measured = scores[scores["n"] > 0]
    scores = measured[measured["class_index"].isin(known["class_index"])]
    shared = " that every model has" if len(scores) < len(measured) else ""
    total, first = int(table["models"].iloc[0]), known.iloc[0]
    if known["mean_rank"].max() == known["mean_rank"].min():
        return f"All classes{shared} have the same mean rank: none is more vulnerable"
    among = f"of {len(known):,} classes" if total == 1 else f"({number(first['mean_rank'])} of {len(known):,}{shared})"
    tied = int((known["mean_rank"] <= first["mean_rank"] + TIE_TOLERANCE).sum())
    where = f"lowest {'' if total == 1 else 'on average '}{among}"
    named = (
        f"{class_phrase(first['class_name'])} ranks {where}" if tied == 1 else f"{tied:,} classes rank equally {where}"
    )
    if not any(_differ(rows) for rows in _models(scores)):
        return f"No two classes differ beyond their intervals; {named}"
    if total == 1 or tied > 1:
        return capitalised(named)
    times = int(first["times_worst"])
    often = "no model" if times == 0 else f"all {total} models" if times == total else f"{times} of {total} models"
    return capitalised(f"{named} and scores lowest in {often}")


def _models(scores):
    every = (rows for _, rows in scores.groupby(["dataset", "threat", "model"], sort=False))
    return [rows for rows in every if (rows["n"] > 0).any()]


def _differ(rows):
    # Whether some class is significantly weaker than some other one.
    return bool(rows["low"].max() > rows["high"].min())


def calibration(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Whether any calibrated score ranks models better than clean accuracy alone (calibration.json)."""
    after = {name: result["agreement"].get(ROBUST, {}) for name, result in results.items()}
    known = {name: pair["after"] for name, pair in after.items() if pair.get("after") is not None}
    baselines = [result["baseline"].get(alone(ROBUST)) for result in results.values()]
    baselines = [value for value in baselines if value is not None]
    if not known or not baselines:
        return _optima(results)
    best = max(known, key=lambda name: known[name])
    title = OBJECTIVES.get(best, best.replace("_", " "))
    before = after[best].get("before")
    if known[best] <= 0:
        return (
            f"No calibrated score ranks the models like robust accuracy: Spearman {signed(known[best])} at best, "
            f"{signed(before)} at T = 1, {signed(baselines[0])} for clean accuracy alone"
        )
    if baselines[0] >= known[best]:
        return (
            f"Clean accuracy alone agrees with robust accuracy at least as well ({signed(baselines[0])}) "
            f"as every calibrated score (best {signed(known[best])})"
        )
    if before is not None and before >= known[best]:
        return f"No calibration improves agreement with robust accuracy over T = 1 ({signed(before)})"
    return (
        f"Calibrating by {title} gives the best agreement with robust accuracy: {signed(known[best])}, "
        f"against {signed(before)} at T = 1 and {signed(baselines[0])} for clean accuracy alone"
    )


def _optima(results):
    # What can be said of a calibration without any accuracy under attack.
    edges = sum(bool(result["edge"]) for result in results.values())
    if edges:
        return f"The optimum of {edges} of {len(results)} objectives reaches the end of the search: not to be trusted"
    if all(result.get("undefined") for result in results.values()):
        return "No objective has an optimum, so that no temperature is chosen"
    return "No optimum reaches the end of the search; agreement with robust accuracy is not known"


def optimal_stretches(result: Mapping[str, Any]) -> Sequence[Sequence[float]]:
    """Stretches (first, last) of searched temperatures that are as good as the best one, of one objective.

    Empty for an objective without a common T*: there is none, or each model has its own.
    """
    if result["t_star"] is None:
        return []
    return result.get("stretches") or [result["interval"]]


def optimal_range(result: Mapping[str, Any]) -> str:
    """Where the temperatures of an objective lie, in words: "0.01 to 0.041 and 3 more stretches"."""
    if not result["interval"]:
        return MISSING
    first, last = result["interval"]
    words = temperature(first) if first == last else f"{temperature(first)} to {temperature(last)}"
    if own := result["t_star_by_model"]:
        return f"{words} over models" if len(own) > 1 else words
    more = len(optimal_stretches(result)) - 1
    return f"{words} and {more:,} more stretch{'' if more == 1 else 'es'}" if more else words


OBJECTIVES = {
    "cross_model_accuracy": "cross-model accuracy",
    "within_model_class_accuracy": "within-model class accuracy",
    "ranking_stability": "ranking stability",
    "ranking_stability_endpoints": "ranking stability (end points)",
    "likelihood": "likelihood",
    "attack_distance": "attack distance",
}
"""Objective of calibration.json as it reads in a sentence."""


def logit_shift(table: pd.DataFrame) -> str:
    """How far each measure moves when a constant is added to all logits (sensitivity rows of scale 1)."""
    moved, still = {}, []
    for measure, rows in table.groupby("measure", sort=False):
        largest = largest_shift(rows)
        if largest > UNCHANGED:
            moved[measure] = largest
        else:
            still.append(measure)
    constant = setting(table["shift"].abs().max())
    if not moved:
        return f"Adding up to \u00b1{constant} to every logit changes no score: {enumeration(still)} cannot see it"
    parts = enumeration([f"{name} by up to {number(value)}" for name, value in moved.items()])
    unmoved = f"; {enumeration(still)} stay{'s' if len(still) == 1 else ''} the same" if still else ""
    return f"Adding up to \u00b1{constant} to every logit changes no prediction, yet moves {parts}{unmoved}"


def largest_shift(rows: pd.DataFrame) -> float:
    """Largest change of any model's score from its value at the shift nearest to 0 (sensitivity rows of a measure)."""
    changes = []
    for _, model in rows.groupby(["dataset", "threat", "model"], sort=False):
        values = model["value"].to_numpy()
        changes.append(np.abs(values - values[model["shift"].abs().to_numpy().argmin()]).max())
    return float(max(changes))


def logit_factor(rows: pd.DataFrame) -> str:
    """How far the scores of a measure move when every logit is multiplied by a factor (sensitivity rows of shift 0)."""
    by_model = [model for _, model in rows.groupby(["dataset", "threat", "model"], sort=False)]
    near_one = [np.abs(np.log(model["scale"].to_numpy())).argmin() for model in by_model]
    largest = max(
        np.abs(model["value"].to_numpy() - model["value"].iloc[place]).max()
        for model, place in zip(by_model, near_one, strict=True)
    )
    start = f"A factor of {setting(rows['scale'].min())} to {setting(rows['scale'].max())} on every logit changes no"
    if largest <= UNCHANGED:
        return f"{start} score of {rows['measure'].iloc[0]}"
    return f"{start} prediction, yet moves {rows['measure'].iloc[0]} by up to {number(largest)}"


def rank_relation(x: ArrayLike, y: ArrayLike) -> tuple[float, bool]:
    """Spearman rank correlation over models and whether it is clear (rank_p_value below 5%), as a pair."""
    p = rank_p_value(x, y)
    return float(spearman(x, y)), p is not None and p <= SIGNIFICANT


def rank_p_value(x: ArrayLike, y: ArrayLike) -> float | None:
    """Two-sided p of the Spearman rank correlation over models; None where it is undefined or models are few.

    Exact permutation p up to EXACT_UP_TO models, Student's t approximation beyond; descriptive, since models share
    the samples.
    """
    rho = float(spearman(x, y))
    pairs = int((np.isfinite(x) & np.isfinite(y)).sum())
    if math.isnan(rho) or pairs < FEW_MODELS:
        return None
    if pairs <= EXACT_UP_TO:
        return exact_p_value_of(x, y)
    from scipy.special import stdtr

    statistic = abs(rho) * math.sqrt((pairs - 2) / max(1e-12, 1 - rho**2))
    return float(2 * stdtr(pairs - 2, -statistic))
