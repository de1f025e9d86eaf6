"""Tables of errors, curves, targets and refutations of random classifiers with planted weaknesses, by the real functions."""

from itertools import combinations

import numpy as np
import pandas as pd

from gfscore.audit.agreement.radii import curve_frame
from gfscore.audit.classwise.confusion import Predictions, confusion_tables
from gfscore.audit.classwise.similarity import similarity_table
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.tables.parquet_tables import frame_of, stacked
from gfscore.tables.table import ALL, ALL_NAME
from gfscore.workflow.catalogue import CATALOGUE

MINIMAL = {"kind": "minimal", "norm": "l2", "largest_distance": 2.0}
CERTIFIED = {
    "kind": "certified",
    "smoothing": {"sigma": 0.25, "estimation_samples": 1000, "alpha": 0.001},
}
CORRUPTION = {"kind": "corruption"}
TARGETED = {"kind": "targeted", "norm": "linf", "eps": 0.1}


def subjects(count, names=None):
    """Identities of `count` models."""
    return [
        {"dataset": "toy", "threat": "none", "model": name} for name in names or (f"model_{i}" for i in range(count))
    ]


def class_names(classes):
    """Names of the classes: c0, c1, ..."""
    return [f"c{k}" for k in range(classes)]


def error_tables(
    *, models=3, classes=10, per_class=60, accuracy=0.7, taken=(3, 5), names=None, corrupted=False, seed=0
):
    """Tables confusions, class_errors and similarities; class taken[0] is always called taken[1]."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    conditions = [(kind, severity) for kind in ("fog", "glass_blur") for severity in (1, 5)] if corrupted else [None]
    predicted = []
    for model in subjects(models, names):
        parts = []
        for condition in conditions:
            skill = accuracy - 0.3 * (condition is not None and condition[0] == "glass_blur")
            guesses = np.where(rng.random(len(labels)) < skill, labels, rng.integers(classes, size=len(labels)))
            if taken:
                guesses[labels == taken[0]] = taken[1]
            part = pd.DataFrame(
                {"sample_id": [f"s{i}" for i in range(len(labels))], "label": labels, "prediction": guesses}
            )
            parts.append(part.assign(corruption=condition[0], severity=condition[1]) if condition else part)
        measure, samples = "corruption" if corrupted else "clean", pd.concat(parts, ignore_index=True)
        predicted.append(Predictions(ModelName.from_columns(model), measure, samples, corrupted, corrupted))
    confusions, errors = confusion_tables(predicted, class_names(classes))
    similarities = similarity_table(predicted, class_names(classes), shuffles=39, models=20, seed=0)
    return {"confusions": confusions, "class_errors": errors, "similarities": similarities}


def radius_tables(settings, *, models=3, classes=10, per_class=30, weak=2, names=None, seed=0):
    """Tables radius_curves and class_scores of one measure.

    The radii of class `weak` are a third of the others', those of later models longer.
    """
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    curves, scores = [], []
    for index, model in enumerate(subjects(models, names)):
        radius = rng.beta(2, 4, size=len(labels)) * (0.6 + 0.2 * index) * np.where(labels == weak, 1 / 3, 1)
        samples = pd.DataFrame({"label": labels, "value": radius, "censored": False})
        key = {**model, "measure": settings["kind"]}
        measure = named_measures({settings["kind"]: settings})[settings["kind"]]
        curve = curve_frame(samples, class_names(classes), measure=measure, confidence=0.95)
        curves.append(curve.assign(**key))
        scores += [
            {**key, "calibration": "none", "class_index": k, "class_name": name, "n": per_class}
            | {"value": (mean := radius[labels == k].mean()), "low": mean - 0.03, "high": mean + 0.03}
            for k, name in enumerate(class_names(classes))
        ]
    return stacked(CATALOGUE["radius_curves"], curves), frame_of(CATALOGUE["class_scores"], scores)


def target_tables(*, models=2, classes=6, easiest=4, seed=0):
    """Tables target_matrix and target_success of random attacks; target `easiest` is reached four times as often."""
    rng = np.random.default_rng(seed)
    cells, success = [], []
    for model in subjects(models):
        key = {**model, "measure": "targeted"}
        matrix = rng.uniform(0, 0.2, size=(classes, classes))
        matrix[:, easiest] = 0.8
        for source, target in (pair for a, b in combinations(range(classes), 2) for pair in ((a, b), (b, a))):
            cells.append({**key, "source_index": source, "target_index": target, "success": matrix[source, target]})
        others = ~np.eye(classes, dtype=bool)
        success += [
            {**key, "class_index": k, "class_name": class_names(classes)[k], "n": 50 * (classes - 1)}
            | {"success": matrix[others[:, k], k].mean(), "clean": 0.01, "excess": 0.0, "among_misclassified": 0.0}
            | {"cfps": 0.1, "miss_rate": 0.1}
            for k in range(classes)
        ]
    return {
        "target_matrix": frame_of(CATALOGUE["target_matrix"], cells),
        "target_success": frame_of(CATALOGUE["target_success"], success),
    }


def falsification_table(scores, distances, *, p_mean=0.001):
    """Table falsification at T = 1 of models with these mean scores and distances; p_mean where the score is larger."""
    rows = [
        {**model, "measure": "great-softmax", "distances": "minimal", "calibration": "none", "temperature": 1.0}
        | {"class_index": ALL, "class_name": ALL_NAME, "n": 100, "correct": 90, "violations": 45, "rate": 0.5}
        | {"low": 0.39, "high": 0.61, "confidence": 0.95, "censored": 0, "mean_score": score, "mean_distance": distance}
        | {"p_mean": p_mean if score > distance else 1.0}
        for model, score, distance in zip(subjects(len(scores)), scores, distances, strict=True)
    ]
    return frame_of(CATALOGUE["falsification"], rows)
