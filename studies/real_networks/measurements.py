"""What is kept of the audits of the real networks: numbers that take images, samples or hours to compute again."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faces_audit import ATTRIBUTES, CLASSES, POSITIVE, TRAININGS
from gfscore.audit.groups.fairness import METRICS, balanced_rows, group_counts, group_metrics, group_rates
from gfscore.audit.samples import ScoresFile
from gfscore.core.identity import ModelName
from gfscore.statistics.margins import true_and_rival_logits
from gfscore.tables.parquet_tables import read_attributes
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


def measured(folder: Path, data: Path) -> dict[str, Any]:
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
        first, second = (table[name].map(lambda name: family_of(name.split("/")[-1])) for name in ("first", "second"))
        table = table.assign(first=first, second=second)
        for measure in measures:
            for name in ("confusion_cosine", "error_cosine", "recall_cosine"):
                own = table[(table["measure"] == measure) & (table["similarity"] == name)]
                pairs = own["first"], own["second"], [*own["first"], *own["second"]]
                key = {"audit": audit, "measure": measure, "similarity": name, "pairs": len(own)}
                medians = {
                    word: median_over_pairs(own[column], *pairs)
                    for word, column in (("median", "value"), ("permuted", "baseline"))
                }
                rows.append(key | {"low": own["value"].min(), "high": own["value"].max(), **medians})
    return rows


def corruptions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """For each model, in how many corruptions weak and sought-after classes stay what they are undisturbed.

    Takes what `corrupted_classes` does. Of tied classes one that stays is enough; `all_` counts only where all do.
    """
    found = []
    for model, own in corrupted_classes(rows).groupby("model", sort=False):
        agree: dict[str, list[float]] = defaultdict(list)
        for _, classes in own.set_index("class_name").groupby("corruption"):
            for name, column, sign in (("weakest", "recall", 1), ("most_reached", "cfps", -1)):
                both = [lowest(sign * classes[f"{prefix}{column}"]) for prefix in ("", "clean_")]
                agree[name].append(bool(both[0] & both[1]))
                agree[f"all_{name}"].append(both[0] == both[1])
                agree[f"{column}_order"].append(order(classes[column], classes[f"clean_{column}"]))
        found.append({"model": model, **{name: float(np.mean(values)) for name, values in agree.items()}})
    return found


def shared(folder: Path) -> list[dict[str, Any]]:
    """Share of the variance between classes that networks of different families have in common, by measure."""
    rows = []
    for audit, measure in ((LOGITS, "clean"), (CHECKPOINTS, "clean"), (CHECKPOINTS, "attacked")):
        found = paired(folder, audit, measure)
        kept = np.flatnonzero(found.values.mean(axis=1) >= KEEPS_ACCURACY)
        families = [found.families[index] for index in kept]
        share = common_share_interval(found.values[kept], found.labels, families, len(OBJECTS), draws=ORDER_DRAWS)
        size = {"networks": len(kept), "families": len(set(families)), "images": len(found.labels)}
        row = dict(zip(("value", "low", "high"), share, strict=True))
        rows.append({"audit": audit, "measure": measure, **size, **row})
    return rows


def logit_leads(folder: Path, data: Path) -> dict[str, float]:
    """Mean over images of the lead of the true logit over the next, 0 where wrong: the score without its ends."""
    networks = published_logits(data) | checkpoint_logits(folder)
    return {name: _mean_lead(*given) for name, given in networks.items()}


def _mean_lead(logits, labels):
    own, rival = true_and_rival_logits(logits, labels)
    return float(np.maximum(own - rival, 0).mean())


def smoothing(folder: Path) -> list[dict[str, Any]]:
    """For each smoothed checkpoint, how its certified radii compare with distances found for the network before."""
    radii, distances = paired(folder, SMOOTHED, "certified"), paired(folder, SMOOTHED, "distance")
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
        own = attributes.loc[frame["sample_id"]]
        groups = {name: pd.Categorical(own[name], categories[name]).codes.astype(np.int64) for name in ATTRIBUTES}
        faces = [frame[name].to_numpy(dtype=np.int64) for name in ("label", "prediction")]
        race = groups["race"]
        for attribute, group in groups.items():
            whole = _metrics(*faces, group, len(categories[attribute]), np.arange(len(group)))
            parts: dict[str, list[Any]] = {"balanced": [], "random": []}
            for seed in range(BALANCED_DRAWS):
                balanced = balanced_rows(race, seed=seed)
                alike = np.random.default_rng(seed).choice(len(race), len(balanced), replace=False)
                for name, part in (("balanced", balanced), ("random", alike)):
                    parts[name].append(_metrics(*faces, group, len(categories[attribute]), part))
            key = {"model": model, "attribute": attribute, "faces": len(group), "part": len(balanced)}
            rows += [key | _changes(metric, whole, parts, place) for place, metric in enumerate(METRICS)]
    return rows


def _metrics(labels, predictions, group, groups, part):
    columns = (column[part] for column in (group, labels, predictions))
    found = group_metrics(group_rates(group_counts(*columns, groups=groups, classes=len(CLASSES))))
    return [100 * found[metric][CLASSES.index(POSITIVE)] for metric in METRICS]


def _changes(metric, whole, parts, place):
    row = {"metric": metric, "value": whole[place]}
    for name, drawn in parts.items():
        change = np.abs(np.array(drawn)[:, place] - whole[place])
        low, median, high = np.nanquantile(change, [0.025, 0.5, 0.975])
        row[name] = {"median": median, "low": low, "high": high, "beyond_3": float(np.mean(change > 3))}
    return row
