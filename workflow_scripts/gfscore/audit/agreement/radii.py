"""Distances to adversarial examples and certified radii: curves, summaries, refuted certificates.

Tables `radius_curves`, `class_distances` and `refutations`.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.values import AuditValues
from gfscore.core.identity import ALL, ALL_NAME
from gfscore.measures import NamedMeasure
from gfscore.measures.certified import Certified
from gfscore.measures.certified.radii import largest_certificate
from gfscore.statistics import survival
from gfscore.statistics.intervals import correct_for_label_errors, correct_mean_for_label_errors
from gfscore.statistics.proportions import (
    allowed_refutations,
    certified_accuracy,
    corrected_certified_accuracy,
    lower_shares,
)
from gfscore.statistics.tolerances import RADIUS_TOLERANCE
from gfscore.tables.parquet_tables import stacked, typed_frame
from gfscore.tables.table import CLASS_OR_ALL, MEASURED, Column, Table

RADIUS_CURVES = Table(
    name="radius_curves",
    version=1,
    columns=(
        *MEASURED,
        Column("kind", pa.string(), "minimal: samples not broken within the radius; certified: certified to it"),
        *CLASS_OR_ALL,
        Column("n", pa.int64(), "samples of the class"),
        Column("radius", pa.float64(), "distance in the norm of the measure"),
        Column(
            "share",
            pa.float64(),
            "share correct and robust at the radius; for minimal an upper bound of the true share",
        ),
        Column(
            "low", pa.float64(), "certified: lower bound of the true share, simultaneous over classes at each radius"
        ),
        Column(
            "high", pa.float64(), "minimal: upper bound of the true share, simultaneous over classes at each radius"
        ),
        Column("confidence", pa.float64(), "confidence of the bounds"),
    ),
)

CLASS_DISTANCES = Table(
    name="class_distances",
    version=1,
    columns=(
        *MEASURED,
        *CLASS_OR_ALL,
        Column("n", pa.int64(), "samples of the class"),
        Column("misclassified", pa.int64(), "of these, misclassified without perturbation (distance 0)"),
        Column("found", pa.int64(), "with an adversarial example"),
        Column("censored", pa.int64(), "without one up to the largest distance searched"),
        Column("success_rate", pa.float64(), "found / correctly classified; null without any"),
        Column("median", pa.float64(), "median distance over all n; null if censored"),
        Column("mean", pa.float64(), "mean distance, censored samples at the largest searched"),
    ),
)

REFUTATIONS = Table(
    name="refutations",
    version=1,
    columns=(
        *MEASURED,
        Column("n", pa.int64(), "samples, abstentions included"),
        Column("attacked", pa.int64(), "certificates that were attacked"),
        Column("refuted", pa.int64(), "of these, refuted by an attack on the smoothed classifier"),
        Column("allowed", pa.int64(), "largest number explained by chance: 99.9% quantile of Binomial(n, alpha)"),
        Column("alpha", pa.float64(), "error probability of one certificate"),
        Column("within_chance", pa.bool_(), "refuted is at most allowed"),
    ),
)

POINTS = 41
"""Number of radii of a curve, evenly spaced from 0 to the largest radius that the measure can give."""


def radius_tables(
    audit_values: AuditValues,
    class_names: Sequence[str],
    *,
    confidence: float,
    label_error_rates: ArrayLike | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables on distances and radii that the measures of an audit give, by name.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    class_names : sequence of str
        Names of the K classes.
    confidence : float
        Confidence of the bounds.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that the bounds allow for.
    """
    measures = audit_values.subject.of_kind("minimal", "certified")
    curves = []
    distances = []
    refutations = []
    for model, measure in product(audit_values.included, measures):
        samples = audit_values.table(model, measure.name)
        key = {**model.columns(), "measure": measure.name}
        curve_samples = samples
        if measure.kind.name == "certified":
            # Imported radii may lack samples, which are not certified.
            values = audit_values.sample_values(model, measure.name)
            curve_samples = pd.DataFrame({"label": values.labels, "value": values.low})
        curve = curve_frame(
            curve_samples,
            class_names,
            measure=measure,
            confidence=confidence,
            label_error_rates=label_error_rates,
        )
        curves.append(curve.assign(**key))
        if measure.kind.name == "minimal":
            for class_indices, names, groups in _classes_then_all(samples["label"].to_numpy(), class_names):
                columns = survival.class_distances(samples["value"], samples["censored"], groups, len(names))
                distances.append(pd.DataFrame({**key, "class_index": class_indices, "class_name": names, **columns}))
        elif has_attacked_certificates(measure):
            certificates = samples[samples["attacked"].notna()]
            refuted = int(certificates["refuted"].astype(bool).sum())
            alpha = _certificate_error(measure)
            allowed = allowed_refutations(len(certificates), alpha=alpha)
            refutations.append(
                {
                    **key,
                    "n": len(certificates),
                    "attacked": int(certificates["attacked"].astype(bool).sum()),
                    "refuted": refuted,
                    "allowed": allowed,
                    "alpha": alpha,
                    "within_chance": refuted <= allowed,
                }
            )

    tables = {}
    if measures:
        tables["radius_curves"] = stacked(RADIUS_CURVES, curves)
    if audit_values.subject.of_kind("minimal"):
        tables["class_distances"] = stacked(CLASS_DISTANCES, distances)
    if refutations:
        tables["refutations"] = typed_frame(REFUTATIONS, refutations)
    return tables


def has_attacked_certificates(measure: NamedMeasure) -> bool:
    """Whether a measure of kind certified attacks the certificates that it computes."""
    smoothing = cast(Certified, measure.settings).smoothing
    return smoothing is not None and smoothing.sandwich is not None


def _certificate_error(measure: NamedMeasure) -> float:
    # Probability that a certificate is wrong; NaN for imported radii, whose error is unknown.
    smoothing = cast(Certified, measure.settings).smoothing
    return np.nan if smoothing is None else smoothing.alpha


def curve_frame(
    samples: pd.DataFrame,
    class_names: Sequence[str],
    *,
    measure: NamedMeasure,
    confidence: float,
    label_error_rates: ArrayLike | None = None,
) -> pd.DataFrame:
    """Curves of one model and measure over the radius: classes, then all samples.

    Parameters
    ----------
    samples : DataFrame
        Samples table of the measure: label and value, of kind minimal also censored.
    class_names : sequence of str
        Names of the K classes.
    measure : NamedMeasure
        A measure of kind minimal or certified.
    confidence : float
        Confidence of the bounds at each radius: simultaneous over classes, and separately for all samples together.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that the bounds allow for.

    Returns
    -------
    DataFrame
        (K + 1) * POINTS rows with the columns of `radius_curves` except those of the model and the measure.
    """
    largest = measure.description.value_range[1]
    if isinstance(measure.settings, Certified) and measure.settings.smoothing is not None:
        # The range of the measure ends slightly above the largest certificate.
        largest = largest_certificate(measure.settings.smoothing)
    radii = np.linspace(0, largest, POINTS)
    values = samples["value"].to_numpy()
    frames = []
    for class_indices, names, groups in _classes_then_all(samples["label"].to_numpy(), class_names):
        n = np.bincount(groups, minlength=len(names))
        alpha = (1 - confidence) / len(names)

        # Shares of the groups at the radii with their bounds, each (groups, radii).
        share = np.empty((len(names), POINTS))
        low = np.full(share.shape, np.nan)
        high = np.full(share.shape, np.nan)
        totals = np.broadcast_to(n[:, None], share.shape)
        if measure.kind.name == "minimal":
            # The share that no attack broke is an upper bound of robustness, so only an upper confidence bound holds.
            share = survival.survival_curves(values, samples["censored"], groups, len(names), radii=radii)
            broken = np.round((1 - np.nan_to_num(share)) * totals)
            high = 1 - lower_shares(broken, totals, alpha=alpha)
        else:
            for position, radius in enumerate(radii):
                certified = certified_accuracy(values, groups, len(names), radius=radius * (1 - RADIUS_TOLERANCE))
                share[:, position] = certified.mean
            error = _certificate_error(measure)
            if not np.isnan(error):
                counts = np.round(np.nan_to_num(share) * totals)
                low = corrected_certified_accuracy(counts, totals, alpha=error, confidence=1 - alpha)

        if label_error_rates is not None:
            if class_indices == [ALL]:
                n_of_classes = np.bincount(samples["label"], minlength=len(class_names))
                low, high = correct_mean_for_label_errors(low, high, label_error_rates, n=n_of_classes)
            else:
                rates = np.asarray(label_error_rates, dtype=np.float64)[:, np.newaxis]
                low, high = correct_for_label_errors(low, high, rates, value_range=(0.0, 1.0))

        undefined = np.isnan(share)
        frames.append(
            pd.DataFrame(
                {
                    "kind": measure.kind.name,
                    "class_index": np.repeat(class_indices, POINTS),
                    "class_name": np.repeat(names, POINTS),
                    "n": np.repeat(n, POINTS),
                    "radius": np.tile(radii, len(names)),
                    "share": share.ravel(),
                    "low": np.where(undefined, np.nan, low).ravel(),
                    "high": np.where(undefined, np.nan, high).ravel(),
                    "confidence": confidence,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _classes_then_all(
    labels: NDArray[np.integer], class_names: Sequence[str]
) -> Iterator[tuple[Sequence[int], Sequence[str], NDArray[np.integer]]]:
    # The samples by class, then all as one group: indices and names of the groups, and the group of each sample (N,).
    yield range(len(class_names)), class_names, labels
    yield [ALL], [ALL_NAME], np.zeros_like(labels)
