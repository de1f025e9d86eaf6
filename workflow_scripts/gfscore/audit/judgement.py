"""The verdict on an audit from its values per sample, with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.audit.agreement.falsification_rows import add_contradictions
from gfscore.audit.groups.gate import add_group_bounds
from gfscore.audit.verdicts.evidence import digests_of
from gfscore.audit.verdicts.verdict import candidates_of, judge
from gfscore.core.files import read_json
from gfscore.statistics.error_rates import caution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gfscore.audit.inputs import AuditInputs


def judgement(
    inputs: AuditInputs,
    files: Mapping[str, Any],
    *,
    rules: Sequence[Mapping[str, Any]],
    intervals: Mapping[str, Any],
    label_error_rates: ArrayLike | None,
    fp_lambda: float,
) -> dict[str, Any]:
    """Contents of verdict.json, which name every file that the verdict rests on, with its digest.

    Takes AuditInputs of the measures that the `rules` judge, and `files`: paths of the `manifest` of the dataset and,
    where there are any, of its `attributes`, for rules about groups, and of the manifest of the `generator` that gave
    the label-error rates.
    """
    class_names = read_json(files["manifest"])["classes"]
    candidates = candidates_of(
        inputs.measured(),
        class_names,
        rules=rules,
        measures=inputs.measures,
        intervals=intervals,
        label_error_rates=label_error_rates,
    )
    add_contradictions(candidates, inputs, rules=rules, class_names=class_names, intervals=intervals)
    add_group_bounds(candidates, inputs, files.get("attributes") or "", rules=rules, intervals=intervals)
    judged = dict.fromkeys(rule["measure"] for rule in rules)
    cautions = [words for measure in judged if (words := caution(measure, inputs.measures[measure]))]
    for words in cautions:
        print(f"{words}.")
    verdict = judge(candidates, rules, lam=fp_lambda, selection=read_json(inputs.selection), cautions=cautions)
    beside = (files.get(name) for name in ("manifest", "attributes", "generator"))
    rests_on = [inputs.selection, inputs.scores, *inputs.samples, *beside]
    return verdict | {"made_from": digests_of(file for file in rests_on if file)}
