"""Sentences of findings with clauses that depend on the numbers: one function for each kind.

Parameters of a function are the names and numbers of the finding that its sentence needs, by their roles, and its
confidence. Bounds are printed rounded outwards, values to the nearest number, correlations with their sign.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gfscore.audit.metrics import METRICS
from gfscore.core import numbers
from gfscore.core.names import (
    LONGEST_IN_SENTENCE,
    class_phrase,
    enumeration,
    printable,
    shortened,
    upper_first,
    words_of_ties,
)
from gfscore.statistics.tolerances import TIE_TOLERANCE

Template = Callable[..., str]

PARAMETERS = {
    "class": "cls",
    "next": "next_cls",
    "classes": "class_names",
    "models": "model_names",
    "rule": "rule_words",
}
"""Parameter for a name whose role is a keyword of Python, or the role of a number too."""

FAILURES = "Undecided samples counted as failures, "
"""Start of sentences on the smallest values that undecided samples allow."""

NEARLY_REVERSED = -0.8
"""Spearman correlation at most which one order is nearly the reverse of another."""


# ---- clauses ----


def _name(text: str) -> str:
    return shortened(text, LONGEST_IN_SENTENCE)


def _with_confidence(confidence: float | None) -> str:
    return "" if confidence is None else f" ({numbers.percent(confidence)} confidence)"


def _number_of(n: int, total: int, noun: str = "model") -> str:
    # "the only model", "both models", "2 of 3 models".
    if total == 1:
        return f"the only {noun}"
    if n < total:
        return f"{numbers.count(n)} of {numbers.count(total)} {numbers.plural(noun)}"
    every = "both" if total == 2 else f"all {numbers.count(total)}"
    return f"{every} {numbers.plural(noun)}"


def _change(before: float, after: float) -> str:
    return f"{numbers.number(before)} to {numbers.number(after)}"


def _range_of(low: float, high: float) -> str:
    return numbers.number(low) if low == high else _change(low, high)


def _with_more(names: list[str], total: int) -> str:
    # Names of some, and how many more there are.
    if total > len(names):
        names = [*names, f"{numbers.count(total - len(names))} more"]
    return enumeration(names)


# ---- attacks ----


def _passing_model_falls(
    *, model: str, source: str, accuracy: float, high: float, others: int, confidence: float | None, **_: object
) -> str:
    bound = ""
    if confidence:
        bound = f", at most {numbers.upper_bound(high)} with {numbers.percent(confidence)} confidence"
    remaining = ""
    if others:
        verbs = "that passes falls" if others == 1 else "that pass fall"
        remaining = f"; {numbers.count(int(others))} more {verbs} below one half"
    return (
        f"{_name(model)} passes, yet attacks leave it {100 * accuracy:.2g}% of the samples "
        f"({printable(source)}{bound}){remaining}"
    )


def _order_reversed(*, measure: str, source: str, rho: float, models: int, **_: object) -> str:
    relation = "is nearly the reverse of" if rho <= NEARLY_REVERSED else "runs against"
    return (
        f"The order of the models by {printable(measure)} {relation} their order under attack "
        f"({printable(source)}, Spearman {numbers.signed(rho)}, {numbers.count(models)} models)"
    )


def _no_attack(*, measure: str, attack_free: bool, stated: str | None, **_: object) -> str:
    start = "No measure of this audit attacks"
    if attack_free:
        return f"{start}: {printable(measure)} says how clearly classes are told apart, not what attacks leave"
    if stated:
        return f"{start}: what they leave is known from {printable(stated)} alone, of whole models"
    return f"{start}, so that nothing here says what attacks would leave"


def _passes_on_attacks(
    *, measure: str, interval: str | None, passing: int, least: float, most: float, **_: object
) -> str:
    one = passing == 1
    start = "The model that passes does so" if one else "The models that pass do so"
    start = f"{start} because attacks failed ({printable(measure)})"
    if interval is None:
        return f"{start}; nothing is proven in that ball"
    worst = "its worst class" if one else "their worst classes"
    return f"{start}; of {worst} {_range_of(least, most)} is proven ({printable(interval)})"


def _score_refuted(
    *,
    score: str,
    distances: str,
    least: float,
    most: float,
    refuted: int,
    models: int,
    confidence: float | None,
    **_: object,
) -> str:
    mean = ""
    if refuted:
        mean = f"; its mean is refuted for {_number_of(refuted, models)}{_with_confidence(confidence)}"
    return (
        f"{printable(score)} is no lower bound on the distance to an error: "
        f"{printable(distances)} comes nearer on {_range_of(least, most)} of the correct samples{mean}"
    )


def _gradients_masked(*, model: str, measure: str, proof: bool, count: int, n: int, models: int, **_: object) -> str:
    samples = f"{numbers.count(count)} of {numbers.count(n)} samples"
    further_signs = ""
    if models > 1:
        further_signs = f"; signs of it in {numbers.count(models)} models"
    if proof:
        # It is certain that the attacks failed, but not why.
        return (
            f"Attacks of {printable(measure)} on {_name(model)} certainly failed on {samples}: they are too weak, or "
            f"its gradients are masked{further_signs}"
        )
    return (
        f"Gradients of {_name(model)} may be masked, so that its attacks fail ({printable(measure)}, {samples})"
        f"{further_signs}"
    )


# ---- classes and groups ----


def _classes_without_samples(*, class_names: Sequence[str], count: int, **_: object) -> str:
    names = _with_more([class_phrase(name) for name in class_names], count)
    any_of_them = "it" if count == 1 else "any of them"
    return f"Nothing is known of {names}: no samples, and {any_of_them} may be the weakest class"


def _class_value(value: float, most: float, *, as_failures: bool) -> str:
    # Of a class that is the weakest where undecided samples count as failures, its value where they do comes first.
    if as_failures and most > value:
        return f"{numbers.number(value)}, at most {numbers.upper_bound(most)}"
    return numbers.span(value, most)


def _weakest_class(
    *,
    model: str,
    measure: str,
    cls: str,
    next_cls: str,
    value: float,
    most: float,
    gap: float | None,
    suspects: int,
    classes: int,
    absent: int,
    times: int,
    models: int,
    confidence: float | None,
    as_failures: bool = False,
    **_: object,
) -> str:
    sure = _with_confidence(confidence)
    # A class without samples may be weaker still.
    weakest = "weakest measured" if absent else "weakest"
    suspected = f"surely the {weakest}{sure}"
    if suspects != 1:
        suspected = f"{numbers.count(suspects)} of {numbers.count(classes)} classes may be the {weakest}{sure}"
    neighbour = ""
    if gap is not None:
        distance = f"{numbers.number(gap)} below" if gap > TIE_TOLERANCE else "level with"
        neighbour = f", {distance} {class_phrase(next_cls)}"
    often = ""
    if models > 1:
        often = f"; lowest in {_number_of(times, models)}"
    return (
        f"{class_phrase(cls)} is the {weakest} of {_name(model)} at "
        f"{_class_value(value, most, as_failures=as_failures)} by {printable(measure)}{neighbour}; {suspected}{often}"
    )


def _no_weakest_class(
    *,
    model: str,
    measure: str,
    cls: str,
    value: float,
    most: float,
    low: float,
    high: float,
    highest: float,
    confidence: float | None,
    tied: int = 0,
    as_failures: bool = False,
    **_: object,
) -> str:
    counted_as = FAILURES.lower() if as_failures else ""
    return (
        f"No difference between classes of {_name(model)} can be shown{_with_confidence(confidence)}; "
        f"{counted_as}{class_phrase(cls)}{words_of_ties(tied)} scores lowest by {printable(measure)}, "
        f"{_class_value(value, most, as_failures=as_failures)} ({numbers.interval(low, high, highest)})"
    )


def _groups_differ(
    *,
    model: str,
    attribute: str,
    measure: str,
    lowest: str,
    low_value: float,
    highest: str,
    high_value: float,
    sure: int,
    compared: int,
    confidence: float,
    **_: object,
) -> str:
    low = f"{numbers.number(low_value)} on {printable(lowest)}"
    high = f"{numbers.number(high_value)} on {printable(highest)}"
    values = f"{_name(model)}, {low}, {high}"
    with_confidence = _with_confidence(confidence)
    if not sure:
        start = f"No difference between groups in {printable(measure)} can be shown{with_confidence}"
        return f"{start}; the widest is by {printable(attribute)} ({values})"
    # The widest of all differences, each of which is sure for its model and attribute alone.
    if compared > 1:
        with_confidence = f" ({numbers.percent(confidence)} confidence for one model and attribute)"
    return f"Groups by {printable(attribute)} differ most surely in {printable(measure)}: {values}{with_confidence}"


def _few_samples(*, measure: str, count: int, classes: int, least: int, below: int, **_: object) -> str:
    verb = "rests" if count == 1 and classes > 1 else "rest"
    return (
        f"{upper_first(_number_of(count, classes, 'class'))} {verb} on fewer than {below} samples "
        f"(the fewest: {numbers.count(least)}, {printable(measure)})"
    )


# ---- models ----


def _best_models(
    *,
    measure: str,
    model_names: Sequence[str],
    best: int,
    models: int,
    different: int,
    pairs: int,
    confidence: float | None,
    **_: object,
) -> str:
    names = [_name(name) for name in model_names]
    if best == 1:
        winners = f"{names[0]} is the best"
    elif best <= len(names):
        winners = f"{enumeration(names[:best])} may each be the best"
    else:
        winners = f"{numbers.count(best)} may each be the best"
    return (
        f"{winners} of {numbers.count(models)} models by {printable(measure)}{_with_confidence(confidence)}; "
        f"{numbers.count(different)} of {numbers.count(pairs)} pairs differ significantly"
    )


def _no_best_model(
    *, measure: str, models: int, different: int, pairs: int, confidence: float | None, **_: object
) -> str:
    differing = "no two differ"
    if different:
        differing = f"{numbers.count(different)} of {numbers.count(pairs)} pairs differ"
    return (
        f"No best model can be shown: any of the {numbers.count(models)} may be the best by {printable(measure)}, "
        f"{differing} significantly{_with_confidence(confidence)}"
    )


def _metrics_disagree(*, metric: str, rdi: float, other: float, **_: object) -> str:
    by_rdi, by_other = ("less", "more") if rdi > 0 else ("more", "less")
    return (
        "Whether robustness costs fairness depends on the metric: models with a higher mean are "
        f"{by_rdi} equal by RDI ({numbers.signed(rdi)}), {by_other} equal by {METRICS[metric].title} "
        f"({numbers.signed(other)})"
    )


def _undecided_models(
    *,
    model_names: Sequence[str],
    unit: str,
    count: int,
    lacking: int,
    held: int,
    most_open: int,
    known: int,
    least: int | None,
    most: int | None,
    confidence: float | None,
    rule: int | None = None,
    rules: int | None = None,
    **_: object,
) -> str:
    names = _with_more([_name(name) for name in model_names], count)
    verb = "stays" if count == 1 else "stay"
    # What settles one rule does not settle the others.
    by_rule = f" by rule {rule} of {rules}" if rules else ""
    undecided = f"{names} {verb} undecided{by_rule}{_with_confidence(confidence)}"
    clauses = []
    if lacking:
        of_these = "" if lacking == count else f"for {numbers.count(lacking)} of them "
        clauses.append(f"{of_these}it takes samples of every {unit}")
    if held:
        of_these = "" if held == count else f", {numbers.count(held)} of them"
        open_samples = numbers.counted(most_open, "open sample")
        clauses.append(f"{open_samples} at most{of_these}, for a proof or an attack to decide")
    if least is not None and most is not None:
        needed = numbers.count(most) if least == most else f"{numbers.count(least)} to {numbers.count(most)}"
        settled = "it" if known == count else f"{numbers.count(known)} of them"
        clauses.append(f"about {needed} samples per {unit} would settle {settled}")
    return f"{undecided}: {'; '.join(clauses) or 'no number of samples is known that would settle it'}"


# ---- remedies ----


def _remedy_helps(
    *, model: str, before: float, after: float, low: float, confidence: float | None, **roles: Any
) -> str:
    return (
        f"Class offsets lift the worst class of {_name(model)} under attack from {_change(before, after)}, "
        f"surely by {numbers.lower_bound(low)}{_with_confidence(confidence)}; {_payers(**roles)}{_verdicts(**roles)}"
    )


def _remedy_not_shown(
    *, model: str, before: float, after: float, low: float, high: float, confidence: float | None, **roles: Any
) -> str:
    return (
        f"No gain of the worst class of {_name(model)} by class offsets can be shown: {_change(before, after)} under "
        f"attack, a change of {numbers.interval(low, high)}{_with_confidence(confidence)}; "
        f"{_payers(**roles)}{_verdicts(**roles)}"
    )


def _payers(
    *,
    mean_before: float,
    mean_after: float,
    losing: int,
    classes: int,
    payer: str | None,
    payer_before: float = math.nan,
    payer_after: float = math.nan,
    **_: object,
) -> str:
    mean = f"the mean goes from {_change(mean_before, mean_after)}"
    if payer is None:
        return f"no class surely pays, and {mean}"
    verb = "pays" if losing == 1 else "pay"
    most = "" if losing == 1 else " most"
    payers = _number_of(losing, classes, "class")
    return f"{payers} surely {verb}, {class_phrase(payer)}{most} ({_change(payer_before, payer_after)}), and {mean}"


def _verdicts(*, verdict_before: str | None, verdict_after: str | None, **_: object) -> str:
    if verdict_before is None:
        return ""
    if verdict_before == verdict_after:
        return f"; the verdict stays {verdict_before}"
    return f"; the verdict turns from {verdict_before} to {verdict_after}"


TEMPLATES: Mapping[str, Template] = {
    "passing_model_falls": _passing_model_falls,
    "order_reversed": _order_reversed,
    "no_attack": _no_attack,
    "passes_on_attacks": _passes_on_attacks,
    "score_refuted": _score_refuted,
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
    "remedy_helps": _remedy_helps,
    "remedy_not_shown": _remedy_not_shown,
}
