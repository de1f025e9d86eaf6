"""Claims of the class-wise robustness analysis paper."""

import math

import numpy as np

from gfscore.audit.classwise.confusion import class_errors
from studies.reproduction.claims import Claim, verdict
from studies.reproduction.real_networks import accuracy, count, counts_note, per_network

PAPER = "Class-wise analysis"
CLASSES = 10
WEAK = ("bird", "deer", "dog")
"""Classes that the paper calls weak."""


def one_vs_rest_accuracy(confusion):
    """CWA as printed, (TP + TN) / N of each class, from confusion counts (K, K), rows true (Eq. 2)."""
    return class_errors(confusion, confusion.sum(axis=1))["one_vs_rest_accuracy"].to_numpy()


def false_positive_share(confusion):
    """CFPS, the share of all errors that land in each class, (K,) (Eq. 1)."""
    return class_errors(confusion, confusion.sum(axis=1))["cfps"].to_numpy()


def class_never_recognised():
    """Confusion counts (10, 10), 99 samples per class: class 0 always mistaken, evenly; the other classes right."""
    confusion = 99 * np.eye(CLASSES, dtype=int)
    confusion[0] = 11
    confusion[0, 0] = 0
    return confusion


def random_confusions(count=200):
    """Confusion counts of `count` random classifiers of ten classes, accuracy about 0.8."""
    rng = np.random.default_rng(0)
    favour_the_diagonal = (np.ones((CLASSES, CLASSES)) + 35 * np.eye(CLASSES)).ravel()
    shares = rng.dirichlet(favour_the_diagonal / CLASSES, size=count)
    return rng.multinomial(1000, shares).reshape(-1, CLASSES, CLASSES)


def smallest_excess_over_accuracy():
    """Smallest difference between any class's CWA and the overall accuracy, over random classifiers."""
    return min(float(one_vs_rest_accuracy(c).min() - np.trace(c) / c.sum()) for c in random_confusions())


def largest_error_of_mean():
    """Largest deviation of the mean CWA from 1 - 2 err / K, over random classifiers."""
    errors = []
    for confusion in random_confusions():
        share_of_errors = 1 - np.trace(confusion) / confusion.sum()
        mean = float(one_vs_rest_accuracy(confusion).mean())
        errors.append(abs(mean - (1 - 2 * share_of_errors / CLASSES)))
    return max(errors)


def largest_error_of_sum():
    """Largest deviation of the sum of CFPS over classes from 1, over random classifiers."""
    return max(abs(float(false_positive_share(c).sum()) - 1) for c in random_confusions())


def classes_below_accuracy(column):
    """Over all classes of the 25 real networks, how many have a value of `column` below the network's accuracy."""
    below, _ = per_network(lambda classes: int((classes[column] < accuracy(classes) - 1e-6).sum()))
    return sum(below)


def networks_with_recall_below_accuracy(name):
    """On how many real networks the recall of a class is below the network's accuracy, in words."""
    _, _, words = count(lambda classes: classes.loc[name, "recall"] < accuracy(classes))
    return words


def claims():
    """Claims of the paper, in its order."""
    confusion = class_never_recognised()
    accuracies = one_vs_rest_accuracy(confusion)
    lost = accuracies[0]
    recall = confusion[0, 0] / confusion[0].sum()
    excess = smallest_excess_over_accuracy()
    mean_holds = largest_error_of_mean() < 1e-12
    sum_holds = largest_error_of_sum() < 1e-12
    recalls = ", ".join(f"{name} {networks_with_recall_below_accuracy(name)}" for name in WEAK)
    return [
        Claim(
            "CW1",
            PAPER,
            "CFPS divides the errors among the classes that they land in (Eq. 1).",
            "sums to 1",
            "sums to 1" if sum_holds else "does not sum to 1",
            verdict(sum_holds),
            "Checked on 200 random classifiers; undefined for a classifier without errors.",
        ),
        Claim(
            "CW2",
            PAPER,
            "CWA, (TP + TN) / N, is the accuracy of a class (Eq. 2).",
            "accuracy of the class",
            f"{lost:.3f} for a class never recognised (recall {recall:.1f}); mean over classes {accuracies.mean():.3f}"
            + (" = 1 - 2 err / K" if mean_holds else ", not 1 - 2 err / K"),
            verdict(math.isclose(lost, recall)),
            "Ten equal classes. The formula is the accuracy of one class against the rest: true negatives of the other "
            "nine dominate it. What is usually meant, and compared with earlier work, is recall.",
        ),
        Claim(
            "CW3",
            PAPER,
            "Bird, deer and dog have a CWA below the model's overall accuracy, hence are weak (section 3, Figure 1).",
            "some class below the average line",
            f"CWA below accuracy: {classes_below_accuracy('cwa')} of 250 classes of real networks; recall below it: "
            f"{recalls}",
            verdict(excess < 0),
            "By Eq. 2 no class can lie below the overall accuracy, since an error counts at most once against a class "
            f"(smallest CWA - accuracy of 200 random classifiers {excess:+.3f}). The figure must show recall, by which "
            f"cat is below in {networks_with_recall_below_accuracy('cat')} networks. " + counts_note("all"),
        ),
    ]
