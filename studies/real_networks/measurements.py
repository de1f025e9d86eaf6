"""Numbers of the audits of the real networks that take images, samples or hours to compute again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.groups.fairness import METRICS, balanced_rows, group_counts, group_metrics, group_rates
from gfscore.audit.samples import ScoresFile
from gfscore.core.identity import ModelName
from gfscore.statistics.margins import true_and_rival_logits
from gfscore.tables.parquet_tables import read_attributes
from helpers.real_audits import ATTRIBUTES, FACE_CLASSES, POSITIVE, TRAININGS
from studies.real_networks.audits import CHECKPOINTS, FACES, LOGITS, SMOOTHED
from studies.real_networks.audits import CLASSES as OBJECTS
from studies.real_networks.calibration import calibrations
from studies.real_networks.evidence import (
    audit_table,
    checkpoint_logits,
    corrupted_classes,
    family_of,
    paired,
    published_logits,
    samples,
)
from studies.real_networks.statistics import (
    KEEPS_ACCURACY,
    ORDER_DRAWS,
    common_share_interval,
    lowest,
    median_over_pairs,
    order,
)

BALANCED_DRAWS = 1000


def measurements(folder: Path, data: Path) -> dict[str, Any]:
    """Everything beside the table of classes, by what it is about; `folder` has the audits, `data` the test data."""
    return {
        "similarities": similarities(folder),
        "corruptions": corruptions(samples(folder, "corrupted")),
        "shared": shared(folder),
        "logit_leads": logit_leads(folder, data),
        "smoothing": smoothing(folder),
        "costs": costs(folder),
        "calibrations": calibrations(folder),
        "balancing": balancing(folder),
    }


def similarities(folder: Path) -> list[dict[str, Any]]:
    """Cosines of all pairs of networks: smallest, largest, and the median; that under permuted classes too.

    The medians are `[value, low, high]`, a bootstrap over families.
    """
    rows = []
    for audit, measures in ((LOGITS, ["clean"]), (CHECKPOINTS, ["clean", "attacked"])):
        table = audit_table(folder, audit, "similarities")
        for column in ("first", "second"):
            table[column] = [family_of(label.split("/")[-1]) for label in table[column]]
        for measure, name in product(measures, ("confusion_cosine", "error_cosine", "recall_cosine")):
            pairs = table[(table["measure"] == measure) & (table["similarity"] == name)]
            first = pairs["first"]
            second = pairs["second"]
            families = [*first, *second]
            rows.append(
                {
                    "audit": audit,
                    "measure": measure,
                    "similarity": name,
                    "pairs": len(pairs),
                    "low": pairs["value"].min(),
                    "high": pairs["value"].max(),
                    "median": median_over_pairs(pairs["value"], first, second, families),
                    "permuted": median_over_pairs(pairs["baseline"], first, second, families),
                }
            )
    return rows


def corruptions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """For each model, in how many corruptions weak and sought-after classes stay what they are undisturbed.

    Takes what `corrupted_classes` does. Of tied classes one that stays is enough; `all_` counts only where all do.
    """
    result = []
    for model, classes_of_model in corrupted_classes(rows).groupby("model", sort=False):
        agreements: dict[str, list[float]] = defaultdict(list)
        for _, classes in classes_of_model.set_index("class_name").groupby("corruption"):
            for name, column, sign in (("weakest", "recall", 1), ("most_reached", "cfps", -1)):
                corrupted = lowest(sign * classes[column])
                clean = lowest(sign * classes[f"clean_{column}"])
                agreements[name].append(bool(corrupted & clean))
                agreements[f"all_{name}"].append(corrupted == clean)
                agreements[f"{column}_order"].append(order(classes[column], classes[f"clean_{column}"]))
        means = {name: float(np.mean(values)) for name, values in agreements.items()}
        result.append({"model": model, **means})
    return result


def shared(folder: Path) -> list[dict[str, Any]]:
    """Share of the variance between classes that networks of different families have in common, by measure."""
    rows = []
    for audit, measure in ((LOGITS, "clean"), (CHECKPOINTS, "clean"), (CHECKPOINTS, "attacked")):
        pairing = paired(folder, audit, measure)
        accurate = np.flatnonzero(pairing.values.mean(axis=1) >= KEEPS_ACCURACY)
        families = [pairing.families[index] for index in accurate]
        value, low, high = common_share_interval(
            pairing.values[accurate], pairing.labels, families, len(OBJECTS), draws=ORDER_DRAWS
        )
        rows.append(
            {
                "audit": audit,
                "measure": measure,
                "networks": len(accurate),
                "families": len(set(families)),
                "images": len(pairing.labels),
                "value": value,
                "low": low,
                "high": high,
            }
        )
    return rows


def logit_leads(folder: Path, data: Path) -> dict[str, float]:
    """Mean over images of the lead of the true logit over the next, 0 where wrong: the score without its ends."""
    networks = published_logits(data) | checkpoint_logits(folder)
    leads = {}
    for name, (logits, labels) in networks.items():
        true_logit, rival_logit = true_and_rival_logits(logits, labels)
        leads[name] = float(np.maximum(true_logit - rival_logit, 0).mean())
    return leads


def smoothing(folder: Path) -> list[dict[str, Any]]:
    """For each smoothed checkpoint, how its certified radii compare with distances found for the network before."""
    radii = paired(folder, SMOOTHED, "certified")
    distances = paired(folder, SMOOTHED, "distance")
    rows = []
    for name, radius in zip(radii.networks, radii.values, strict=True):
        distance = distances.values[distances.networks.index(name)]
        both = (radius > 0) & (distance > 0)
        below = int((radius[both] < distance[both]).sum())
        ratio = float(np.median(distance[both] / radius[both]))
        rows.append({"model": name, "both": int(both.sum()), "below": below, "median_ratio": ratio})
    return rows


def costs(folder: Path) -> list[dict[str, Any]]:
    """Passes per image of what is costly, one with a gradient counted twice, by audit, network and measure."""
    rows: list[dict[str, Any]] = []
    for audit, measures in ((CHECKPOINTS, ["attacked"]), (SMOOTHED, ["attacked", "distance", "certified"])):
        table = audit_table(folder, audit, "costs")
        passes = (table["forwards"] + table["backwards"]) / table["samples"]
        table = table[["model", "measure"]].assign(audit=audit, passes=passes)
        rows += table[table["measure"].isin(measures)].to_dict("records")
    return rows


def balancing(folder: Path) -> list[dict[str, Any]]:
    """How far group metrics move when race is balanced, over many draws, and when as many faces are drawn at random.

    One row per classifier, attribute and metric, for the class Male: `value` on all faces; for both kinds of parts the
    median absolute change in percentage points, the interval that holds 95% of the draws, and how many exceed 3.
    """
    attributes, categories = read_attributes(folder / "results/attributes/faces.parquet")
    attributes = attributes.set_index("sample_id")
    scores = ScoresFile(folder / "results/scores/faces.parquet")
    rows: list[dict[str, Any]] = []
    for model in TRAININGS:
        frame = scores.read(ModelName(FACES, "none", model), "clean")
        attributes_of_faces = attributes.loc[frame["sample_id"]]
        groups = {}
        for name in ATTRIBUTES:
            groups[name] = pd.Categorical(attributes_of_faces[name], categories[name]).codes.astype(np.int64)
        balanced_draws, random_draws = _draws(groups["race"])
        labels = frame["label"].to_numpy(dtype=np.int64)
        predictions = frame["prediction"].to_numpy(dtype=np.int64)
        for attribute, group in groups.items():
            faces = _Faces(labels, predictions, group, len(categories[attribute]))
            value = faces.metrics(np.arange(len(group)))
            balanced = np.array([faces.metrics(chosen) for chosen in balanced_draws])
            random = np.array([faces.metrics(chosen) for chosen in random_draws])
            for column, metric in enumerate(METRICS):
                rows.append(
                    {
                        "model": model,
                        "attribute": attribute,
                        "faces": len(group),
                        "part": len(balanced_draws[-1]),
                        "metric": metric,
                        "value": value[column],
                        "balanced": _changes(balanced[:, column], value[column]),
                        "random": _changes(random[:, column], value[column]),
                    }
                )
    return rows


def _draws(race):
    # Rows of faces, balanced by race, and as many drawn at random, by seed.
    balanced = []
    random = []
    for seed in range(BALANCED_DRAWS):
        rows = balanced_rows(race, seed=seed)
        balanced.append(rows)
        random.append(np.random.default_rng(seed).choice(len(race), len(rows), replace=False))
    return balanced, random


@dataclass(frozen=True)
class _Faces:
    # Labels, predictions and groups (N,) of faces, and the number of groups.
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    group: NDArray[np.int64]
    groups: int

    def metrics(self, rows: NDArray[np.integer]) -> list[float]:
        """Each of METRICS for the positive class on some of the faces, in percentage points."""
        counts = group_counts(
            self.group[rows], self.labels[rows], self.predictions[rows], groups=self.groups, classes=len(FACE_CLASSES)
        )
        by_class = group_metrics(group_rates(counts))
        positive = FACE_CLASSES.index(POSITIVE)
        return [100 * by_class[metric][positive] for metric in METRICS]


def _changes(drawn, value):
    change = np.abs(drawn - value)
    low, median, high = np.nanquantile(change, [0.025, 0.5, 0.975])
    return {"median": median, "low": low, "high": high, "beyond_3": float(np.mean(change > 3))}
