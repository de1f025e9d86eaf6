"""Claims of the projection-fairness paper about the stability of its metrics: its tables, and real faces."""

import math

import pandas as pd

from gfscore.core.names import enumeration
from studies.reference import projection_tables
from studies.reproduction.claims import Claim, verdict
from studies.reproduction.projection_fairness import PAPER, TASKS
from studies.reproduction.real_networks import COMMAND, measurement

LABEL_METRICS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}
PROJECTION_METRICS = {"tolerance": "Tol", "deviation": "Dev"}
"""Columns of the tables, and their names."""

COUPLING = pd.DataFrame(
    {"Attractive": [3.98, 5.60], "Smiling": [5.80, 6.09], "Mustache": [2.68, 2.71]}, index=["ResNet-50", "ViT-S"]
)
"""Cou by model and task, with the beta-VAE. Source: projection paper, Table 2."""


def ranges(metric):
    """Smallest and largest printed value of a metric over the 24 models, by task: `{task: (low, high)}`."""
    table = projection_tables().groupby("task")[metric]
    return {task: (float(table.min()[task]), float(table.max()[task])) for task in TASKS}


def tasks_are_apart(metric):
    """Whether the ranges of a metric on the two tasks do not touch."""
    (first_low, first_high), (second_low, second_high) = ranges(metric).values()
    return first_high < second_low or second_high < first_low


def relative_spread(metric, task, family):
    """Standard deviation over the models of one family over their mean, of a printed metric."""
    table = projection_tables()
    values = table[(table["task"] == task) & (table["architecture"] == family)][metric]
    return float(values.std() / values.mean())


def latent_dimensions_needed(coupling):
    """Fewest dimensions with which Cou can reach a value: each adds at most 1 / e, where P = 1 / e."""
    return math.ceil(coupling * math.e)


def claims():
    """Claims of the page, in its order."""
    return [balancing(), across_tasks(), between_models(), lowest_coupling()]


def balancing():
    """PF11: how far balancing moves group metrics of real classifiers of faces."""
    rows = measurement("balancing")
    balanced = pd.DataFrame(rows["balanced"].to_list())
    random = pd.DataFrame(rows["random"].to_list())
    first = rows.iloc[0]
    return Claim(
        "PF11",
        PAPER,
        "Balancing one attribute of the test set changes the scores by less than 3% (section 3.2).",
        "< 3%",
        f"median change {balanced['median'].min():.1f} to {balanced['median'].max():.1f} percentage points in "
        f"{len(rows)} scores, 95% of draws up to {balanced['high'].max():.1f}; above 3 in "
        f"{balanced['beyond_3'].mean():.0%} of (score, draw)",
        verdict(balanced["high"].max() < 3),
        f"FairFace, balanced by race: {first['part']:,} of {first['faces']:,} faces, 1,000 draws; DP, EOpp, EOdd and "
        "AOdd of age and race, two small classifiers of gender ([Groups](groups.md#on-real-faces)); the interval is "
        "that of the draws. As many faces drawn without balance move the scores by a median of "
        f"{random['median'].min():.1f} to {random['median'].max():.1f}, above 3 in {random['beyond_3'].mean():.0%}: "
        f"most of it is the smaller sample, not the balance. `{COMMAND}` computes it again.",
    )


def across_tasks():
    """PF14: whether Tol and Dev are stable across the two tasks."""
    separating = [metric for metric in (*PROJECTION_METRICS, *LABEL_METRICS) if tasks_are_apart(metric)]
    label = enumeration([name for metric, name in LABEL_METRICS.items() if metric in separating])
    words = []
    for metric, name in PROJECTION_METRICS.items():
        by_task = [f"{low:.2f} to {high:.2f}" for low, high in ranges(metric).values()]
        words.append(f"{name} {' and '.join(by_task)}")
    return Claim(
        "PF14",
        PAPER,
        "Tolerance and Deviation are stable across task attributes (appendix A.2).",
        "relatively stable",
        "; ".join(words),
        verdict(not set(separating) & set(PROJECTION_METRICS)),
        "Attractive, then Eyeglasses, 24 models each: the ranges of the tasks do not touch, so each metric tells the "
        "tasks apart without exception, as accuracy does." + (f" So do {label}." if label else ""),
    )


def between_models():
    """PF15: whether Tol and Dev tell models apart better than label statistics."""
    label = []
    projection = []
    better = True
    for task in TASKS:
        label_of_task = [100 * relative_spread(metric, task, "cnn") for metric in LABEL_METRICS]
        projection_of_task = [100 * relative_spread(metric, task, "cnn") for metric in PROJECTION_METRICS]
        better = better and min(projection_of_task) > max(label_of_task)
        label += label_of_task
        projection += projection_of_task
    return Claim(
        "PF15",
        PAPER,
        "Tolerance and Deviation reveal significant differences between models, which DP, EOpp and EOdd do not tell "
        "apart (appendix A.2, CNNs).",
        "significant differences",
        f"standard deviation over the mean, 14 CNNs: Tol and Dev {min(projection):.2f}% to {max(projection):.2f}%, DP, "
        f"EOpp and EOdd {min(label):.2f}% to {max(label):.2f}%",
        verdict(better),
        "Both tasks. The paper prints no error of any number, so that none of these differences can be called "
        "significant.",
    )


def lowest_coupling():
    """PF16: whether Mustache has the lowest coupling."""
    lowest = int((COUPLING.idxmin(axis=1) == "Mustache").sum())
    return Claim(
        "PF16",
        PAPER,
        "The objective task Mustache has a lower coupling than the subjective tasks (section 6.2, Table 2).",
        "2.68, 2.71",
        f"lowest of three tasks in {lowest} of {len(COUPLING)} models",
        verdict(lowest == len(COUPLING)),
        f"As an ordering of printed numbers; by chance once in {3 ** len(COUPLING)}. What a low Cou means is open: it "
        "vanishes both where all attributes matter alike and where one alone does (PF6). The largest entry takes "
        f"{latent_dimensions_needed(COUPLING.to_numpy().max())} latent dimensions or more, which the paper does not "
        "state.",
    )
