"""Verdicts of a gate on values per sample: of an audit with what it rests on, of values in memory, of remedies."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from gfscore.audit.audit_files import AuditFiles, ModelSelection
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.audit.verdicts.candidates import candidates_of, contradiction_bounds, decline_bounds, group_bounds
from gfscore.audit.verdicts.declines import ReleaseFile
from gfscore.audit.verdicts.gate_rules import BoundsKey, RuleSettings, combine
from gfscore.audit.verdicts.judging import evidence, judge, judge_rule
from gfscore.audit.verdicts.verdict import EVIDENCE_INTERVAL, PROVEN, Judgement, Verdict
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.statistics.error_rates import warning_about_test

RESTS_ON = {
    EVIDENCE_INTERVAL: "PASS of {measure} rests on proofs, FAIL on attacks",
    PROVEN: "PASS of {measure} rests on proofs; FAIL says that too little is proven, not that attacks succeed",
}
"""What the verdict of a rule on a measure rests on, by the kind of the measure."""


def verdict_on_audit(
    audit_values: AuditValues,
    files: AuditFiles,
    *,
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
    fp_lambda: float,
) -> Verdict:
    """Verdict on an audit, with what it rests on and without findings.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the measures that the rules judge.
    files : AuditFiles
        Manifest, configuration, attributes for rules about groups, the generator that gave the label-error rates, the
        last release for rules about declines, and checkpoints.
    rules : sequence of RuleSettings
        Rules of the gate.
    intervals : IntervalSettings
    label_error_rates : array-like (K,) or None
        Shares of wrong labels; None if labels are assumed right.
    fp_lambda : float
        Lambda of FP.
    """
    manifest = DatasetManifest.read(files.manifest)
    class_names = manifest.classes
    values = list(audit_values.uncalibrated())
    others = (
        contradiction_bounds(audit_values, rules=rules, class_names=class_names, intervals=intervals),
        group_bounds(audit_values, files.attributes or "", rules=rules, class_names=class_names, intervals=intervals),
        decline_bounds(
            audit_values,
            files.release or "",
            rules=rules,
            class_names=class_names,
            intervals=intervals,
            label_error_rates=label_error_rates,
        ),
    )
    candidates = candidates_of(
        values, class_names, rules=rules, intervals=intervals, label_error_rates=label_error_rates, others=others
    )

    cautions = []
    for name in dict.fromkeys(rule.measure for rule in rules):
        measure = audit_values.subject.measures[name]
        warning = warning_about_test(name, measure.description.test)
        if warning:
            print(f"{warning}.")
            cautions.append(warning)
        if measure.kind.name in RESTS_ON:
            cautions.append(RESTS_ON[measure.kind.name].format(measure=name))
    selection = ModelSelection.read(audit_values.selection).model_dump()
    judgement = judge(candidates, rules, lam=fp_lambda, selection=selection, cautions=cautions)

    read_files = [audit_values.selection, audit_values.dataset, audit_values.scores, *audit_values.samples]
    read_files += [files.manifest, files.attributes, files.generator, files.release, files.configuration]
    read_files += files.checkpoints
    existing = [path for path in read_files if path]
    release = ReleaseFile(files.release).source if files.release else None
    return Verdict.of(judgement, evidence(audit_values, manifest, existing, last_release=release))


def judgement_on_values(
    values: Sequence[SampleValues],
    class_names: Sequence[str],
    *,
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
    fp_lambda: float,
) -> Judgement:
    """Judgement of a gate on values of several models, for all of them together; labels are assumed right.

    Parameters
    ----------
    values : sequence of SampleValues
        At least one, on samples that no model was chosen on.
    class_names : sequence of str
        Names of the K classes.
    rules : sequence of RuleSettings
        Rules about class values of the measures of these values.
    intervals : IntervalSettings
    fp_lambda : float
        Lambda of FP.
    """
    candidates = candidates_of(values, class_names, rules=rules, intervals=intervals, label_error_rates=None)
    return judge(candidates, rules, lam=fp_lambda)


def verdicts_by_model(
    values: Sequence[SampleValues],
    class_names: Sequence[str],
    *,
    rules: Sequence[RuleSettings],
    models: int,
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
    fp_lambda: float,
) -> dict[str, str]:
    """Verdicts of a gate on values of one measure of several models, by label, for all of them together.

    Parameters
    ----------
    values : sequence of SampleValues
        At least one, all of one measure, on samples that no model was chosen on.
    class_names : sequence of str
        Names of the K classes.
    rules : sequence of RuleSettings
        All rules of the gate, over which 1 - confidence is split; those count that judge class values of this measure.
    models : int
        Number of models that 1 - confidence is split over too: these, and those excluded because of the samples.
    intervals : IntervalSettings
    label_error_rates : array-like (K,) or None
        Shares of wrong labels; None if labels are assumed right.
    fp_lambda : float
        Lambda of FP.

    Returns
    -------
    dict
        PASS, FAIL or INCONCLUSIVE by label; empty where no rule judges the measure.
    """
    key = BoundsKey(values[0].measure.name)
    rules_of_measure = [rule for rule in rules if rule.bounds_key == key]
    if not rules_of_measure:
        return {}
    candidates = candidates_of(
        values, class_names, rules=rules_of_measure, intervals=intervals, label_error_rates=label_error_rates
    )
    verdicts_of_rules: dict[str, list[str]] = {}
    for rule in rules_of_measure:
        for model in judge_rule(candidates, rule, rules=len(rules), models=models, lam=fp_lambda).models:
            verdicts_of_rules.setdefault(model.label, []).append(model.verdict)
    return {label: combine(verdicts) for label, verdicts in verdicts_of_rules.items()}
