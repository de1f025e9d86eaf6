"""The verdict on an audit."""

from gfscore.audit.agreement.falsification_rows import add_contradictions
from gfscore.audit.groups.gate import add_group_bounds
from gfscore.audit.measured import AuditInputs
from gfscore.audit.summaries import resolve_label_error_rates
from gfscore.audit.verdicts.verdict import candidates_of, judge
from gfscore.core.files import read_json, write_json
from gfscore.statistics.error_rates import caution
from gfscore.workflow.jobs import logged_job


def judge_audit(
    inputs, path_to_manifest, path_to_verdict, *, rules, intervals, label_error_rates, fp_lambda, attributes=None
):
    """Write verdict.json from AuditInputs and the manifest of the dataset.

    `attributes` is the path of the dataset's attributes, for rules about groups. Succeeds whatever the verdict,
    which the rule `gate` turns into an exit status.
    """
    class_names = read_json(path_to_manifest)["classes"]
    candidates = candidates_of(
        inputs.measured(),
        class_names,
        rules=rules,
        measures=inputs.measures,
        intervals=intervals,
        label_error_rates=label_error_rates,
    )
    add_contradictions(candidates, inputs, rules=rules, class_names=class_names, intervals=intervals)
    add_group_bounds(candidates, inputs, attributes, rules=rules, intervals=intervals)
    selection = read_json(inputs.selection)
    judged = dict.fromkeys(rule["measure"] for rule in rules)
    cautions = [words for measure in judged if (words := caution(measure, inputs.measures[measure]))]
    for words in cautions:
        print(f"{words}.")
    write_json(path_to_verdict, judge(candidates, rules, lam=fp_lambda, selection=selection, cautions=cautions))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        judge_audit(
            # Scores at T = 1 only: no rule judges a temperature that was chosen on the same samples.
            AuditInputs(
                **settings.subject | {"calibrated_measure": None},
                samples=given.samples,
                logits=[],
                calibration=None,
                selection=given.selection,
            ),
            given.manifest,
            snakemake.output.verdict,
            rules=settings.rules,
            intervals=settings.intervals,
            label_error_rates=resolve_label_error_rates(settings.label_error_rate, given.manifest, given.generator),
            fp_lambda=settings.fp_lambda,
            attributes=given.get("attributes") or None,
        )
