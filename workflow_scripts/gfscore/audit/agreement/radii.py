"""Rows of the tables on distances and certified radii: curves, summaries, log-rank tests, refutations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.values import AuditValues, row_generator
from gfscore.measures import measure_of
from gfscore.measures.certified.radii import largest_certificate
from gfscore.statistics import survival
from gfscore.statistics.proportions import (
    allowed_refutations,
    certified_accuracy,
    corrected_certified_accuracy,
    lower_shares,
)
from gfscore.tables.table import ALL, ALL_NAME

POINTS = 41
"""Number of radii of a curve, evenly spaced from 0 to the largest possible radius."""

TESTED = ("statistic", "degrees_of_freedom", "p_chi_square", "p_permutation")

ROUNDING = 1e-9
"""Relative tolerance of comparisons of radii, since rounding differs between processors."""


def radius_tables(
    inputs: AuditValues, class_names: Sequence[str], *, confidence: float, permutations: int, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Rows of radius_curves, class_distances, log_rank_tests and refutations that an audit has measures for.

    Takes AuditValues, K names, the confidence of the bounds, and the number and seed of the permutations of the
    log-rank test.
    """
    kinds = {measure.kind.name for measure in inputs.subject.measures.values()}
    tables = {"minimal": ("radius_curves", "class_distances", "log_rank_tests"), "certified": ("radius_curves",)}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for kind in tables if kind in kinds for name in tables[kind]}
    for model in inputs.included:
        for measure, named in inputs.subject.measures.items():
            settings = named.entry()
            kind, key = settings["kind"], {**model.columns(), "measure": measure}
            if kind not in tables:
                continue
            samples = inputs.table(model, measure)
            rows["radius_curves"] += curve_rows(key, samples, class_names, settings=settings, confidence=confidence)
            if kind == "minimal":
                values, censored, labels = (samples[name].to_numpy() for name in ("value", "censored", "label"))
                rows["class_distances"] += _distance_rows(key, values, censored, labels, class_names)
                shuffles: dict[str, Any] = {"permutations": permutations, "rng": row_generator(seed, key)}
                test = vars(survival.log_rank(values, censored, labels, len(class_names), **shuffles))
                about = {"n": len(samples), "classes": samples["label"].nunique(), "permutations": permutations}
                rows["log_rank_tests"].append({**key, **about, **{name: test[name] for name in TESTED}})
            elif settings.get("smoothing", {}).get("sandwich") is not None:
                rows.setdefault("refutations", []).append(key | _refutations(samples, settings["smoothing"]["alpha"]))
    return rows


def curve_rows(
    key: Mapping[str, str],
    samples: pd.DataFrame,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    confidence: float,
) -> list[dict[str, Any]]:
    """Rows of radius_curves of one model and measure of kind minimal or certified: classes, then all samples.

    Takes the samples table, K names, the measure's settings and the confidence of the bounds at each radius, which are
    simultaneous over classes; that of all samples holds alone.
    """
    trace = _survival if settings["kind"] == "minimal" else _certified
    smoothing = settings.get("smoothing")
    # The range of the measure ends slightly above the largest certificate.
    largest = largest_certificate(smoothing) if smoothing else measure_of(settings).value_range[1]
    radii = np.linspace(0, largest, POINTS)
    rows = []
    for indices, names, groups in _classes_then_all(samples["label"].to_numpy(), class_names):
        n = np.bincount(groups, minlength=len(names))
        share, low, high = trace(samples, groups, radii, settings=settings, n=n, alpha=(1 - confidence) / len(names))
        rows += [
            {**key, "kind": settings["kind"], "class_index": index, "class_name": names[place], "n": n[place]}
            | {"radius": radius, "share": share[place, at], "low": low[place, at], "high": high[place, at]}
            | {"confidence": confidence}
            for place, index in enumerate(indices)
            for at, radius in enumerate(radii)
        ]
    return rows


def _classes_then_all(labels, class_names):
    # `(indices of the groups, their names, group of each sample (N,))`, by class, then for all samples.
    yield range(len(class_names)), class_names, labels
    yield [ALL], [ALL_NAME], np.zeros_like(labels)


def _survival(samples, labels, radii, *, settings, n, alpha):
    # The share that withstands attacks is an upper bound of robustness, so only an upper confidence bound is valid.
    values, censored = samples["value"].to_numpy(), samples["censored"].to_numpy()
    share = survival.survival_curves(values, censored, labels, len(n), radii=radii)
    broken = np.round((1 - np.nan_to_num(share)) * n[:, None])
    high = 1 - lower_shares(broken, np.broadcast_to(n[:, None], broken.shape), alpha=alpha)
    return share, np.full(share.shape, np.nan), np.where(np.isnan(share), np.nan, high)


def _certified(samples, labels, radii, *, settings, n, alpha):
    values = samples["value"].to_numpy()
    share = np.stack(
        [certified_accuracy(values, labels, len(n), radius=radius * (1 - ROUNDING)).mean for radius in radii], axis=1
    )
    unknown = np.full(share.shape, np.nan)
    if "smoothing" not in settings:
        # The error probability of imported radii is unknown.
        return share, unknown, unknown
    certified = np.round(np.nan_to_num(share) * n[:, None])
    low = corrected_certified_accuracy(
        certified,
        np.broadcast_to(n[:, None], certified.shape),
        alpha=settings["smoothing"]["alpha"],
        confidence=1 - alpha,
    )
    return share, np.where(np.isnan(share), np.nan, low), unknown


def _distance_rows(key, values, censored, labels, class_names):
    # Classes, then all samples.
    rows = []
    for indices, names, groups in _classes_then_all(labels, class_names):
        found = survival.class_distances(values, censored, groups, len(names))
        rows += [
            {**key, "class_index": index, "class_name": names[place]}
            | {name: column[place] for name, column in found.items()}
            for place, index in enumerate(indices)
        ]
    return rows


def _refutations(samples, alpha):
    # Certificates of error alpha that were attacked.
    known = samples[samples["attacked"].notna()]
    attacked, refuted = (int(known[name].astype(bool).sum()) for name in ("attacked", "refuted"))
    allowed = allowed_refutations(len(known), alpha=alpha)
    counts = {"n": len(known), "attacked": attacked, "refuted": refuted, "allowed": allowed}
    return counts | {"alpha": alpha, "within_chance": refuted <= allowed}
