"""Every measure on every twin: does it rank the classes by the truth, find the weak one, and keep its promise?"""

from dataclasses import dataclass

import numpy as np

from gfscore.audit.agreement.gradient_masking import Attacked, masking_warnings
from gfscore.statistics.classes import class_values
from gfscore.statistics.ranking import spearman
from studies.known_truth.cases import CASES
from studies.known_truth.classifiers import TWINS, make_classifier
from studies.known_truth.planted import plant

SAMPLES = 10
"""Samples per class."""


@dataclass(frozen=True)
class Row:
    """What one measure said about one twin of K `classes`.

    Attributes
    ----------
    values, truth : ndarray of shape (K,)
        Class means of the measure, and of what it ought to say.
    radii : ndarray of shape (K,)
        Planted mean l2 distances.
    rank_agreement : float
        Spearman's correlation of values with radii; NaN where all values are equal.
    finds_weak : bool
        Whether the planted weak class alone has the lowest value.
    difference : float
        Mean of value minus truth over the samples.
    above, below : float
        How many samples are above and below the truth by more than the tolerance; NaN where the truth is an average.
    broken, allowed : int
        Broken promises, and how many chance explains.
    censored, samples : int
        Censored samples, and all of them.
    """

    classes: int
    twin: str
    measure: str
    values: np.ndarray
    truth: np.ndarray
    radii: np.ndarray
    rank_agreement: float
    finds_weak: bool
    difference: float
    above: float
    below: float
    broken: int
    allowed: int
    censored: int
    samples: int


@dataclass(frozen=True)
class Twin:
    """What all measures said about one twin: `rows`, a list of Row, and the signs of gradient masking, MaskingSigns."""

    name: str
    rows: list
    signs: list


def run_suite(classes, *, samples=SAMPLES, twins=tuple(TWINS), cases=CASES, seed=0):
    """Every case on every twin of K `classes`, a list of Twin; the same images and random draws for all twins."""
    planted = plant(classes, samples=samples, seed=seed)
    truths = {case.name: case.truth(planted) for case in cases}
    result = []
    for twin in twins:
        classifier = make_classifier(twin, classes=classes, weak=planted.weak)
        rows = []
        attacked = {}
        for case in cases:
            columns = case.measure(classifier, planted.images, planted.labels, seed=seed)
            rows.append(_row(case, columns, truths[case.name], planted, twin=twin))
            if case.kind in ("adversarial", "minimal"):
                attacked[case.name] = _attacked(case, columns, planted.labels)
        result.append(Twin(twin, rows, masking_warnings(attacked)))
    return result


def _attacked(case, columns, labels):
    settings = case.settings
    distance = columns.get("distance", np.where(columns["censored"], np.nan, columns["value"]))
    return Attacked(
        sample_id=np.arange(len(labels)),
        labels=labels,
        norm=settings["norm"],
        eps=settings.get("eps", settings.get("largest_distance")),
        distance=distance,
        attack=columns["attack"],
        tried=tuple(attack["name"] for attack in settings["attacks"]),
        passes=columns["steps"],
    )


def _row(case, columns, truth, planted, *, twin):
    value = columns["value"]
    class_means = class_values(value, planted.labels, planted.classes).mean
    true_means = class_values(truth, planted.labels, planted.classes).mean
    lowest = np.flatnonzero(class_means <= class_means.min() + 1e-12)
    excess = value - truth
    above = np.nan if case.expected else int((excess > case.tolerance).sum())
    below = np.nan if case.expected else int((-excess > case.tolerance).sum())
    return Row(
        classes=planted.classes,
        twin=twin,
        measure=case.name,
        values=class_means,
        truth=true_means,
        radii=planted.radii,
        rank_agreement=float(spearman(class_means, planted.radii)),
        finds_weak=lowest.tolist() == [planted.weak],
        difference=float(excess.mean()),
        above=above,
        below=below,
        broken=case.broken_promises(columns, truth),
        allowed=case.allowed(len(value)),
        censored=int(np.sum(columns.get("censored", 0))),
        samples=len(value),
    )
