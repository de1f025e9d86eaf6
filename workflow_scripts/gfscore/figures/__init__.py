"""Figures of an audit: each function takes a data frame of results/audits/ and returns a matplotlib Figure.

Every figure carries a computed sentence as its title, units and direction on its axes, n, and intervals where the
table has them. Names are drawn as plain text, whatever they hold.
"""

from gfscore.figures.disparities import disparity_bars, score_against_rdi
from gfscore.figures.heatmap import class_heatmap
from gfscore.figures.saving import save_figure
from gfscore.figures.temperature import calibration_curves, logit_shift_sensitivity
from gfscore.figures.vulnerability import class_vulnerability
from gfscore.measures import measure_of

__all__ = [
    "calibration_curves",
    "class_heatmap",
    "class_vulnerability",
    "disparity_bars",
    "figures_of_audit",
    "logit_shift_sensitivity",
    "save_figure",
    "score_against_rdi",
]


def figures_of_audit(tables, *, measures, fp_lambda):
    """Yield (name, Figure) for every figure of an audit, scores at T = 1.

    Takes AuditTables, the settings of each measure, and lambda of FP. Those of a measure are named <figure>_<measure>.
    """
    for measure, settings in measures.items():
        scores, summary, ranking = (tables.of(name, measure) for name in PER_MEASURE)
        meaning = measure_of(settings)
        yield f"class_heatmap_{measure}", class_heatmap(scores, meaning)
        yield f"class_vulnerability_{measure}", class_vulnerability(ranking, scores, meaning)
        yield f"score_against_rdi_{measure}", score_against_rdi(summary, meaning)
        yield f"disparity_bars_{measure}", disparity_bars(summary, meaning, fp_lambda=fp_lambda)
    if tables.calibration_results:
        models = len(tables.of("model_summary", next(iter(measures))))
        yield (
            "calibration_curves",
            calibration_curves(tables.calibration, tables.calibration_results, models=models),
        )
    if tables.sensitivity is not None and len(tables.sensitivity):
        yield "logit_shift_sensitivity", logit_shift_sensitivity(tables.sensitivity)


PER_MEASURE = ("class_scores", "model_summary", "vulnerability")
