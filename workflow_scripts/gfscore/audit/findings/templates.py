"""Sentences of findings with clauses that depend on the numbers: one function for each kind.

Functions take subject, numbers and confidence of a finding. `low` and `least` are printed rounded down, `high` and
`most` up, `rho` and the like with their sign.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gfscore.audit.metrics import METRICS
from gfscore.core.names import class_phrase, enumeration, printable, shortened
from gfscore.core.numbers import count, interval, number, percent, plural, signed

Template = Callable[[Mapping[str, Any], Mapping[str, Any], float | None], str]

LONGEST = 40

OBJECTIVES = {
    "cross_model_accuracy": "cross-model accuracy",
    "within_model_class_accuracy": "within-model class accuracy",
    "ranking_stability": "ranking stability",
    "ranking_stability_endpoints": "ranking stability (end points)",
    "likelihood": "likelihood",
    "attack_distance": "attack distance",
}
"""Objective of calibration.json as it reads in a sentence."""


def _name(text: object) -> str:
    return shortened(text, LONGEST)


def _share(value: float) -> str:
    return f"{100 * value:.2g}%"


def _sure(confidence: float | None) -> str:
    return "" if confidence is None else f" ({percent(confidence)} confidence)"


def _of(part: int, whole: int, what: str = "model") -> str:
    if whole == 1:
        return f"the only {what}"
    every = "both" if whole == 2 else f"all {count(whole)}"
    share = every if part == whole else f"{count(part)} of {count(whole)}"
    return f"{share} {plural(what)}"


def _passing_model_falls(who, n, confidence):
    others = int(n["others"])
    passing = "that passes falls" if others == 1 else "that pass fall"
    more = f"; {count(others)} more {passing} below one half" if others else ""
    bound = f", at most {number(n['high'])} with {percent(confidence)} confidence" if confidence else ""
    under = f"{_name(who['model'])} passes, yet attacks leave it {_share(n['accuracy'])} of the samples"
    return f"{under} ({printable(who['source'])}{bound}){more}"


def _order_reversed(who, n, _confidence):
    relation = "is nearly the reverse of" if n["rho"] <= -0.8 else "runs against"
    what = f"{printable(who['source'])}, Spearman {signed(n['rho'])}, {count(n['models'])} models"
    return f"The order of the models by {printable(who['measure'])} {relation} their order under attack ({what})"


def _no_attack(who, _n, _confidence):
    start = "No measure of this audit attacks"
    if who["attack_free"]:
        return f"{start}: {printable(who['measure'])} says how clearly classes are told apart, not what attacks leave"
    if who["stated"]:
        return f"{start}: what they leave is known from {printable(who['stated'])} alone, of whole models"
    return f"{start}, so that nothing here says what attacks would leave"


def _score_refuted(who, n, confidence):
    rates = number(n["least"]) if n["least"] == n["most"] else f"{number(n['least'])} to {number(n['most'])}"
    score, distances = printable(who["score"]), printable(who["distances"])
    mean = f"; its mean is refuted for {_of(n['refuted'], n['models'])}{_sure(confidence)}" if n["refuted"] else ""
    nearer = f"{distances} comes nearer on {rates} of the samples"
    return f"{score} is no lower bound on the distance to an error: {nearer}{mean}"


def _certificates_refuted(who, n, _confidence):
    broken = f"{count(n['refuted'])} of {count(n['n'])} certificates"
    return f"Attacks broke {broken} of {printable(who['measure'])}, more than chance allows: a defect, not a result"


def _gradients_masked(who, n, _confidence):
    how = "is" if who["proof"] else "may be"
    more = f"; signs of it in {count(n['models'])} models" if n["models"] > 1 else ""
    where = f"{printable(who['measure'])}, {count(n['count'])} of {count(n['n'])} samples"
    return f"Gradients of {_name(who['model'])} {how} masked, so that its attacks fail ({where}){more}"


def _classes_without_samples(who, n, _confidence):
    names = [class_phrase(name) for name in who["classes"]]
    more = [f"{count(n['count'] - len(names))} more"] if n["count"] > len(names) else []
    return f"Nothing is known of {enumeration(names + more)}: no samples, and any of them may be the weakest class"


def _weakest_class(who, n, confidence):
    where = f"{class_phrase(who['class'])} is the weakest of {_name(who['model'])}"
    lead = f"{where} at {number(n['value'])}, {number(n['gap'])} below {class_phrase(who['next'])}"
    if n["suspects"] == 1:
        surely = f"surely the weakest{_sure(confidence)}"
    else:
        surely = f"{count(n['suspects'])} of {count(n['classes'])} classes may be the weakest{_sure(confidence)}"
    often = f"; lowest in {_of(n['times'], n['models'])}" if n["models"] > 1 else ""
    return f"{lead}; {surely}{often}"


def _no_weakest_class(who, n, confidence):
    lead = f"No difference between classes of {_name(who['model'])} can be shown{_sure(confidence)}"
    return f"{lead}; {class_phrase(who['class'])} scores lowest, {number(n['value'])} ({interval(n['low'], n['high'])})"


def _groups_differ(who, n, confidence):
    low = f"{number(n['low_value'])} on {printable(who['lowest'])}"
    high = f"{number(n['high_value'])} on {printable(who['highest'])}"
    attribute, where = printable(who["attribute"]), f"{_name(who['label'])}, {low}, {high}"
    if n["sure"]:
        return f"Groups by {attribute} differ most surely: {where}{_sure(confidence)}"
    return f"No difference between groups can be shown{_sure(confidence)}; the widest is by {attribute} ({where})"


def _best_models(who, n, confidence):
    of = f"of {count(n['models'])} models by {printable(who['measure'])}{_sure(confidence)}"
    named = [_name(name) for name in who["models"]]
    if n["best"] == 1:
        lead = f"{named[0]} is the best {of}"
    elif n["best"] <= len(named):
        lead = f"{enumeration(named[: n['best']])} may each be the best {of}"
    else:
        lead = f"{count(n['best'])} may each be the best {of}"
    return f"{lead}; {count(n['different'])} of {count(n['pairs'])} pairs differ significantly"


def _no_best_model(who, n, confidence):
    pairs = f"{count(n['different'])} of {count(n['pairs'])} pairs differ" if n["different"] else "no two differ"
    which = f"any of the {count(n['models'])} may be the best by {printable(who['measure'])}"
    return f"No best model can be shown: {which}, {pairs} significantly{_sure(confidence)}"


def _metrics_disagree(who, n, _confidence):
    less, more = ("less", "more") if n["rdi"] > 0 else ("more", "less")
    other = METRICS[who["metric"]].title
    return (
        f"Whether robustness costs fairness depends on the metric: models with a higher mean are {less} equal by RDI "
        f"({signed(n['rdi'])}), {more} equal by {other} ({signed(n['other'])})"
    )


def _few_samples(who, n, _confidence):
    rest = "rests" if n["count"] == 1 and n["classes"] > 1 else "rest"
    lead = f"{_of(n['count'], n['classes'], 'class')} {rest} on fewer than {n['below']} samples"
    return f"{lead[:1].upper()}{lead[1:]} (the fewest: {count(n['least'])}, {printable(who['measure'])})"


def _undecided_models(who, n, confidence):
    named = [_name(name) for name in who["models"]]
    more = [f"{count(n['count'] - len(named))} more"] if n["count"] > len(named) else []
    lead = f"{enumeration(named + more)} {'stays' if n['count'] == 1 else 'stay'} undecided{_sure(confidence)}"
    if n["most"] is None:
        return f"{lead}: no number of samples is known that would settle it"
    needed = count(n["most"]) if n["least"] == n["most"] else f"{count(n['least'])} to {count(n['most'])}"
    which = "it" if n["known"] == n["count"] else f"{count(n['known'])} of them"
    return f"{lead}: about {needed} samples per class would settle {which}"


def _calibration_fails(who, n, _confidence):
    best = f"Spearman {signed(n['after'])} at best, by {OBJECTIVES.get(who['objective'], who['objective'])}"
    return (
        f"No temperature makes {printable(who['measure'])} rank models by robust accuracy better than clean accuracy "
        f"or T = 1 do ({best}; clean accuracy {signed(n['alone'])}, T = 1 {signed(n['before'])})"
    )


TEMPLATES: Mapping[str, Template] = {
    "passing_model_falls": _passing_model_falls,
    "order_reversed": _order_reversed,
    "no_attack": _no_attack,
    "score_refuted": _score_refuted,
    "certificates_refuted": _certificates_refuted,
    "gradients_masked": _gradients_masked,
    "classes_without_samples": _classes_without_samples,
    "weakest_class": _weakest_class,
    "no_weakest_class": _no_weakest_class,
    "groups_differ": _groups_differ,
    "best_models": _best_models,
    "no_best_model": _no_best_model,
    "metrics_disagree": _metrics_disagree,
    "few_samples": _few_samples,
    "undecided_models": _undecided_models,
    "calibration_fails": _calibration_fails,
}
