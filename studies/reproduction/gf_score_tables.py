"""Numbers that follow from the GF-Score paper's printed tables and the RobustBench leaderboard."""

from functools import partial

import numpy as np

from gfscore.audit.metrics import METRICS
from gfscore.statistics.classes import worst_classes
from gfscore.statistics.ranking import every_order, share_of_orders, spearman
from studies.reference import THREAT_OF, gf_score_table3, gf_score_table4, gf_score_table5, robustbench_leaderboard

LAMBDA = 0.5
"""Penalty weight of the paper's FP column."""

NOT_CLASSES = ("paper_name", "aggregate")

DISPARITY = {
    column: partial(METRICS[name].compute, lam=LAMBDA)
    for column, name in {"rdi": "rdi", "nrgc": "nrgc", "wcr": "wcr", "fp_great": "fp"}.items()
}
"""Column of Table 3 -> function of the ten class scores."""


def scores_table(dataset):
    """Table 3 for "cifar10", Table 4 for "imagenet"."""
    return {"cifar10": gf_score_table3, "imagenet": gf_score_table4}[dataset]()


def class_scores():
    """Class scores printed in Table 5, data frame (17 models, 10 classes)."""
    return gf_score_table5().drop(columns=list(NOT_CLASSES))


def leaderboard(dataset):
    """Leaderboard rows of the paper's models, in the order of its table."""
    return robustbench_leaderboard(dataset, THREAT_OF[dataset]).loc[scores_table(dataset).index]


def rank_agreement(dataset, first, second):
    """Spearman over models between two columns: those of the table, or clean_accuracy_pct of the leaderboard.

    With great_score or great_score_calibrated against clean_accuracy_pct this is the objective of Eq. 8.
    """
    table = scores_table(dataset).join(leaderboard(dataset)["clean_accuracy_pct"])
    return float(spearman(table[first], table[second]))


def rank_agreement_in_families(first, second):
    """Spearman between the same columns within each family of two or more of the 17 CIFAR-10 models: name -> rho.

    A family is what one first author published.
    """
    table = scores_table("cifar10").join(leaderboard("cifar10")["clean_accuracy_pct"])
    families = table.groupby(table.index.str.extract("([A-Za-z]+)", expand=False).to_numpy())
    agreements = {}
    for name, models in families:
        if len(models) > 1:
            agreements[name] = float(spearman(models[first], models[second]))
    return agreements


def rank_agreement_with_relative_range():
    """Spearman over the 17 CIFAR-10 models between score and RDI / mean, the range without the score's scale."""
    relative = [METRICS["rdi_over_mean"].compute(row) for row in class_scores().to_numpy()]
    return float(spearman(gf_score_table3()["great_score"], relative))


def exact_p_value(rho, *, models):
    """Two-sided p-value of Spearman's rho of a few models without ties, by all their orders."""
    untied = np.arange(models)
    return share_of_orders(untied, untied, every_order(models), rho)


def disparity_difference(column):
    """Largest difference over 17 models between a disparity column of Table 3 and its value from Table 5."""
    recomputed = np.array([DISPARITY[column](row) for row in class_scores().to_numpy()])
    return float(np.abs(recomputed - gf_score_table3()[column].to_numpy()).max())


def tied_worst_classes():
    """Worst classes of each model by Table 5, every tie included: model -> list of class names."""
    scores = class_scores()
    names = np.array(scores.columns)
    worst = {}
    for model, row in zip(scores.index, scores.to_numpy(), strict=True):
        worst[model] = list(names[worst_classes(row)])
    return worst


def models_whose_worst_class_agrees():
    """Number of models whose worst class of Table 3 is among the worst classes of Table 5."""
    printed = gf_score_table3()["wcr_class"]
    return sum(printed[model] in worst for model, worst in tied_worst_classes().items())


def times_worst(dataset, class_name):
    """Number of models for which the table prints this worst class."""
    return int((scores_table(dataset)["wcr_class"] == class_name).sum())


def times_best():
    """How many models have each class as their best one by Table 5, a tie counting for every class in it."""
    scores = class_scores()
    counts = scores.eq(scores.max(axis=1), axis=0).sum()
    return {name: int(count) for name, count in counts.items() if count}


def aggregate_difference():
    """Largest difference over 17 models between the mean of Table 5's class scores and its printed aggregate."""
    return float((class_scores().mean(axis=1) - gf_score_table5()["aggregate"]).abs().max())


def robust_accuracy_difference():
    """Largest difference, in percentage points, of the paper's robust accuracies from the leaderboard, 22 models."""
    differences = []
    for dataset in THREAT_OF:
        printed = scores_table(dataset)["robust_accuracy_pct"]
        listed = leaderboard(dataset)["autoattack_accuracy_pct"]
        differences.append((printed - listed).abs().max())
    return float(max(differences))


def place(model, column):
    """Place of a CIFAR-10 model in a column of Table 3, 1 for the largest value, ties sharing the average place."""
    return float(gf_score_table3()[column].rank(ascending=False)[model])


def penalty_difference():
    """Largest difference between Table 4's FP column and score minus half its RDI (classes have equal size there)."""
    table = gf_score_table4()
    return float((table["great_score"] - LAMBDA * table["rdi"] - table["fp_great"]).abs().max())
