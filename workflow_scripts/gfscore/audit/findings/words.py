"""The one place where findings become words: a format, or a function, for each kind.

Imports nothing heavy, because declarations of charts are read by every run of Snakemake.
"""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from gfscore.audit.findings.templates import FAILURES, PARAMETERS, TEMPLATES, Template
from gfscore.core import numbers
from gfscore.core.names import (
    LONGEST_IN_SENTENCE,
    capitalised,
    class_phrase,
    enumeration,
    printable,
    shortened,
    upper_first,
    words_of_ties,
)

OBJECTIVE_PHRASES = {
    "cross_model_accuracy": "cross-model accuracy",
    "within_model_class_accuracy": "within-model class accuracy",
    "ranking_stability": "ranking stability",
    "ranking_stability_endpoints": "ranking stability (end points)",
    "likelihood": "likelihood",
    "attack_distance": "attack distance",
}
"""Objectives of calibration.json as phrases of a sentence."""

OF_ANY_VALUES = ("mean_rdi_few", "measures_few", "groups_small", "models_alike", "no_weakest_class")
"""Findings that hold whatever undecided samples are worth, or say themselves what does not."""

TEMPLATE_STARTS = (
    *("No ", "All ", "Both ", "The only ", "The model that ", "The models that "),
    *("The order of ", "Groups by ", "Whether ", "Undecided samples "),
)
"""Starts of sentences that are words of the template, not names."""


def in_words(kind: str, subject: Mapping[str, Any], quantities: Mapping[str, Any], confidence: float | None) -> str:
    """The sentence of a finding, without a full stop.

    Parameters
    ----------
    kind : str
        Key of SENTENCES.
    subject : mapping
        Names of models, classes and measures by their role.
    quantities : mapping
        Numbers by their role, among which `tied` counts others that are equal to the one named, and `as_failures` says
        that all of them count undecided samples as failures.
    confidence : float or None
        None where the statement is about the samples at hand.
    """
    template = SENTENCES[kind]
    as_failures = quantities.get("as_failures") and kind not in OF_ANY_VALUES
    if not isinstance(template, str):
        names = {PARAMETERS.get(role, role): name for role, name in subject.items()}
        text = template(**names, **quantities, confidence=confidence)
        return FAILURES + lowered(text) if as_failures else capitalised(text)

    if as_failures:
        # Abbreviations, such as RDI, keep their capitals.
        template = FAILURES + (template if template[:2].isupper() else template[0].lower() + template[1:])
    text = _FORMATTER.format(template, **subject, **quantities)
    text += words_of_ties(int(quantities.get("tied", 0)))
    return capitalised(text) if text.startswith("class ") else text


def lowered(sentence: str) -> str:
    """Sentence as it goes on behind other words: a first word of the template in small letters, a name as it is."""
    if sentence.startswith(TEMPLATE_STARTS):
        return sentence[:1].lower() + sentence[1:]
    return sentence


class _Formatter(Formatter):
    """Formats {role:format}: numbers to three significant digits, names as people read them."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """A number or name of a finding as text; `format_spec` is a key of FORMATS, or empty."""
        if format_spec:
            return FORMATS[format_spec](value)
        if isinstance(value, str | tuple):
            return _names(value, lambda name: shortened(name, LONGEST_IN_SENTENCE))
        return numbers.count(value) if isinstance(value, int) else numbers.number(value)


def _names(value: str | tuple[str, ...], phrase: Callable[[str], str]) -> str:
    names = (value,) if isinstance(value, str) else value
    return enumeration([phrase(name) for name in names])


def _counted(noun: str) -> Callable[[int], str]:
    several = numbers.plural(noun)
    return lambda value: f"{int(value):,} {noun if value == 1 else several}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "low": numbers.lower_bound,
    "high": numbers.upper_bound,
    "signed": numbers.signed,
    "setting": numbers.setting,
    "count": numbers.count,
    "ties": words_of_ties,
    "points": lambda value: f"{100 * value:.0f} points",
    "times": lambda value: f"{numbers.number(value)} times",
    "title": lambda name: upper_first(printable(name)),
    "size": lambda value: numbers.number(abs(value)),
    "percent": lambda value: f"{100 * value:.3g}%",
    "class": lambda value: _names(value, class_phrase),
    "text": printable,
    "objective": lambda name: OBJECTIVE_PHRASES.get(name, name),
    "models": _counted("model"),
    "classes": _counted("class"),
    "pairs": _counted("pair"),
}
"""How a number or name is written."""

_FORMATTER = _Formatter()

RANGE_OF_RDI = "RDI runs from {low} ({best}){tied_best:ties} to {high} ({worst}){tied_worst:ties}"
"""How the sentences of RDI of several models begin."""

SENTENCES: dict[str, str | Template] = {
    **TEMPLATES,
    # of an audit
    "remedy_helps_in_short": "Class offsets lift the worst class of {model} from {before} to {after}, surely by "
    "{low:low}",
    "remedy_not_shown_in_short": "Class offsets: no gain of the worst class of {model} is shown ({before} to {after})",
    "certificates_refuted": "Attacks broke {refuted:count} of {n:count} certificates of {measure:text}, more than "
    "chance allows: a defect, not a result",
    "calibration_fails": "No calibration makes {measure:text} rank models by robust accuracy better than both clean "
    "accuracy and T = 1 do (Spearman {after:signed} at best, by {objective:objective}{tied_objectives:ties}; clean "
    "accuracy {alone:signed}, T = 1 {before:signed})",
    # which class
    "weakest_in_models": "{cls:class} scores lowest in {times} of {models:models}, significantly in {sure:count}",
    "weakest_class_open": "{cls:class} scores lowest in {times} of {models:models}, significantly in none",
    "weakest_classes": "{classes:classes} score lowest equally often, in {times} of {models:models} each",
    "weakest_class_of_one": "{cls:class} is significantly the weakest class, at {value}",
    "weakest_class_of_one_open": "{cls:class} scores lowest ({value}), but {suspects:classes} may be the weakest",
    "classes_alike": "No class differs from another beyond its interval; {cls:class} scores lowest in {times} of "
    "{models:models}",
    "classes_alike_of_one": "No class differs from another beyond its interval; {cls:class} scores lowest ({value})",
    "classes_equal": "All classes have the same value in every model",
    "most_vulnerable": "{cls:class} ranks lowest on average ({rank} of {classes}) and scores lowest in {times} of "
    "{models:models}",
    "ranks_open": "No two classes differ beyond their intervals; {cls:class} ranks lowest ({rank} of {classes})",
    "ranks_equal": "All {classes:classes} have the same mean rank: none is more vulnerable",
    "profiles_agree": "Models agree on which classes are weak: mean Spearman {rho:signed} over {pairs:pairs} of models "
    "({rho_low:signed} to {rho_high:signed})",
    "profiles_differ": "Models agree little on which classes are weak: mean Spearman {rho:signed} over {pairs:pairs} "
    "of models ({rho_low:signed} to {rho_high:signed})",
    "profiles_unranked": "Of every two models one has the same value in all classes: no order can be compared",
    "best_and_worst": "{model}: the classes lie between {low} and {high}",
    "errors_drawn": "{cls:class} draws more than an equal share of the errors in {times} of {models:models}, {share} "
    "on average",
    "errors_drawn_untested": "{cls:class} draws the largest share of the errors, {share} on average",
    "errors_even": "No class draws significantly more than an equal share of the errors; {cls:class} draws most, "
    "{share} on average",
    "most_confused": "{true:class} is most often taken for {predicted:class}: in {share} of the cases, mean over "
    "{models:models}",
    "most_confused_of_any": "The most frequent confusion of any model: {model} takes {true:class} for "
    "{predicted:class} in {share} of the cases",
    "nothing_confused": "No class is ever taken for another",
    "alike": "{times} of {pairs:pairs} of models err significantly more alike than by chance (cosine of errors {mean} "
    "on average, {mean_chance} by chance), {models} most",
    "not_alike": "No two models err significantly more alike than by chance: cosine of errors {mean} on average, "
    "{mean_chance} by chance",
    "alike_not_settled": "Whether models err more alike than by chance cannot be settled with {classes:classes}: "
    "cosine of errors {mean} on average, {mean_chance} by chance",
    "no_errors_to_compare": "Some models make no errors, so that there is nothing to compare",
    "easiest_target": "The attack turns up to {most} of a class into another ({true:class} into {target:class})"
    "{tied_pairs:ties}; the easiest target is {easiest:class}, {share} of the other samples",
    "no_target_reached": "The attack reaches no target",
    # which model
    "mean_rdi_few": "{models:models}: too few to show a relation between mean and disparity",
    "mean_rdi_none": "No clear relation between mean and RDI over {models:models} (Spearman {rho:signed})",
    "mean_rdi_less": "Models with a higher mean are less equal by RDI (Spearman {rho:signed})",
    "mean_rdi_more": "Models with a higher mean are more equal by RDI (Spearman {rho:signed})",
    "mean_rdi_less_against_nrgc": "Models with a higher mean are less equal by RDI (Spearman {rho:signed}), but more "
    "equal by NRGC ({rho_nrgc:signed})",
    "mean_rdi_more_against_nrgc": "Models with a higher mean are more equal by RDI (Spearman {rho:signed}), but less "
    "equal by NRGC ({rho_nrgc:signed})",
    "places_fixed": "No weight of RDI changes the order of {models:models}",
    "places_kept": "Up to \u03bb = {lam:setting} all {models:models} keep their places; the first swap comes at "
    "\u03bb = {first}",
    "places_change": "Weighing RDI with \u03bb = {lam:setting} moves {moved} of {models:models} to another place; the "
    "first swap comes at \u03bb = {first}",
    # how sure
    "disparity_above": RANGE_OF_RDI + ", above chance in {times} of {models:models}",
    "disparity_above_of_one": "RDI is {low}, above chance",
    "disparity_chance_of_known": RANGE_OF_RDI + ", not distinguishable from chance in {models_known} of "
    "{models:models}; of the others what chance gives is not known",
    "disparity_unlike": RANGE_OF_RDI + "; classes differ in how values are distributed, perhaps not in their means",
    "disparity_unlike_of_one": "RDI is {low}; classes differ in how values are distributed, perhaps not in their means",
    "disparity_chance": RANGE_OF_RDI + ", not distinguishable from chance in any model",
    "disparity_chance_of_one": "RDI is {low}, not distinguishable from chance",
    "disparity_unknown": RANGE_OF_RDI + "; what chance gives is not known",
    "disparity_unknown_of_one": "RDI is {low}; what chance gives is not known",
    "rdi_bound_is_wide": "{n:count} samples per class, drawn again, give an RDI within {found:high} of that of all; "
    "the bound, {bound:high}, is {ratio:times} as wide, but holds for the true RDI",
    "rdi_does_not_vary": "RDI does not vary at all at {n:count} samples per class, where the bound allows {bound:high}",
    # can it be trusted
    "mean_score_refuted": "Attacks refute the mean score of {times} of {models:models}, and find examples nearer than "
    "the score for {low} to {high} of the correct samples",
    "score_open": "Attacks refute the mean score of none of {models:models} ({open} not settled), yet find examples "
    "nearer than the score for {low} to {high} of the correct samples",
    "score_violated": "Attacks refute the mean score of none of {models:models}, yet find examples nearer than the "
    "score for {low} to {high} of the correct samples",
    "mean_score_refuted_of_one": "Attacks refute the mean score, and find examples nearer than the score for {low} of "
    "the correct samples",
    "score_open_of_one": "Whether attacks refute the mean score is not settled; they find examples nearer than the "
    "score for {low} of the correct samples",
    "score_violated_of_one": "Attacks do not refute the mean score, yet find examples nearer than the score for {low} "
    "of the correct samples",
    "score_stands": "Attacks find no example nearer than the score in {models:models}, which confirms nothing",
    "nothing_to_refute": "No sample is classified correctly, so that attacks have nothing to refute",
    "mean_radius": "{model}: mean radius {mean}",
    "mean_radii": "The mean radius is smallest for {worst} ({low}){tied_worst:ties}, largest for {best} ({high})",
    "mean_radii_equal": "All models have the same mean radius, {low}",
    "smallest_radius": "{cls:class} has the smallest mean radius in {times} of {models:models}",
    "calibration_few": "{models:models}: too few to show whether calibration improves their ranking",
    "calibration_useless": "No calibrated score ranks the models like robust accuracy: Spearman {after:signed} at "
    "best, {before:signed} at T = 1, {alone:signed} for clean accuracy alone",
    "accuracy_as_good": "Clean accuracy alone agrees with robust accuracy at least as well ({alone:signed}) as every "
    "calibrated score (best {after:signed})",
    "calibration_no_gain": "No calibration improves agreement with robust accuracy over T = 1 ({before:signed})",
    "calibration_helps": "Calibrating by {objective}{tied_objectives:ties} gives the best agreement with robust "
    "accuracy: {after:signed}, against {before:signed} at T = 1 and {alone:signed} for clean accuracy alone",
    "optimum_at_edge": "The optimum of {times} of {objectives} objectives reaches the end of the search: not to be "
    "trusted",
    "optimum_inside": "No optimum reaches the end of the search; agreement with robust accuracy is not known",
    "shift_moves_score": "Adding {from_:setting} to {to:setting} to every logit, which alters no prediction, moves "
    "{measure} by up to {move}",
    "shift_moves_score_others_not": "Adding {from_:setting} to {to:setting} to every logit, which alters no "
    "prediction, moves {measure} by up to {move}, but not {still}",
    "scale_moves_score": "Multiplying every logit by {from_:setting} to {to:setting}, which alters no prediction, "
    "moves {measure} by up to {move}",
    "scale_moves_score_others_not": "Multiplying every logit by {from_:setting} to {to:setting}, which alters no "
    "prediction, moves {measure} by up to {move}, but not {still}",
    "score_unmoved": "Changes of the logits that alter no prediction leave {measures} as they are",
    # for whom
    "groups_differ_most": "Groups by {attribute:text} differ most: {model}, {low} on {lowest:text} and {high} on "
    "{highest:text}{tied_pairs:ties}; beyond their intervals in {times} of {models:models}",
    "groups_overlap": "No groups differ beyond their intervals in any of {models:models}; the widest difference is by "
    "{attribute:text}: {model}, {low} on {lowest:text} and {high} on {highest:text}{tied_pairs:ties}",
    "groups_differ_within_class": "Within {cls:class} groups by {attribute:text} differ most: {lowest:text} {low}, "
    "{highest:text} {high}",
    "groups_alike": "No groups with enough samples differ",
    "groups_small": "No two groups have enough samples to be compared",
    "recall_differs": "Largest difference of recall between groups, mean over {models:models}: {cls:class} by "
    "{attribute:text}, {gap:points}",
    "recall_differs_of_one": "Largest difference of recall between groups: {cls:class} by {attribute:text}, "
    "{gap:points}",
    "hardest_corruption": "{corruption:title}{tied_kinds:ties} costs most recall (to {recall} on average; of a single "
    "class down to {lowest}); the lowest class under {times} of {kinds} corruptions is {cls:class}",
    "corruptions_equal": "All corruptions leave the same recall, {recall} on average; of a single class down to "
    "{lowest}",
    "nothing_corrupted": "No class has a corrupted copy",
    "least_tolerated": "Predictions depend most on {dimension:text}: Tolerance {mean}, mean over {models:models}",
    "all_tolerated": "No move along any latent dimension changes a prediction",
    "all_constant": "Every classifier gives all decoded images one class, so that no Tolerance says anything",
    "effect_raises": "{dimension:text} raises {trait:text} most: by {shift:size} standard deviations",
    "effect_lowers": "{dimension:text} lowers {trait:text} most: by {shift:size} standard deviations",
    "effect_raises_probability": "{dimension:text} raises {trait:text} most: by {shift:size} in probability",
    "effect_lowers_probability": "{dimension:text} lowers {trait:text} most: by {shift:size} in probability",
    "nothing_moves": "No move changes anything that is measured",
    "reconstructed": "Only what the lower row keeps can be moved: classifiers are shown such images",
    "dimensions_equal": "All dimensions change pictures equally",
    "strongest_dimension": "{most:text}{tied_most:ties} changes pictures most, {least:text}{tied_least:ties} least",
    "no_tolerance": "No task has a Tolerance to any attribute but its own",
    "tasks_tolerate_all": "No move changes a prediction of any task",
    "task_depends": "{task:text} depends most on {attribute:text}: Tolerance {mean}, mean over {models:models}",
    "same_attributes": "Tolerance and equal opportunity name the same most influential attribute in {times} of {kinds} "
    "tasks",
    "no_attribute_in_common": "No two attributes are both moved and compared between groups",
    "tasks_not_comparable": "No number is known of two tasks: there is nothing to compare",
    "tasks_differ": "Between tasks, {metric:text}{tied_most:ties} differs most, by {mean_gap}, and "
    "{least:text}{tied_least:ties} least, by {mean_least}",
    "tasks_differ_alike": "Between tasks all numbers that are known of two differ alike, by {mean_gap}",
}
"""Sentence of each kind of finding: a format of its subject and numbers with keys of FORMATS, or a function of them.

Charts add their own.
"""
