"""Figures of an audit: each function takes a data frame of results/audits/ and returns a matplotlib Figure.

Every figure carries a computed sentence as its title, units and direction on its axes, n, and intervals where the
table has them. Names are drawn as plain text, whatever they hold. A figure is drawn where its table has the data.
"""

from gfscore.show.figures.audit import figures_of_audit
from gfscore.show.figures.concentration import rdi_concentration
from gfscore.show.figures.confusions import confusion_figures
from gfscore.show.figures.corruptions import corruption_by_class
from gfscore.show.figures.disparities import disparity_bars, score_against_rdi
from gfscore.show.figures.distances import score_against_distance
from gfscore.show.figures.errors import false_positive_shares
from gfscore.show.figures.fairness import group_metric_heatmap
from gfscore.show.figures.groups import group_class_heatmap, group_score_plot
from gfscore.show.figures.heatmap import class_heatmap
from gfscore.show.figures.profiles import class_profiles
from gfscore.show.figures.radii import class_curves, model_curves
from gfscore.show.figures.reranking import fp_reranking
from gfscore.show.figures.saving import save_figure
from gfscore.show.figures.shifts import logit_shift_sensitivity
from gfscore.show.figures.similarity import similarity_matrix
from gfscore.show.figures.targets import target_success_matrix
from gfscore.show.figures.temperature import calibration_curves
from gfscore.show.figures.vulnerability import class_vulnerability

__all__ = [
    "calibration_curves",
    "class_curves",
    "class_heatmap",
    "class_profiles",
    "class_vulnerability",
    "confusion_figures",
    "corruption_by_class",
    "disparity_bars",
    "false_positive_shares",
    "figures_of_audit",
    "fp_reranking",
    "group_class_heatmap",
    "group_metric_heatmap",
    "group_score_plot",
    "logit_shift_sensitivity",
    "model_curves",
    "rdi_concentration",
    "save_figure",
    "score_against_distance",
    "score_against_rdi",
    "similarity_matrix",
    "target_success_matrix",
]
