"""Tables printed by the source papers, and the RobustBench leaderboard, as they stand there.

The papers' tables are facts to compare with, never results of this package; real_networks.csv and .json are results.
Percentages stay percentages here, as printed; a column that holds them says so in its name or in its reader.
"""

import json
from functools import cache
from importlib import resources

import pandas as pd

THREAT_OF = {"cifar10": "L2", "imagenet": "Linf"}
"""Threat model under which the GF-Score paper evaluates each dataset."""


def gf_score_table3():
    """Scores and disparity of 17 CIFAR-10 L2 models, indexed by RobustBench name.

    Columns paper_name, robust_accuracy_pct (percent), great_score (T = 1), great_score_calibrated (T = 2.70), rdi,
    nrgc, wcr, wcr_class, fp_great (lambda = 0.5), three decimals each. Source: GF-Score paper, Table 3.
    """
    return _read("paper_table3_cifar10_l2.csv").set_index("model")


def gf_score_table4():
    """Scores and disparity of 5 ImageNet Linf models, calibrated at T = 0.10; columns as in `gf_score_table3`.

    Classes are named by WordNet id. Source: GF-Score paper, Table 4.
    """
    return _read("paper_table4_imagenet_linf.csv").set_index("model")


def gf_score_table5():
    """Class scores at T = 1 of the 17 CIFAR-10 models: ten class columns, paper_name and aggregate.

    Rows are indexed by RobustBench name and stand in the order of Table 3. Source: GF-Score paper, Table 5.
    """
    table = _read("paper_table5_cifar10_per_class.csv").set_index("model")
    return table.loc[gf_score_table3().index]


def robustbench_leaderboard(dataset, threat):
    """Leaderboard entries of one dataset ("cifar10", "imagenet", ...) and threat ("L2", "Linf", "corruptions").

    Indexed by model; columns architecture, clean_accuracy_pct, autoattack_accuracy_pct, external_robust_accuracy_pct,
    corruptions_accuracy_pct (percent, NaN where not listed), eps, additional_data, venue.
    Source: model descriptions of RobustBench (Croce et al. 2021).
    """
    table = _read("robustbench_leaderboard.csv", "gfscore.networks")
    chosen = table[(table["dataset"] == dataset) & (table["threat_model"] == threat)]
    return chosen.set_index("model").drop(columns=["dataset", "threat_model"])


def exact_binomial_table1():
    """Seven CIFAR-10 classifiers, indexed by training method: accuracy, attack_failure_rate, observation (percent).

    `observation` is the printed lower bound on the share of inputs with fewer than 1 adversarial neighbour in 10,000.
    Source: exact-binomial paper, Table 1.
    """
    return _read("exact_binomial_table1_cifar10.csv").set_index("method")


def projection_tables():
    """Fairness of 24 CelebA classifiers on two tasks, one row per (model, task), 48 rows.

    Columns architecture (cnn, transformer), task, accuracy, dp, eopp, eodd, tolerance, deviation; percent, averaged by
    the authors over 40 attributes and scaled so that higher is better. Source: projection paper, Tables 1 and 3.
    """
    return _read("projection_tables1_3_celeba.csv").set_index("model")


def real_network_classes():
    """Class by class what 25 real CIFAR-10 networks do, 250 rows; columns as studies.real_networks.evidence says.

    Our own measurement, made anew by `studies/audit_real_networks.py`.
    """
    return _read("real_networks.csv")


def real_network_measurements():
    """Further numbers of the same audits, a mapping as studies.real_networks.measurements returns it."""
    return json.loads(resources.files(__name__).joinpath("real_networks.json").read_text(encoding="utf-8"))


def _read(name, package=__name__):
    # A copy, which the reader may change.
    return _table(name, package).copy()


@cache
def _table(name, package):
    with resources.files(package).joinpath(name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
