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
BENCHMARKS = Path(__file__).parents[2] / "benchmarks/results.json"
TIMED = (
    "on four robust checkpoints of three families, 1,017 images, of certificates 100; "
    "`GFSCORE_TEST_DATA=../shared/data .venv/bin/python benchmarks/real_measures.py` times them again"
)
PUBLISHED, CHECKPOINTS, TARGETED = "published", "checkpoints", "targeted"

WHICH = {
    "all": "the 8 published networks (10,000 images) and the 17 checkpoints (1,017 images)",
    PUBLISHED: "the 8 published networks, 10,000 images",
    CHECKPOINTS: "the 17 checkpoints, 1,017 images",
    TARGETED: "the 13 checkpoints that are no ResNets, 60 images towards 9 classes each, l_inf 2/255, PGD of 20 steps",
    "attacked": "the 17 checkpoints, 1,017 images, l_inf 2/255, PGD and Auto-PGD of 20 steps",
    "smoothed": "four robust checkpoints of three families, 100 images",
    "corrupted": "the 17 checkpoints, 300 images, 15 corruptions at severity 3",
}
"""Networks and images of a row."""


def families_of(models):
    """Families of networks by name."""
    return [_networks()[model]["family"].iloc[0] for model in models]


def networks(which=None):
    """The table of classes, of one set of networks or of all, a data frame per network: `{model: frame by class}`."""
    found = _networks()
    if which == TARGETED:
        return {model: own for model, own in found.items() if own["target_success"].notna().all()}
    return {model: own for model, own in found.items() if which in (None, own["networks"].iloc[0])}


@cache
def _networks():
    return {model: own.set_index("class_name") for model, own in real_network_classes().groupby("model", sort=False)}


def average(classes, column):
    """Mean of a column over all samples of one network."""
    return float((classes[column] * classes["n"]).sum() / classes["n"].sum())


def accuracy(classes):
    """Accuracy of one network from its classes."""
    return average(classes, "recall")


def per_network(function, which=None):
    """A value per network, `(values, families)`; `function` takes the data frame of one network's classes."""
    found = networks(which)
    return [function(classes) for classes in found.values()], [own["family"].iloc[0] for own in found.values()]


def count(function, which=None):
    """How many networks a statement holds for: `(k, of, words)`, words with a Clopper-Pearson interval of the share."""
    holds, _ = per_network(function, which)
    low, high = clopper_pearson(sum(holds), len(holds), alpha=0.05)
    return sum(holds), len(holds), f"{sum(holds)} of {len(holds)} ({low:.0%} to {high:.0%})"


def last(name, column, which=None, *, sign=1):
    """How often a class alone has the smallest value of a column, with sign -1 the largest: as `count`.

    The words also say how often it shares that value with other classes.
    """
    alone, of, words = count(lambda own: lowest(sign * own[column]) == {name}, which)
    ties, _, _ = count(lambda own: name in lowest(sign * own[column]), which)
    return alone, of, words + (f" and tied in {ties - alone}" if ties > alone else "")


def mean(function, which=None):
    """Mean over networks of a value: `(value, low, high)`, a bootstrap over families."""
    return mean_over_families(*per_network(function, which))


def order(first, second, which=None):
    """Spearman's rho over networks of two values: `(value, low, high)`, a bootstrap over families."""
    (x, families), (y, _) = per_network(first, which), per_network(second, which)
    return order_over_families(x, y, families)


def class_order(first, second):
    """Function of one network's classes: Spearman's rho over classes of two columns."""
    return lambda classes: statistics.order(classes[first], classes[second])


def in_words(interval, sign="", *, decimals=2):
    """`value (low to high)`."""
    value, low, high = (f"{number:{sign}.{decimals}f}" for number in interval)
    return f"{value} ({low} to {high})"


def on(which):
    """Last sentences of a note: the networks, the images, and what computes the row again."""
    return f"On {WHICH[which]}; `{COMMAND}` computes it again."


def counted(which):
    """Those of a note on counts of networks."""
    return "Intervals: Clopper-Pearson, 95%, as if networks were independent, which those of a family are not. " + on(
        which
    )


def averaged(which):
    """Those of a note on means over networks."""
    return "Intervals: bootstrap over the families of networks, 95%. " + on(which)


def times_the_score():
    """Processor time per image of each measure over that of the attack-free score, from the benchmarks."""
    rows = json.loads(BENCHMARKS.read_text(encoding="utf-8"))
    begins = "cost of the attack-free score over that of "
    return {row["name"].removeprefix(begins): 1 / row["ratio"] for row in rows if row["name"].startswith(begins)}


def measurement(name, **key):
    """Rows of real_networks.json under a name, as a data frame, those with the values of `key`; or a mapping there."""
    found = real_network_measurements()[name]
    if isinstance(found, dict):
        return found
    rows = pd.DataFrame(found)
    for column, value in key.items():
        rows = rows[rows[column] == value]
    return rows
