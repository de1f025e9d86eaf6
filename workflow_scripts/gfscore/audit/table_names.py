"""Names of the tables and other files of an audit. Imports nothing heavy.

Every audit has all of them; a table that it has no measures for has no rows.
"""

COMPARISONS = ("comparisons", "model_comparisons", "rank_intervals", "lambda_swaps", "metric_ranks")
"""Tables that compare the models of an audit."""

CONFUSIONS = ("confusions", "class_errors", "similarities")
"""Tables of confusions between classes."""

REMEDIES = ("remedy_classes", "remedy_models", "remedy_curve")
"""Tables of the remedies of an audit."""

MEASURE_TABLES = (
    *("falsification", "radius_curves", "class_distances", "refutations", "class_shares"),
    *("target_success", "target_matrix", "target_predictors", "group_scores", "group_metrics"),
    *("projection_scores", "projection_models", "projection_attributes", "projection_ranks", "projection_effects"),
    *("corruption_errors", "measure_agreement", "training_methods", "masking_signs"),
    *REMEDIES,
)
"""Tables with rows only where an audit has the measures, groups, mappers or remedies that they are about."""

TABULATED = (
    *("calibration", "class_scores", "model_summary", "vulnerability", "class_pairs", "costs"),
    *(*COMPARISONS, *CONFUSIONS, *MEASURE_TABLES),
)
"""Tables that tabulate_audit writes."""

TABLES_OF_AUDIT = ("sensitivity", *TABULATED)
"""All tables of results/audits/<audit>/."""

OTHER_FILES = ("calibration.json", "comparison.json", "models.json", "verdict.json", "config.yaml", "report.html")
"""Files of an audit besides its tables."""
