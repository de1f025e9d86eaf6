"""What each figure of an audit is called by people. Imports nothing heavy, because every run of Snakemake reads it."""

from __future__ import annotations

from collections.abc import Iterable

TITLES = {
    "class_heatmap": "Class values",
    "class_vulnerability": "Vulnerable classes",
    "class_profiles": "Class profiles",
    "score_against_rdi": "Mean against disparity",
    "disparity_bars": "Disparity",
    "fp_reranking": "Ranking by FP",
    "rdi_concentration": "RDI against sample size",
    "cfps": "Share of the errors by class (CFPS)",
    "confusion": "Confusion matrix",
    "confusion_models": "Confusion matrices of single models",
    "confused_pairs": "Most confused pairs of classes",
    "corruption_by_class": "Corruptions by class",
    "similarity": "Similarity of the models",
    "survival": "Survival under attack",
    "survival_by_class": "Survival under attack by class",
    "certified_accuracy": "Certified accuracy",
    "certified_accuracy_by_class": "Certified accuracy by class",
    "group_scores": "Groups of samples",
    "group_classes": "Groups by class",
    "group_metrics": "Fairness metrics by class and attribute",
    "target_matrix": "Targeted attacks",
    "score_against_distance": "Score against attack distance",
    "calibration_curves": "Calibration",
    "projection_tolerance": "Tolerance and Deviation by latent dimension",
    "projection_effects": "What latent dimensions change",
    "mapper_reconstructions": "Reconstructions",
    "mapper_traversals": "Traversals of latent dimensions",
    "logit_shift_sensitivity": "Sensitivity to a shift of the logits",
}
"""Title by kind of figure."""

SEVERAL = "all measures together"


def parts_of(name: str, measures: Iterable[str]) -> tuple[str, str | None]:
    """Kind of a figure and its measure, from the name of its file: None for a figure of several measures."""
    for measure in sorted(measures, key=len, reverse=True):
        if name.endswith(f"_{measure}"):
            return name.removesuffix(f"_{measure}"), measure
    return name, None


def labels_of(name: str, measures: Iterable[str]) -> dict[str, str]:
    """Labels of a figure in a report: what it is called, or the name of its file in words."""
    kind, _ = parts_of(name, measures)
    return {"figure": TITLES.get(kind, kind.replace("_", " ").capitalize())}


def measure_of_figure(name: str, measures: Iterable[str]) -> str:
    """The measure that a figure shows, or words that say it shows several."""
    return parts_of(name, measures)[1] or SEVERAL
