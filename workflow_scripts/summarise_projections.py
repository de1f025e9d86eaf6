"""Tolerance, Deviation and Coupling of the models of an audit, and what the mapper's dimensions mean."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.measured import included, label_of
from gfscore.audit.projections.group_means import group_means
from gfscore.audit.projections.rows import Projected, effect_rows, model_rows, rank_rows, score_rows
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def summarise_projections(files, paths, *, audit, models, mapper, confidence, kinds):
    """Write the tables projection_scores, _models, _ranks and _effects, whose paths `paths` holds by these names.

    `files` maps samples (one path per model), selection, manifest (of the dataset), mapper (of train_mapper) and groups
    (the table group_metrics, or nothing) to paths; `models` are mappings with dataset, threat, model; `confidence` is
    that of the bounds; `kinds` are those of the audit's measures by name.
    """
    names, described = read_json(files["manifest"])["classes"], read_json(files["mapper"])
    selected, scores, groups = included(files["selection"]), [], {}
    for model, path in zip(models, files["samples"], strict=True):
        if label_of(model) in selected:
            samples = read_table(path, PROJECTION_TABLE, expect={**model, "measure": mapper})
            projected = Projected(samples, described["dimensions"])
            key = {**model, "mapper": mapper}
            scores += score_rows(key, projected, described["dimensions"], names, confidence=confidence)
    if files["groups"]:
        metrics = read_table(files["groups"], TABLES["group_metrics"], expect={"audit": audit})
        groups = group_means(metrics, kinds=kinds, moved=described["categories"])
    summary = model_rows(scores, groups)
    shared = {"dataset": models[0]["dataset"], "mapper": mapper}
    rows = {"projection_scores": scores, "projection_models": summary}
    rows["projection_ranks"] = [{**shared, **row} for row in rank_rows(summary)]
    rows["projection_effects"] = effect_rows(described, scores)
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        settings = snakemake.params
        summarise_projections(
            dict(snakemake.input.items()),
            snakemake.output,
            audit=snakemake.wildcards.audit,
            models=settings.models,
            mapper=settings.mapper,
            confidence=settings.confidence,
            kinds=settings.kinds,
        )
