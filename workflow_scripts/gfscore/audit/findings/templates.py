"""Sentences of findings with clauses that depend on the numbers: one function for each kind.

Functions take the subject, the numbers and the confidence of a finding. Bounds are printed rounded outwards, values to
the nearest number, correlations with their sign.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gfscore.audit.metrics import METRICS
from gfscore.core.names import (
    LONGEST_IN_SENTENCE,
    class_phrase,
    enumeration,
    printable,
    shortened,
    upper_first,
    words_of_ties,
)
from gfscore.core.numbers import (
    count,
    counted,
    interval,
    lower_bound,
    number,
    percent,
    plural,
    signed,
    span,
    upper_bound,
)
from gfscore.statistics.tolerances import TIE_TOLERANCE

Subject = Mapping[str, Any]
"""Names of models, classes and measures by their role."""

Numbers = Mapping[str, Any]
"""Numbers of a finding by their role."""

Template = Callable[[Subject, Numbers, float | None], str]

FAILURES = "Undecided samples counted as failures, "
"""Start of sentences on the smallest values that undecided samples allow."""

NEARLY_REVERSED = -0.8
"""Spearman correlation at most which one order is nearly the reverse of another."""


# ---- clauses ----


def _name(text: object) -> str:
    return shortened(text, LONGEST_IN_SENTENCE)


def _with_confidence(confidence: float | None) -> str:
    return "" if confidence is None else f" ({percent(confidence)} confidence)"


def _number_of(n: int, total: int, noun: str = "model") -> str:
    # "the only model", "both models", "2 of 3 models".
    if total == 1:
        return f"the only {noun}"
    if n < total:
        return f"{count(n)} of {count(total)} {plural(noun)}"
    every = "both" if total == 2 else f"all {count(total)}"
    return f"{every} {plural(noun)}"


def _range_of(low: float, high: float) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _with_more(names: list[str], total: int) -> str:
    # Names of some, and how many more there are.
    if total > len(names):
        names = [*names, f"{count(total - len(names))} more"]
    return enumeration(names)


# ---- attacks ----


def _passing_model_falls(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    accuracy = f"{100 * numbers['accuracy']:.2g}%"
    bound = ""
    if confidence:
        bound = f", at most {upper_bound(numbers['high'])} with {percent(confidence)} confidence"
    remaining = ""
    if numbers["others"]:
        verbs = "that passes falls" if numbers["others"] == 1 else "that pass fall"
        remaining = f"; {count(int(numbers['others']))} more {verbs} below one half"
    return (
        f"{_name(subject['model'])} passes, yet attacks leave it {accuracy} of the samples "
        f"({printable(subject['source'])}{bound}){remaining}"
    )


def _order_reversed(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    relation = "is nearly the reverse of" if numbers["rho"] <= NEARLY_REVERSED else "runs against"
    return (
        f"The order of the models by {printable(subject['measure'])} {relation} their order under attack "
        f"({printable(subject['source'])}, Spearman {signed(numbers['rho'])}, {count(numbers['models'])} models)"
    )


def _no_attack(subject: Subject, _numbers: Numbers, _confidence: float | None) -> str:
    start = "No measure of this audit attacks"
    if subject["attack_free"]:
        measure = printable(subject["measure"])
        return f"{start}: {measure} says how clearly classes are told apart, not what attacks leave"
    if subject["stated"]:
        return f"{start}: what they leave is known from {printable(subject['stated'])} alone, of whole models"
    return f"{start}, so that nothing here says what attacks would leave"


def _passes_on_attacks(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    one = numbers["passing"] == 1
    start = "The model that passes does so" if one else "The models that pass do so"
    start = f"{start} because attacks failed ({printable(subject['measure'])})"
    if subject["interval"] is None:
        return f"{start}; nothing is proven in that ball"
    worst = "its worst class" if one else "their worst classes"
    proven = _range_of(numbers["least"], numbers["most"])
    return f"{start}; of {worst} {proven} is proven ({printable(subject['interval'])})"


def _score_refuted(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    rates = _range_of(numbers["least"], numbers["most"])
    mean = ""
    if numbers["refuted"]:
        models = _number_of(numbers["refuted"], numbers["models"])
        mean = f"; its mean is refuted for {models}{_with_confidence(confidence)}"
    return (
        f"{printable(subject['score'])} is no lower bound on the distance to an error: "
        f"{printable(subject['distances'])} comes nearer on {rates} of the correct samples{mean}"
    )


def _gradients_masked(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    model = _name(subject["model"])
    measure = printable(subject["measure"])
    samples = f"{count(numbers['count'])} of {count(numbers['n'])} samples"
    further_signs = ""
    if numbers["models"] > 1:
        further_signs = f"; signs of it in {count(numbers['models'])} models"
    if subject["proof"]:
        # It is certain that the attacks failed, but not why.
        return (
            f"Attacks of {measure} on {model} certainly failed on {samples}: they are too weak, or its gradients are "
            f"masked{further_signs}"
        )
    return f"Gradients of {model} may be masked, so that its attacks fail ({measure}, {samples}){further_signs}"


# ---- classes and groups ----


def _classes_without_samples(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    names = _with_more([class_phrase(name) for name in subject["classes"]], numbers["count"])
    any_of_them = "it" if numbers["count"] == 1 else "any of them"
    return f"Nothing is known of {names}: no samples, and {any_of_them} may be the weakest class"


def _class_value(numbers: Numbers) -> str:
    # Of a class that is the weakest where undecided samples count as failures, its value where they do comes first.
    if numbers.get("as_failures") and numbers["most"] > numbers["value"]:
        return f"{number(numbers['value'])}, at most {upper_bound(numbers['most'])}"
    return span(numbers["value"], numbers["most"])


def _weakest_class(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    sure = _with_confidence(confidence)
    # A class without samples may be weaker still.
    weakest = "weakest measured" if numbers["absent"] else "weakest"
    suspects = f"surely the {weakest}{sure}"
    if numbers["suspects"] != 1:
        suspects = f"{count(numbers['suspects'])} of {count(numbers['classes'])} classes may be the {weakest}{sure}"
    neighbour = ""
    if numbers["gap"] is not None:
        distance = f"{number(numbers['gap'])} below" if numbers["gap"] > TIE_TOLERANCE else "level with"
        neighbour = f", {distance} {class_phrase(subject['next'])}"
    often = ""
    if numbers["models"] > 1:
        often = f"; lowest in {_number_of(numbers['times'], numbers['models'])}"
    return (
        f"{class_phrase(subject['class'])} is the {weakest} of {_name(subject['model'])} at "
        f"{_class_value(numbers)} by {printable(subject['measure'])}{neighbour}; {suspects}{often}"
    )


def _no_weakest_class(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    bounds = interval(numbers["low"], numbers["high"], numbers["highest"])
    counted_as = FAILURES.lower() if numbers.get("as_failures") else ""
    return (
        f"No difference between classes of {_name(subject['model'])} can be shown{_with_confidence(confidence)}; "
        f"{counted_as}{class_phrase(subject['class'])}{words_of_ties(numbers.get('tied', 0))} scores lowest by "
        f"{printable(subject['measure'])}, {_class_value(numbers)} ({bounds})"
    )


def _groups_differ(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    low = f"{number(numbers['low_value'])} on {printable(subject['lowest'])}"
    high = f"{number(numbers['high_value'])} on {printable(subject['highest'])}"
    values = f"{_name(subject['model'])}, {low}, {high}"
    attribute = printable(subject["attribute"])
    measure = printable(subject["measure"])
    sure = _with_confidence(confidence)
    if numbers["sure"]:
        # The widest of all differences, each of which is sure for its model and attribute alone.
        if numbers["compared"] > 1:
            sure = f" ({percent(confidence)} confidence for one model and attribute)"
        return f"Groups by {attribute} differ most surely in {measure}: {values}{sure}"
    return f"No difference between groups in {measure} can be shown{sure}; the widest is by {attribute} ({values})"


def _few_samples(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    verb = "rests" if numbers["count"] == 1 and numbers["classes"] > 1 else "rest"
    classes = _number_of(numbers["count"], numbers["classes"], "class")
    return (
        f"{upper_first(classes)} {verb} on fewer than {numbers['below']} samples "
        f"(the fewest: {count(numbers['least'])}, {printable(subject['measure'])})"
    )


# ---- models ----


def _best_models(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    names = [_name(name) for name in subject["models"]]
    if numbers["best"] == 1:
        best = f"{names[0]} is the best"
    elif numbers["best"] <= len(names):
        best = f"{enumeration(names[: numbers['best']])} may each be the best"
    else:
        best = f"{count(numbers['best'])} may each be the best"
    measure = printable(subject["measure"])
    return (
        f"{best} of {count(numbers['models'])} models by {measure}{_with_confidence(confidence)}; "
        f"{count(numbers['different'])} of {count(numbers['pairs'])} pairs differ significantly"
    )


def _no_best_model(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    pairs = "no two differ"
    if numbers["different"]:
        pairs = f"{count(numbers['different'])} of {count(numbers['pairs'])} pairs differ"
    return (
        f"No best model can be shown: any of the {count(numbers['models'])} may be the best by "
        f"{printable(subject['measure'])}, {pairs} significantly{_with_confidence(confidence)}"
    )


def _metrics_disagree(subject: Subject, numbers: Numbers, _confidence: float | None) -> str:
    by_rdi, by_other = ("less", "more") if numbers["rdi"] > 0 else ("more", "less")
    other_metric = METRICS[subject["metric"]].title
    return (
        "Whether robustness costs fairness depends on the metric: models with a higher mean are "
        f"{by_rdi} equal by RDI ({signed(numbers['rdi'])}), {by_other} equal by {other_metric} "
        f"({signed(numbers['other'])})"
    )


def _undecided_models(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    names = _with_more([_name(name) for name in subject["models"]], numbers["count"])
    verb = "stays" if numbers["count"] == 1 else "stay"
    # What settles one rule does not settle the others.
    rule = f" by rule {numbers['rule']} of {numbers['rules']}" if "rules" in numbers else ""
    undecided = f"{names} {verb} undecided{rule}{_with_confidence(confidence)}"
    clauses = []
    if numbers["lacking"]:
        of_these = "" if numbers["lacking"] == numbers["count"] else f"for {count(numbers['lacking'])} of them "
        clauses.append(f"{of_these}it takes samples of every {subject['unit']}")
    if numbers["held"]:
        held = "" if numbers["held"] == numbers["count"] else f", {count(numbers['held'])} of them"
        open_samples = counted(numbers["most_open"], "open sample")
        clauses.append(f"{open_samples} at most{held}, for a proof or an attack to decide")
    if numbers["most"] is not None:
        needed = count(numbers["most"])
        if numbers["least"] != numbers["most"]:
            needed = f"{count(numbers['least'])} to {needed}"
        settled = "it" if numbers["known"] == numbers["count"] else f"{count(numbers['known'])} of them"
        clauses.append(f"about {needed} samples per {subject['unit']} would settle {settled}")
    return f"{undecided}: {'; '.join(clauses) or 'no number of samples is known that would settle it'}"


# ---- remedies ----


def remedy_in_short(kind: str, subject: Subject, numbers: Numbers) -> str:
    """What a remedy does to the worst class, in a few words; the kind is remedy_helps or remedy_not_shown."""
    values = f"{number(numbers['before'])} to {number(numbers['after'])}"
    model = _name(subject["model"])
    if kind == "remedy_helps":
        return f"class offsets lift the worst class of {model} from {values}, surely by {lower_bound(numbers['low'])}"
    return f"class offsets: no gain of the worst class of {model} is shown ({values})"


def _remedy_helps(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    return (
        f"Class offsets lift the worst class of {_name(subject['model'])} under attack from "
        f"{number(numbers['before'])} to {number(numbers['after'])}, surely by {lower_bound(numbers['low'])}"
        f"{_with_confidence(confidence)}; {_payers(subject, numbers)}{_verdicts(subject)}"
    )


def _remedy_not_shown(subject: Subject, numbers: Numbers, confidence: float | None) -> str:
    bounds = interval(numbers["low"], numbers["high"])
    return (
        f"No gain of the worst class of {_name(subject['model'])} by class offsets can be shown: "
        f"{number(numbers['before'])} to {number(numbers['after'])} under attack, a change of {bounds}"
        f"{_with_confidence(confidence)}; {_payers(subject, numbers)}{_verdicts(subject)}"
    )


def _payers(subject: Subject, numbers: Numbers) -> str:
    mean = f"the mean goes from {number(numbers['mean_before'])} to {number(numbers['mean_after'])}"
    if not numbers["losing"]:
        return f"no class surely pays, and {mean}"
    values = f"{number(numbers['payer_before'])} to {number(numbers['payer_after'])}"
    payers = _number_of(numbers["losing"], numbers["classes"], "class")
    verb = "pays" if numbers["losing"] == 1 else "pay"
    most = "" if numbers["losing"] == 1 else " most"
    return f"{payers} surely {verb}, {class_phrase(subject['payer'])}{most} ({values}), and {mean}"


def _verdicts(subject: Subject) -> str:
    before = subject["verdict_before"]
    after = subject["verdict_after"]
    if before is None:
        return ""
    if before == after:
        return f"; the verdict stays {before}"
    return f"; the verdict turns from {before} to {after}"


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
