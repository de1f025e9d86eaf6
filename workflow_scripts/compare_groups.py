"""Fairness between groups of samples: every measure by group, and the differences of predictions between groups."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import metric_rows
from gfscore.audit.groups.scores import score_rows
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def compare_groups(inputs, path_to_attributes, path_to_manifest, paths, *, audit, groups, intervals):
    """Write the tables group_scores and group_metrics, whose paths `paths` holds by these names.

    Takes AuditInputs without a calibrated measure, the attributes and the manifest of the dataset, the entry `groups`
    of the audit and config's section `intervals`.
    """
    names = read_json(path_to_manifest)["classes"]
    chosen = {key: groups[key] for key in ("attributes", "balanced")}
    grouping = Grouping.read(path_to_attributes, dataset=inputs.models[0]["dataset"], **chosen)
    shared = {"intervals": intervals, "minimum_cell": groups["minimum_cell"]}
    scores = [
        row
        for measured in inputs.measured()
        for row in score_rows(measured, grouping, names, settings=inputs.measures[measured.key["measure"]], **shared)
    ]
    metrics = list(metric_rows(inputs, grouping, names, settings=groups, confidence=intervals["confidence"]))
    rows = {"group_scores": scores, "group_metrics": metrics}
    print(", ".join(f"{name}: {len(found):,} rows" for name, found in rows.items()))
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings, made = snakemake.input, snakemake.params, snakemake.output
        files = {"samples": given.samples, "selection": given.selection, "logits": [], "calibration": None}
        compare_groups(
            AuditInputs.of(settings.subject | {"calibrated_measure": None}, files),
            given.attributes,
            given.manifest,
            made,
            audit=snakemake.wildcards.audit,
            groups=settings.groups,
            intervals=settings.intervals,
        )
