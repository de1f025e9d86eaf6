"""The verdict on an audit: every rule of its gate for every model, with a stated confidence."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gfscore.audit.values import AuditValues
from gfscore.audit.verdicts.candidates import Candidate
from gfscore.audit.verdicts.gate_rules import (
    FAIL,
    FALSIFICATION,
    INCONCLUSIVE,
    PASS,
    RuleSettings,
    Statistic,
    combine,
)
from gfscore.audit.verdicts.planning import fewest_samples
from gfscore.audit.verdicts.verdict import (
    WORST_CLASS,
    Evidence,
    JudgedDataset,
    JudgedMeasure,
    JudgedModel,
    Judgement,
    ModelRemark,
    ModelVerdict,
    OpenSamples,
    ReleaseSource,
    RuleVerdict,
    digests_of,
)
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.names import class_phrase, enumeration
from gfscore.core.numbers import counted
from gfscore.core.software import software
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import worst_classes

NOTE = (
    "The confidence covers the models listed here, judged on these samples at the looks that were planned. A model "
    "that was chosen, tuned or retrained because of an audit on these samples needs a gate on fresh ones."
)

MOST_NAMED = 3
"""Largest number of classes, and of warnings, that a sentence names."""

MOST_REPEATED = 0.01
"""Share of rows that may repeat an image before the sentence says so."""


def judge(
    candidates: Sequence[Candidate],
    rules: Sequence[RuleSettings],
    *,
    lam: float,
    selection: Mapping[str, Any] | None = None,
    cautions: Sequence[str] = (),
) -> Judgement:
    """Judge every rule of a gate for every model.

    With probability at least the smallest `confidence` of the rules no model passes or fails wrongly, at any of the
    planned looks: alpha is split evenly over rules, models (those that were excluded too) and looks. A model passes
    when the statistic's bound on the safe side reaches the threshold, and fails when the bound on the other side
    misses it; each needs the whole alpha of the model, since the truth lies on one side only. Label-error rates of a
    generator are bounds that fail with a probability of their own, 5%, which comes on top of 1 - `confidence`.

    Parameters
    ----------
    candidates : sequence of Candidate
        Models with bounds for every rule.
    rules : sequence of RuleSettings
        Rules of the gate.
    lam : float
        Weight lambda of RDI in FP.
    selection : mapping, optional
        Contents of models.json: models that are excluded, warned of, or may be guessing.
    cautions : sequence of str
        Clauses on the measures that readers of the verdict must know.

    Returns
    -------
    Judgement
        Verdict of the gate, of every rule, and of every model under each rule.

    References
    ----------
    GF-Score, Definition 4 (audit rule); Berger 1982 (intersection-union test for a minimum).
    """
    selection = selection or {}
    excluded = [ModelRemark.model_validate(entry) for entry in selection.get("excluded", [])]
    warned = [ModelRemark.model_validate(entry) for entry in selection.get("warned", [])]
    # Alpha is split over models left out too; see AuditValues.left_out.
    models = len(candidates) + len(excluded)
    rule_verdicts = [judge_rule(candidates, rule, rules=len(rules), models=models, lam=lam) for rule in rules]
    verdict = combine([rule.verdict for rule in rule_verdicts])
    sentence = _sentence(verdict, rule_verdicts, len(excluded), warned)
    return Judgement(
        verdict=verdict,
        sentence=_with_cautions(sentence, cautions),
        stops=not rule_verdicts or any(rule.stops for rule in rule_verdicts),
        note=_with_cautions(NOTE, cautions),
        rules=rule_verdicts,
        excluded=excluded,
        warned=warned,
        guessing=selection.get("guessing", []),
        software=software(),
    )


def _with_cautions(text: str, cautions: Sequence[str]) -> str:
    for caution in cautions:
        text += f" {caution}."
    return text


def judge_rule(
    candidates: Sequence[Candidate], rule: RuleSettings, *, rules: int, models: int, lam: float
) -> RuleVerdict:
    """Judge one rule of a gate for every model.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one model with bounds for the rule; their verdicts are in this order.
    rule : RuleSettings
    rules, models : int
        Number of rules and of models that alpha is split over: all of the gate, and those that were excluded too.
    lam : float
        Weight lambda of RDI in FP.
    """
    alpha = rule.alpha(rules=rules, models=models)
    model_verdicts = [_judge_model(candidate, rule, alpha, lam) for candidate in candidates]
    bounds = candidates[0].judged[rule.bounds_key].bounds
    statistic = rule.statistic_of(lam=lam)
    return RuleVerdict.model_validate(
        {
            "measure": rule.measure,
            "statistic": rule.statistic,
            "class": rule.class_,
            "attribute": rule.attribute,
            "direction": rule.direction,
            "threshold": rule.threshold,
            "confidence": rule.confidence,
            "looks": rule.looks,
            "alpha": alpha,
            "on_inconclusive": rule.on_inconclusive,
            "interval": bounds.method,
            "range": statistic.value_range(bounds.value_range, len(bounds.n)),
            "title": statistic.title,
            "words": rule.words,
            "verdict": combine([model.verdict for model in model_verdicts]),
            "without_samples": _without_samples(model_verdicts, of_groups=rule.attribute is not None),
            "missing": _missing(model_verdicts),
            "repeated": _repeated(model_verdicts),
            "models": model_verdicts,
        }
    )


def _judge_model(candidate: Candidate, rule: RuleSettings, alpha: float, lam: float) -> ModelVerdict:
    judged = candidate.judged[rule.bounds_key]
    bounds = judged.bounds
    names = judged.names
    statistic = rule.statistic_of(names, lam=lam)
    low, high = statistic.bounds(bounds, alpha)
    verdict = rule.verdict(float(low), float(high))

    needed_per_class = further_samples = open_samples = None
    if verdict == INCONCLUSIVE:
        needed_per_class = _fewest_samples(bounds, rule, statistic, alpha)
        open_samples = _open_samples(bounds, rule, statistic, alpha, needed_per_class=needed_per_class)
    # After the last planned look no verdict may be asked for on these samples with more added.
    if needed_per_class is not None and rule.looks.this < rule.looks.planned:
        missing = np.maximum(needed_per_class - bounds.n, 0)
        further_samples = int(missing.sum() if statistic.one_class is None else missing[statistic.one_class])

    smallest = bounds.samples.summary
    largest = bounds.largest.summary
    value = value_most = statistic.value(smallest)
    if bounds.upper_samples is not None:
        value, value_most = statistic.ends(smallest, largest)

    worst_class = None
    if bounds.n.any():
        lowest, highest = smallest.mean, largest.mean
        if rule.statistic == FALSIFICATION:
            lowest, highest = -highest, -lowest
        # Of equal classes the first.
        worst = np.lexsort((highest, lowest))[0]
        if worst in worst_classes(lowest, highest):
            worst_class = names[int(worst)]

    empty_classes = []
    for index in np.flatnonzero(bounds.n == 0).tolist():
        if statistic.one_class in (None, index):
            empty_classes.append(names[index])

    return ModelVerdict(
        threat=candidate.threat,
        model=candidate.model,
        verdict=verdict,
        value=float(value),
        value_most=float(value_most),
        low=float(low),
        high=float(high),
        worst_class=worst_class,
        samples=judged.counts,
        classes_without_samples=empty_classes,
        samples_needed_per_class=needed_per_class,
        further_samples_needed=further_samples,
        open_samples=open_samples,
    )


def _open_samples(
    bounds: ClassBounds, rule: RuleSettings, statistic: Statistic, alpha: float, *, needed_per_class: int | None
) -> OpenSamples | None:
    # Samples of unknown value in the classes that an undecided verdict depends on; None without any. With
    # `needed_per_class` samples, as large a share of them open, the rule would be decided; None: with no number.
    classes = np.repeat(np.arange(len(bounds.n)), bounds.n)
    is_open = bounds.largest.values > bounds.samples.values
    if statistic.one_class is not None:
        is_open &= classes == statistic.one_class
    elif rule.statistic == WORST_CLASS:
        may_miss_threshold = bounds.lower(alpha) < rule.threshold
        is_open &= may_miss_threshold[classes]
    if not is_open.any():
        return None

    if_lowest = replace(bounds, upper_samples=None)
    if_highest = replace(bounds, samples=bounds.largest, upper_samples=None)

    verdict_if_lowest = rule.verdict(*statistic.bounds(if_lowest, alpha))
    verdict_if_highest = rule.verdict(*statistic.bounds(if_highest, alpha))

    # Open samples are the cause where more samples alone would not decide the rule, but known values would, on these
    # samples or on more.
    cause = False
    if needed_per_class is None:
        cause = (
            {verdict_if_lowest, verdict_if_highest} != {INCONCLUSIVE}
            or _fewest_samples(if_lowest, rule, statistic, alpha) is not None
            or _fewest_samples(if_highest, rule, statistic, alpha) is not None
        )
    return OpenSamples(
        count=int(is_open.sum()), if_lowest=verdict_if_lowest, if_highest=verdict_if_highest, cause=cause
    )


def _fewest_samples(bounds: ClassBounds, rule: RuleSettings, statistic: Statistic, alpha: float) -> int | None:
    return fewest_samples(
        bounds,
        statistic,
        direction=rule.direction,
        threshold=rule.threshold,
        alpha=alpha,
        added=rule.looks.this < rule.looks.planned,
    )


# ---- remarks and sentence ----


def _without_samples(models: Sequence[ModelVerdict], *, of_groups: bool) -> str | None:
    # Classes, or groups, without samples, whatever the verdicts on the models.
    affected = [model for model in models if model.classes_without_samples]
    if not affected:
        return None
    names: list[str] = []
    for model in affected:
        names += model.classes_without_samples
    names = list(dict.fromkeys(names))
    if not of_groups:
        names = [class_phrase(name) for name in names]
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED:,} more"]

    share = "" if len(affected) == len(models) else f" for {len(affected)} of {len(models)} models"
    return (
        f"no samples of {enumeration(names)}{share}, so that values there may be anything in the measure's range: only "
        "samples of them can show more"
    )


def _missing(models: Sequence[ModelVerdict]) -> str | None:
    # How many samples have no value, and what they count as.
    incomplete = []
    for model in models:
        if model.samples and model.samples.measured < model.samples.expected:
            incomplete.append((model.model, model.samples))
    if not incomplete:
        return None
    name, samples = min(incomplete, key=lambda item: item[1].measured / item[1].expected)
    share = "" if len(models) == 1 else f"for {len(incomplete)} of {len(models)} models, at worst {name}, "
    return (
        f"{share}only {samples.measured:,} of {samples.expected:,} samples have a value; a missing one counts as the "
        "worst for PASS and as the best for FAIL"
    )


def _repeated(models: Sequence[ModelVerdict]) -> str | None:
    # How many rows of the dataset repeat an image.
    for model in models:
        samples = model.samples
        if samples and samples.rows > (1 + MOST_REPEATED) * samples.expected:
            return f"{samples.rows:,} rows of the dataset are {samples.expected:,} images, each of which counts once"
    return None


def _sentence(verdict: str, rules: Sequence[RuleVerdict], excluded: int, warned: Sequence[ModelRemark]) -> str:
    clauses = []
    for rule in rules:
        counts = Counter(model.verdict for model in rule.models)
        models = counted(len(rule.models), "model")

        # How many models are undecided because of open samples, and how many because of too few samples.
        open_counts = []
        for model in rule.models_with(INCONCLUSIVE):
            if model.open_samples and model.open_samples.cause:
                open_counts.append(model.open_samples.count)
        causes = ""
        if open_counts:
            causes = f"{len(open_counts)} for open samples, at most {max(open_counts):,}"
            if counts[INCONCLUSIVE] > len(open_counts):
                causes += f", {counts[INCONCLUSIVE] - len(open_counts)} for too few samples"
            causes = f" ({causes})"

        clauses.append(
            f"of {models} {counts[PASS]} pass, {counts[FAIL]} fail, "
            f"{counts[INCONCLUSIVE]} undecided{causes} (rule: {rule.words})"
        )
        clauses += rule.remarks
    sentence = f"{verdict}: {'; '.join(clauses)}"
    if excluded:
        sentence += f"; {excluded} left out, which failed the gate on published accuracy"
    sentence += "."

    for remark in warned[:MOST_NAMED]:
        sentence += f" Warning: {remark.model}: {remark.reason}."
    if len(warned) > MOST_NAMED:
        sentence += f" {counted(len(warned) - MOST_NAMED, 'further warning')}."
    return sentence


# ---- evidence ----


def evidence(
    audit_values: AuditValues,
    manifest: DatasetManifest,
    files: Iterable[Path | str],
    *,
    last_release: ReleaseSource | None = None,
) -> Evidence:
    """Data, models and files that a verdict rests on, and its time.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the measures that the gate judges.
    manifest : DatasetManifest
        Manifest of the dataset that they were measured on.
    files : iterable of path
        Files that were read.
    last_release : ReleaseSource or None
        Source of the values of the last release, which rules may compare with.

    Returns
    -------
    Evidence
        For each model the digest of its checkpoint, or of the file of its logits or values; for each of its measures
        the number of samples in the table, and the digest of the settings (SHA-256 of their JSON with sorted keys).
    """
    models = {}
    for model in audit_values.included:
        measures = {}
        for name, measure in audit_values.subject.measures.items():
            text = json.dumps(measure.entry(), sort_keys=True)
            measures[name] = JudgedMeasure(
                samples=int(audit_values.table(model, name)["sample_id"].nunique()),
                settings_sha256=hashlib.sha256(text.encode()).hexdigest(),
            )
        checkpoint = None
        if measures:
            checkpoint = audit_values.identity(model, next(iter(measures))).get("checkpoint_sha256")
        models[model.label] = JudgedModel(checkpoint_sha256=checkpoint, measures=measures)

    return Evidence(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=JudgedDataset(name=manifest.dataset, digest=manifest.digest, rows=manifest.samples),
        models=models,
        last_release=last_release,
        made_from=digests_of(files),
    )
