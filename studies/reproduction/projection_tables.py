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
    (low, high), (other_low, other_high) = ranges(metric).values()
    return high < other_low or other_high < low


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
    balanced, alike = (pd.DataFrame(rows[name].to_list()) for name in ("balanced", "random"))
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
        f"{alike['median'].min():.1f} to {alike['median'].max():.1f}, above 3 in {alike['beyond_3'].mean():.0%}: most "
        f"of it is the smaller sample, not the balance. `{COMMAND}` computes it again.",
    )


def across_tasks():
    """PF14: whether Tol and Dev are stable across the two tasks."""
    found = {metric: ranges(metric) for metric in PROJECTION_METRICS}
    apart = {metric for metric in (*PROJECTION_METRICS, *LABEL_METRICS) if tasks_are_apart(metric)}
    label = enumeration([name for metric, name in LABEL_METRICS.items() if metric in apart])
    words = "; ".join(
        f"{name} {own[TASKS[0]][0]:.2f} to {own[TASKS[0]][1]:.2f} and {own[TASKS[1]][0]:.2f} to {own[TASKS[1]][1]:.2f}"
        for name, own in zip(PROJECTION_METRICS.values(), found.values(), strict=True)
    )
    return Claim(
        "PF14",
        PAPER,
        "Tolerance and Deviation are stable across task attributes (appendix A.2).",
        "relatively stable",
        words,
        verdict(not apart & set(PROJECTION_METRICS)),
        "Attractive, then Eyeglasses, 24 models each: the ranges of the tasks do not touch, so each metric tells the "
        "tasks apart without exception, as accuracy does." + (f" So do {label}." if label else ""),
    )


def between_models():
    """PF15: whether Tol and Dev tell models apart better than label statistics."""
    spreads = {
        metric: [relative_spread(metric, task, "cnn") for task in TASKS]
        for metric in (*LABEL_METRICS, *PROJECTION_METRICS)
    }
    label, projection = (
        [100 * value for metric in metrics for value in spreads[metric]]
        for metrics in (LABEL_METRICS, PROJECTION_METRICS)
    )
    better = all(
        min(spreads[metric][place] for metric in PROJECTION_METRICS)
        > max(spreads[metric][place] for metric in LABEL_METRICS)
        for place in range(len(TASKS))
    )
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
