"""Claims of the class-wise robustness analysis paper."""

import math

import numpy as np

from gfscore.audit.classwise.confusion import class_errors
from studies.reproduction.claims import Claim, untestable, verdict

PAPER = "Class-wise analysis"
CLASSES = 10
COSINES = (0.76, 0.83)
"""Range of the cosine similarities that the paper prints."""


def one_vs_rest_accuracy(confusion):
    """CWA as printed, (TP + TN) / N of each class, from confusion counts (K, K), rows true (Eq. 2)."""
    return class_errors(confusion, confusion.sum(axis=1)).one_vs_rest_accuracy


def false_positive_share(confusion):
    """CFPS, the share of all errors that land in each class, (K,) (Eq. 1)."""
    return class_errors(confusion, confusion.sum(axis=1)).cfps


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
    return max(
        abs(float(one_vs_rest_accuracy(c).mean()) - (1 - 2 * (1 - np.trace(c) / c.sum()) / CLASSES))
        for c in random_confusions()
    )


def largest_error_of_sum():
    """Largest deviation of the sum of CFPS over classes from 1, over random classifiers."""
    return max(abs(float(false_positive_share(c).sum()) - 1) for c in random_confusions())


def cosine_of_unrelated_vectors(draws=10_000):
    """Mean cosine of two independent vectors of ten numbers uniform on [0, 1]."""
    first, second = np.random.default_rng(0).random((2, draws, CLASSES))
    return float(np.mean((first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)))


def claims():
    """Claims of the paper, in its order."""
    confusion = class_never_recognised()
    lost, mean = one_vs_rest_accuracy(confusion)[0], one_vs_rest_accuracy(confusion).mean()
    recall = confusion[0, 0] / confusion[0].sum()
    excess = smallest_excess_over_accuracy()
    mean_holds, sum_holds = largest_error_of_mean() < 1e-12, largest_error_of_sum() < 1e-12
    unrelated = cosine_of_unrelated_vectors()
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
            f"{lost:.3f} for a class never recognised (recall {recall:.1f}); mean over classes {mean:.3f}"
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
            f"smallest CWA - accuracy over 200 random classifiers: {excess:+.3f}",
            verdict(excess < 0),
            "By Eq. 2 no class can lie below the overall accuracy, since an error counts at most once against a class. "
            "The figure must show recall, not Eq. 2.",
        ),
        untestable(
            "CW4",
            PAPER,
            "Cosines of 0.76 to 0.83 between models show that their class-wise predictions are alike (Figure 7).",
            "{:.2f} to {:.2f}".format(*COSINES),
            "The paper does not say which vectors are compared. Vectors without negative entries have high cosines "
            "anyway: our number is the mean for unrelated vectors of ten uniform numbers.",
            ours=f"{unrelated:.2f} for unrelated vectors",
        ),
        untestable(
            "CW5",
            PAPER,
            "Cat and airplane attract most errors, and bird, deer and dog few, for every architecture (Figure 2).",
            "figure",
            "It needs the paper's six CIFAR-10 networks, one of them a DINOv2; the paper prints no numbers.",
        ),
        untestable(
            "CW6",
            PAPER,
            "Weak classes and the class with most false positives stay the same under common corruptions (Figure 3).",
            "figure",
            "It needs the networks and CIFAR-10-C.",
        ),
        untestable(
            "CW7",
            PAPER,
            "Under PGD (8/255, 20 steps) deer is recognised least and errors gather in cat (Figure 4).",
            "figure",
            "It needs the networks and attacks on them.",
        ),
        untestable(
            "CW8",
            PAPER,
            "Targeted PGD (2/255, 20 steps) succeeds more often towards cat than towards deer (Figures 5 and 6).",
            "figure",
            "It needs the networks and attacks on them, and a definition: the success rate may be a share of all "
            "samples, of misclassified ones, or an increase over the clean rate.",
        ),
        untestable(
            "CW9",
            PAPER,
            "The number of false positives of a class significantly affects how easily attacks reach it (abstract).",
            "significantly",
            "The paper prints no statistic, and it takes the networks. Seen on nine digit models, the demo's and two "
            "more: Spearman over ten classes between CFPS and the share of samples turned into the class, beside "
            "0.16 to 0.75 with 1 - recall. CFPS predicts better for 6 of 9 models, but for 3 of 9 where the "
            "undisturbed rate is subtracted, without which both sides count the same false positives.",
            ours="0.46 to 0.94 on digits",
        ),
    ]
