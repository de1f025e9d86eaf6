"""The attack-free score of the checkpoints at the temperatures that calibrations choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gfscore.audit.calibration.attack_free import aggregates
from gfscore.audit.calibration.rank_objectives import attack_distance, cross_model_accuracy
from gfscore.audit.calibration.temperature_search import optimum
from gfscore.audit.settings import TemperatureGrid
from gfscore.statistics.classes import class_means
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions
from studies.real_networks.audits import CHECKPOINTS, CLASSES
from studies.real_networks.evidence import checkpoint_logits, paired

SEARCH = TemperatureGrid()


def calibrations(folder: Path) -> list[dict[str, Any]]:
    """Per activation, the mean scores of the checkpoints at the temperatures that two objectives choose.

    Objectives: `clean`, Eq. 8, the rank agreement with clean accuracy, and `attacked`, that with the accuracy under
    attack, which no calibration without attacks knows. Each has `temperature`, the `first` and `last` of the widest
    range that is as good, whether it is at an `edge` of the searched range, the `best` agreement, and `scores`.
    """
    networks = checkpoint_logits(folder)
    attacked = paired(folder, CHECKPOINTS, "attacked")
    accuracy_under_attack = dict(zip(attacked.networks, attacked.values.mean(axis=1), strict=True))
    under_attack = np.array([accuracy_under_attack[name] for name in networks])
    recall = []
    for logits, labels in networks.values():
        correct = predictions(logits, labels) == labels
        recall.append(class_means(correct, labels, len(CLASSES)))

    rows = []
    for activation in ("softmax", "sigmoid"):
        curves = []
        for logits, labels in networks.values():
            curve = sweep_class_scores(
                logits, labels, len(CLASSES), activation=activation, low=SEARCH.low, high=SEARCH.high
            )
            curves.append(curve)
        objectives = {
            "clean": cross_model_accuracy(curves, np.array(recall), SEARCH),
            "attacked": attack_distance(curves, under_attack, SEARCH),
        }
        for name, objective in objectives.items():
            best = optimum(objective.stretches, objective.values())
            scores = aggregates(curves)(np.array([best.t_star]))[0]
            first, last = best.interval
            rows.append(
                {
                    "activation": activation,
                    "objective": name,
                    "temperature": best.t_star,
                    "best": best.best,
                    "first": first,
                    "last": last,
                    "edge": best.edge,
                    "scores": dict(zip(networks, map(float, scores), strict=True)),
                }
            )
    return rows
