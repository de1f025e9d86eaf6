"""Which tables an audit may have beside its scores, by what makes them. Imports nothing heavy."""

COMPARISONS = ("comparisons", "model_comparisons", "rank_intervals", "lambda_swaps", "metric_ranks")
"""Tables that compare the models of an audit."""

CONFUSIONS = ("confusions", "class_errors", "similarities")
"""Tables of which class is taken for which."""

MEASURE_TABLES = {
    "falsify_scores": ("falsification",),
    "trace_radii": ("radius_curves", "class_distances", "log_rank_tests", "refutations"),
    "count_decisions": ("class_shares",),
    "analyse_targets": ("target_success", "target_matrix", "target_predictors"),
    "compare_groups": ("group_scores", "group_metrics"),
    "summarise_projections": ("projection_scores", "projection_models", "projection_ranks", "projection_effects"),
    "compare_measures": ("measure_agreement", "training_methods", "masking_signs"),
}
"""Tables about measures against each other, by the step that writes them; an audit has those that it measures for."""
