"""The verdict on an audit."""

from gfscore.audit.agreement.falsification_rows import add_contradictions
from gfscore.audit.groups.gate import add_group_bounds
from gfscore.audit.inputs import AuditInputs
from gfscore.audit.summaries import resolve_label_error_rates
from gfscore.audit.verdicts.evidence import evidence
from gfscore.audit.verdicts.verdict import candidates_of, judge
from gfscore.core.files import read_json, write_json
from gfscore.statistics.error_rates import caution
from gfscore.workflow.jobs import logged_job


def judge_audit(inputs, given, path_to_verdict, *, rules, intervals, label_error_rates, fp_lambda):
    """Write verdict.json from AuditInputs; `given` holds the paths of the other files that it rests on.

    They are `manifest`, of the dataset, `configuration`, the resolved one, and, where there are any, `attributes`, for
    rules about groups, and `generator`, whose manifest gave the label-error rates. The verdict says what it rests on
    (gfscore.audit.verdicts.evidence). Succeeds whatever the verdict, which the rule `gate` turns into an exit status.
    """
    manifest = read_json(given["manifest"])
    class_names = manifest["classes"]
    candidates = candidates_of(
        inputs.measured(),
        class_names,
        rules=rules,
        measures=inputs.measures,
        intervals=intervals,
        label_error_rates=label_error_rates,
    )
    add_contradictions(candidates, inputs, rules=rules, class_names=class_names, intervals=intervals)
    add_group_bounds(candidates, inputs, given.get("attributes"), rules=rules, intervals=intervals)
    selection = read_json(inputs.selection)
    judged = dict.fromkeys(rule["measure"] for rule in rules)
    cautions = [words for measure in judged if (words := caution(measure, inputs.measures[measure]))]
    for words in cautions:
        print(f"{words}.")
    verdict = judge(candidates, rules, lam=fp_lambda, selection=selection, cautions=cautions)
    files = [inputs.selection, inputs.dataset, inputs.scores, *inputs.samples]
    files += [given.get(name) for name in ("manifest", "attributes", "generator", "configuration")]
    write_json(path_to_verdict, verdict | evidence(inputs, manifest, filter(None, files)))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        judge_audit(
            # Without calibrations: no rule judges a temperature that was chosen on the same samples.
            AuditInputs.of(settings.subject, given),
            given,
            snakemake.output.verdict,
            rules=settings.rules,
            intervals=settings.intervals,
            label_error_rates=resolve_label_error_rates(settings.label_error_rate, given.manifest, given.generator),
            fp_lambda=settings.fp_lambda,
        )
