"""Limits of an audit that its page must state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gfscore.core import numbers
from gfscore.show.page.source_claims import CALIBRATION, refuted_here

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

TEMPERATURE = (
    "A temperature divides the logits before the activation. It changes the score but not the classifier, so a "
    "calibrated score is as good as the objective that chose it. The gate uses T = 1."
)


def calibration() -> str:
    """What of the source paper's claim on calibration does not reproduce."""
    return CALIBRATION


def limits_of(tables: AuditTables, measures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Limits of an audit, in sentences."""
    kinds = {settings["kind"] for settings in measures.values()}
    rates = tables.class_scores["label_error_rate"].dropna()
    found = []
    if "great" in kinds:
        found.append(
            "The score is not a certificate: it measures how far the true class leads in the output, not how far an"
            " image must move to be misclassified. Dividing the logits by a constant changes the score and leaves "
            "the classifier as it is, and undefended networks often score above adversarially trained ones."
        )
    if "certified" in kinds:
        found.append(
            "Certified radii hold for the smoothed classifier, not for the one before smoothing, and each with the "
            "confidence of its own test. A class mean of radii certifies no single image."
        )
    if kinds & {"adversarial", "minimal", "targeted"}:
        found.append("An attack that finds nothing proves nothing: a stronger one may leave less.")
    if kinds == {"clean"}:
        found.append("Clean accuracy says nothing about robustness: it is measured on undisturbed samples.")
    if "projection_models" in tables.measures:
        found.append("Projections depend on the mapper: another encoder, seed or beta moves other things.")
    found += [
        "The bounds are confidence, not proof. They concern the mean over a class, not any single image.",
        "Samples are taken as independent draws from each class. Near-duplicates, frames of one video, or data that"
        " the "
        "model has seen make the bounds too narrow.",
        f"The bounds allow for a share of {numbers.number(float(rates.max()))} wrong labels per class, as stated."
        if len(rates)
        else "Labels are assumed right: a wrong label counts as a sample of the class it names.",
        "Nothing here extends to other data, other disturbances or classes that were not audited.",
    ]
    if tables.calibration_results:
        found.append(
            "Temperatures were chosen on the audited samples, so that rows at a calibrated temperature carry no "
            "bounds; calibrated scores of different sets of models do not compare."
        )
    claims = refuted_here(
        kinds,
        errors=tables.class_errors is not None,
        groups="group_scores" in tables.measures,
        projection="projection_models" in tables.measures,
    )
    if claims:
        found.append(
            "Not everything that the source papers say reproduces. It bears on this page that "
            f"{'; '.join(claims)}. Every claim beside our number stands in docs/what-reproduces.md of the repository."
        )
    return found
