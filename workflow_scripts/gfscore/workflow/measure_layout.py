"""Which tables about agreement between measures an audit has, and where they stand.

Imports nothing heavy, because every run of Snakemake reads it. Expects a complete configuration.
"""

from gfscore.audit.table_names import MEASURE_TABLES
from gfscore.workflow import plan


def measure_tables(config, audit):
    """Names of those tables that an audit measures enough for; the others of their steps stay empty."""
    return [table for tables in MEASURE_TABLES.values() for table in tables if NEEDS[table](config, audit)]


def measure_table(config, audit, *, table):
    """Path of one of those tables, or nothing when the audit does not measure enough for it."""
    return f"results/audits/{audit}/{table}.parquet" if NEEDS[table](config, audit) else []


def _measured(*kinds):
    return lambda config, audit: all(plan.has_kind(config, audit, kind) for kind in kinds)


def _any_measured(*kinds):
    return lambda config, audit: any(plan.has_kind(config, audit, kind) for kind in kinds)


def _scores_and_l2_distances(config, audit):
    measures = plan.measures_of(config, audit).values()
    distances = any(settings["kind"] == "minimal" and settings["norm"] == "l2" for settings in measures)
    return distances and plan.has_kind(config, audit, "great")


def _attacked_certificates(config, audit):
    measures = plan.measures_of(config, audit).values()
    return any(settings.get("smoothing", {}).get("sandwich") is not None for settings in measures)


def _two_measures(config, audit):
    return len(plan.measures_of(config, audit)) > 1


def _training_methods(config, audit):
    methods = {model["method"] for model in plan.described_models(config, audit)} - {None}
    return len(methods) > 1 and _measured("clean", "adversarial", "probabilistic")(config, audit)


def _groups(config, audit):
    return plan.groups_of(config, audit) is not None


def _projections(config, audit):
    return plan.projection_of(config, audit) is not None


NEEDS = {
    "group_scores": _groups,
    "group_metrics": _groups,
    "projection_scores": _projections,
    "projection_models": _projections,
    "projection_ranks": _projections,
    "projection_effects": _projections,
    "falsification": _scores_and_l2_distances,
    "radius_curves": _any_measured("minimal", "certified"),
    "class_distances": _measured("minimal"),
    "log_rank_tests": _measured("minimal"),
    "refutations": _attacked_certificates,
    "class_shares": _measured("probabilistic"),
    "target_success": _measured("targeted"),
    "target_matrix": _measured("targeted"),
    "target_predictors": _measured("targeted"),
    "measure_agreement": _two_measures,
    "training_methods": _training_methods,
    "masking_signs": _any_measured("adversarial", "minimal"),
}
"""Function from configuration and audit to whether the audit measures enough, by table."""
