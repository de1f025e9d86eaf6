"""What the ledger says about real networks: counts and means over them, with intervals, in words."""

import json
from functools import cache
from pathlib import Path

import pandas as pd

from gfscore.statistics.proportions import clopper_pearson
from studies.real_networks import statistics
from studies.real_networks.statistics import lowest, mean_over_families, order_over_families
from studies.reference import real_network_classes, real_network_measurements

COMMAND = "GFSCORE_TEST_DATA=../shared/data .venv/bin/python studies/audit_real_networks.py /tmp/real-networks"
"""Computes the numbers again."""

BENCHMARKS = Path(__file__).parents[2] / "benchmarks/results.json"

TIMED = (
    "on four robust checkpoints of three families, 1,017 images, of certificates 100; "
    "`GFSCORE_TEST_DATA=../shared/data .venv/bin/python benchmarks/real_measures.py` times them again"
)
"""What the times of measures were taken on."""

PUBLISHED, CHECKPOINTS, TARGETED = "published", "checkpoints", "targeted"
"""Sets of networks."""

NETWORKS_AND_IMAGES = {
    "all": "the 8 published networks (10,000 images) and the 17 checkpoints (1,017 images)",
    PUBLISHED: "the 8 published networks, 10,000 images",
    CHECKPOINTS: "the 17 checkpoints, 1,017 images",
    TARGETED: "the 13 checkpoints that are no ResNets, 60 images towards 9 classes each, l_inf 2/255, PGD of 20 steps",
    "attacked": "the 17 checkpoints, 1,017 images, l_inf 2/255, PGD and Auto-PGD of 20 steps",
    "smoothed": "four robust checkpoints of three families, 100 images",
    "corrupted": "the 17 checkpoints, 300 images, 15 corruptions at severity 3",
}
"""Networks and images of a row, in words."""


# ---- the table of classes ----


def networks(subset=None):
    """The table of classes as one data frame per network, by name: of a set of networks, or of all."""
    chosen = {}
    for name, classes in _classes_by_network().items():
        if subset == TARGETED:
            belongs = classes["target_success"].notna().all()
        else:
            belongs = subset in (None, classes["networks"].iloc[0])
        if belongs:
            chosen[name] = classes
    return chosen


@cache
def _classes_by_network():
    by_network = real_network_classes().groupby("model", sort=False)
    return {name: classes.set_index("class_name") for name, classes in by_network}


def families_of(names):
    """Families of networks by name."""
    return [family_of(_classes_by_network()[name]) for name in names]


def family_of(classes):
    """Family of the network of these classes."""
    return classes["family"].iloc[0]


def average(classes, column):
    """Mean of a column over all samples of one network."""
    return float((classes[column] * classes["n"]).sum() / classes["n"].sum())


def accuracy(classes):
    """Accuracy of one network from its classes."""
    return average(classes, "recall")


# ---- statements about several networks ----


def per_network(function, subset=None):
    """A value per network, `(values, families)`; `function` takes the data frame of one network's classes."""
    frames = networks(subset).values()
    return [function(classes) for classes in frames], [family_of(classes) for classes in frames]


def count(statement, subset=None):
    """How many networks a statement holds for: `(k, n, words)`, words with a Clopper-Pearson interval of the share."""
    holds, _ = per_network(statement, subset)
    k = sum(holds)
    low, high = clopper_pearson(k, len(holds), alpha=0.05)
    return k, len(holds), f"{k} of {len(holds)} ({low:.0%} to {high:.0%})"


def last(name, column, subset=None, *, sign=1):
    """How often a class alone has the smallest value of a column, with sign -1 the largest: `(k, n, words)` of `count`.

    The words also say how often it shares that value with other classes.
    """
    alone, n, words = count(lambda classes: lowest(sign * classes[column]) == {name}, subset)
    tied_or_alone, _, _ = count(lambda classes: name in lowest(sign * classes[column]), subset)
    if tied_or_alone > alone:
        words += f" and tied in {tied_or_alone - alone}"
    return alone, n, words


def mean(function, subset=None):
    """Mean over networks of a value: `(value, low, high)`, a bootstrap over families."""
    values, families = per_network(function, subset)
    return mean_over_families(values, families)


def order(first, second, subset=None):
    """Spearman's rho over networks of two values: `(value, low, high)`, a bootstrap over families."""
    x, families = per_network(first, subset)
    y, _ = per_network(second, subset)
    return order_over_families(x, y, families)


def class_order(first, second):
    """Function of one network's classes: Spearman's rho over classes of two columns."""
    return lambda classes: statistics.order(classes[first], classes[second])


# ---- words ----


def interval_words(interval, sign="", *, decimals=2):
    """`value (low to high)`."""
    value, low, high = (f"{number:{sign}.{decimals}f}" for number in interval)
    return f"{value} ({low} to {high})"


def data_note(subset):
    """Last sentences of a note: the networks, the images, and what computes the row again."""
    return f"On {NETWORKS_AND_IMAGES[subset]}; `{COMMAND}` computes it again."


def counts_note(subset):
    """Last sentences of a note on counts of networks."""
    intervals = "Intervals: Clopper-Pearson, 95%, as if networks were independent, which those of a family are not. "
    return intervals + data_note(subset)


def means_note(subset):
    """Last sentences of a note on means over networks."""
    return "Intervals: bootstrap over the families of networks, 95%. " + data_note(subset)


# ---- measurements ----


def times_the_score():
    """Processor time per image of each measure over that of the attack-free score, from the benchmarks."""
    prefix = "cost of the attack-free score over that of "
    times = {}
    for row in json.loads(BENCHMARKS.read_text(encoding="utf-8")):
        if row["name"].startswith(prefix):
            times[row["name"].removeprefix(prefix)] = 1 / row["ratio"]
    return times


def measurement(name, **key):
    """Rows of real_networks.json under a name, as a data frame, those with the values of `key`; or a mapping there."""
    stored = real_network_measurements()[name]
    if isinstance(stored, dict):
        return stored
    rows = pd.DataFrame(stored)
    for column, value in key.items():
        rows = rows[rows[column] == value]
    return rows
