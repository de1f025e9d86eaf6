"""Claims of the projection-fairness paper."""

import itertools

import numpy as np

from gfscore.projection.scores import deviation, tolerance
from gfscore.statistics.ranking import spearman
from studies.reference import projection_tables
from studies.reproduction.claims import Claim, untestable, verdict

PAPER = "Projection fairness"
TASKS = ("Attractive", "Eyeglasses")
STEPS = 20
"""M, the number of perturbation steps."""


def formula_violations():
    """How many pairs of first changes, on the paper's grid of 20 steps, break Dev <= 1 - Tol; `(violations, pairs)`."""
    shares = np.arange(STEPS + 1) / STEPS
    violations = 0
    for up, down in itertools.product(shares, shares):
        violations += bool(deviation(up, down) > 1 - tolerance(up, down) + 1e-12)
    return violations, len(shares) ** 2


def largest_distance_from_half_tolerance():
    """Largest |Dev - Tol / 2| over the 48 printed cells, in percentage points."""
    table = projection_tables()
    return float((table["deviation"] - table["tolerance"] / 2).abs().max())


def cells_within_formula():
    """Printed cells with Dev <= 100 - Tol, read as printed and read reversed (100 minus what is printed)."""
    table = projection_tables()
    room = 100 - table["tolerance"]
    return int((table["deviation"] <= room).sum()), int((100 - table["deviation"] <= room).sum())


def rank_agreement(task, first, second):
    """Spearman over the 24 models between two printed columns of a task."""
    table = projection_tables()
    table = table[table["task"] == task]
    return float(spearman(table[first], table[second]))


def models_with_equal(task, first, second):
    """Models whose two printed columns are equal, and the number of models."""
    table = projection_tables()
    table = table[table["task"] == task]
    return int((table[first] == table[second]).sum()), len(table)


def printed_tolerance(up, down, sigma):
    """Tol of one attribute as printed, (a+ - a-) / sigma, from the two boundaries, `down` at most 0."""
    return (up - down) / sigma


def printed_deviation(up, down, center):
    """Dev of one attribute as printed, |(a+ + a-) / 2 - mu|, in the units of the latent variable."""
    return abs((up + down) / 2 - center)


def columns_with_an_end():
    """Printed columns (task and metric) that hold a 0 or a 100, and the number of columns."""
    metrics = ["dp", "eopp", "eodd", "tolerance", "deviation"]
    columns = projection_tables().groupby("task")[metrics]
    lowest = columns.min()
    highest = columns.max()
    at_an_end = (lowest <= 0) | (highest >= 100)
    return int(at_an_end.to_numpy().sum()), lowest.size


def printed_equalized_odds(true_positive_rates, false_positive_rates):
    """EOdd by Eq. 4 as printed: the largest of the four rates of two groups; 0 is meant to be fair."""
    return float(max(*true_positive_rates, *false_positive_rates))


def printed_average_odds(true_positive_rates, false_positive_rates):
    """AOdd by Eq. 5 as printed: the mean of the four rates of two groups; 0 is meant to be fair."""
    return float(np.mean([*true_positive_rates, *false_positive_rates]))


def printed_coupling(tolerances):
    """Cou as printed, -sum P log P with P = 1 - Tol / max Tol and 0 log 0 = 0."""
    share = 1 - np.asarray(tolerances) / np.max(tolerances)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum()) + 0.0


def claims():
    """Claims of the paper, by subject."""
    return [*_tolerance_and_deviation(), *_other_metrics(), *_consistency(), *_needing_models(), *_as_printed()]


def _tolerance_and_deviation():
    distance = largest_distance_from_half_tolerance()
    violations, pairs = formula_violations()
    as_printed, reversed_ = cells_within_formula()
    agreement = [rank_agreement(task, "tolerance", "deviation") for task in TASKS]
    of_tolerance = []
    of_label_statistics = []
    for task in TASKS:
        of_tolerance.append(abs(rank_agreement(task, "accuracy", "tolerance")))
        statistics = [abs(rank_agreement(task, "accuracy", column)) for column in ("dp", "eopp", "eodd")]
        of_label_statistics.append(max(statistics))
    less_dependent = all(np.less(of_tolerance, of_label_statistics))
    constant = 100 * tolerance(1.0, 1.0)
    return [
        Claim(
            "PF1",
            PAPER,
            "Deviation measures another property than Tolerance (section 5.2; printed values in Tables 1 and 3).",
            "two metrics",
            f"|Dev - Tol / 2| at most {distance:.2f} percentage points in all 48 cells",
            verdict(distance > 1),
            "Almost nothing is left for Dev to say once Tol is known.",
        ),
        Claim(
            "PF2",
            PAPER,
            "The printed Deviation follows its formula, half the asymmetry of the two bounds (section 5.2).",
            "48 cells",
            f"{as_printed} of 48 cells possible as printed, {reversed_} of 48 if printed as 100 - Dev",
            verdict(as_printed == 48 or reversed_ == 48),
            f"In units of sigma the formula implies Dev <= 1 - Tol ({violations} exceptions in {pairs} pairs of "
            "bounds), so a mean Tol of 93 leaves at most 7 for Dev, not 47.",
        ),
        Claim(
            "PF3",
            PAPER,
            "Tolerance and Deviation rank models alike (section 6.1, Figure 5a).",
            "similar rankings",
            f"Spearman {agreement[0]:.3f} (Attractive), {agreement[1]:.3f} (Eyeglasses)",
            verdict(min(agreement) > 0.8),
            "A consequence of PF1, not evidence for either metric.",
        ),
        Claim(
            "PF4",
            PAPER,
            "Perturbation makes the evaluation less dependent on a model's accuracy than label statistics are "
            "(appendix A.2).",
            "less dependent",
            f"Size of Spearman with accuracy: Tol {of_tolerance[0]:.3f} and {of_tolerance[1]:.3f}; "
            f"strongest of DP, EOpp, EOdd {of_label_statistics[0]:.3f} and {of_label_statistics[1]:.3f}",
            verdict(less_dependent),
            "Attractive, then Eyeglasses. The less accurate a model, the higher its Tolerance; a classifier that "
            f"always gives the same answer reaches Tolerance {constant:.0f}.",
        ),
    ]


def _as_printed():
    untouched = printed_tolerance(3.0, -3.0, 3.0)
    one_sided = printed_deviation(3.0, 0.0, 0.0)
    ends, columns = columns_with_an_end()
    return [
        Claim(
            "PF12",
            PAPER,
            "Tolerance and Deviation, by the formulas of section 5.2, range from 0 to 1 (section 6).",
            "0 to 1",
            f"with sigma = 3: Tol {untouched:.0f} where no move changes the prediction, Dev {one_sided:.1f} where only "
            "one side does",
            verdict(max(untouched, one_sided) <= 1),
            "Tol lacks a factor 1/2, and Dev is not divided by sigma, so it depends on the units of the latent "
            "variable. This package computes both with these mended, and PF2 takes them so too.",
        ),
        untestable(
            "PF13",
            PAPER,
            "Metrics are reversed where needed, min-max normalised and scaled to 0 to 100 (sections 3.1 and 6).",
            "0 to 100",
            "The paper does not say over what it normalises. Over the models of a column it cannot be, where the worst "
            "would have 0 and the best 100: Tolerance for Attractive runs from 93.06 to 95.95. The 0 to 100 that this "
            "package shows is our reading, over the models of an audit.",
            ours=f"{ends} of {columns} columns hold a 0 or a 100",
        ),
    ]


def _other_metrics():
    true_positive_rates = (1.0, 1.0)
    false_positive_rates = (0.0, 0.0)
    odds = printed_equalized_odds(true_positive_rates, false_positive_rates)
    average = printed_average_odds(true_positive_rates, false_positive_rates)
    balanced = printed_coupling([0.9] * 40)
    unbalanced = printed_coupling([0.0] + [1.0] * 39)
    between = printed_coupling([0.6] * 20 + [1.0] * 20)
    return [
        Claim(
            "PF5",
            PAPER,
            "Eqs. 4 and 5 measure unequal error rates between groups: 0 when they are equal (appendix A.1).",
            "0 and 0 for a perfect classifier",
            f"EOdd {odds:.0f}, AOdd {average:.1f}",
            verdict(odds == average == 0),
            "As printed, the formulas contain no difference between the groups.",
        ),
        Claim(
            "PF6",
            PAPER,
            "Coupling is the higher, the more unequal the influence of the attributes (section 5.2).",
            "low when equal, high when unequal",
            f"{balanced:.0f} when equal, {unbalanced:.0f} when one attribute has all the influence, {between:.1f} in "
            "between",
            verdict(unbalanced > between > balanced),
            "40 attributes. P is not a distribution, and P log P vanishes at 0 and at 1.",
        ),
    ]


def _consistency():
    equal, models = models_with_equal("Eyeglasses", "dp", "eopp")
    near, _ = models_with_equal("Eyeglasses", "dp", "eodd")
    return [
        Claim(
            "PF7",
            PAPER,
            "For Eyeglasses, DP nearly coincides with EOdd and differs clearly from EOpp (section 3.2, Figure 1).",
            "DP near EOdd",
            f"DP = EOpp in {equal} of {models} rows of Tables 1 and 3, DP = EOdd in {near}",
            verdict(equal == 0),
            "The tables say the opposite of the text. Two different statistics that agree to two decimals for every "
            "model cast doubt on one of the columns.",
        ),
        Claim(
            "PF8",
            PAPER,
            "24 classifiers were evaluated (abstract, section 6).",
            "24",
            f"{models} rows in Tables 1 and 3",
            verdict(models == 24),
            "Section 6.1 says 15.",
        ),
    ]


def _needing_models():
    return [
        untestable(
            "PF9",
            PAPER,
            "All printed accuracies, fairness scores and couplings on CelebA (Tables 1 to 3).",
            "294 numbers",
            "They need CelebA, 24 trained classifiers, a beta-VAE and a conditional generator; the dimension of the "
            "latent space is not printed.",
        ),
        untestable(
            "PF10",
            PAPER,
            "Tolerance finds the attributes that people find related, where label statistics do not (Figures 5 to 7).",
            "figures",
            "It needs the same models and a panel of people.",
        ),
    ]
