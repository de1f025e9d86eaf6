"""Claims of the class-wise robustness analysis paper that take networks, on those at hand."""

from itertools import product

import numpy as np

from gfscore.statistics.ranking import spearman
from studies.real_networks.statistics import lowest, mean_over_families
from studies.reproduction.claims import Claim, verdict
from studies.reproduction.classwise_analysis import CLASSES, PAPER, WEAK
from studies.reproduction.real_networks import (
    CHECKPOINTS,
    TARGETED,
    class_order,
    count,
    counts_note,
    families_of,
    interval_words,
    last,
    mean,
    means_note,
    measurement,
    networks,
    per_network,
)

COSINES = (0.76, 0.83)
"""Range of the cosine similarities that the paper prints."""

EXACT_NETWORKS = 16
"""Largest number of networks whose signs (2^16) are enumerated."""

MOST = 0.9
"""Share of comparisons from which on something "stays the same"."""


def cosine_of_unrelated_vectors(draws=10_000):
    """Mean cosine of two independent vectors of ten numbers uniform on [0, 1]."""
    first, second = np.random.default_rng(0).random((2, draws, CLASSES))
    products = (first * second).sum(1)
    cosines_of_draws = products / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return float(np.mean(cosines_of_draws))


def miss_rate_order(definition):
    """Function of one network's classes: Spearman's rho of 1 - recall with a definition of targeted success."""
    return lambda classes: float(spearman(1 - classes["recall"], classes[f"target_{definition}"]))


def predictors_of_targeted_success(definition):
    """Rho over classes of CFPS and of 1 - recall with targeted success, and their difference.

    Returns
    -------
    by_cfps, by_miss_rate, difference : (float, float, float)
        Means over networks, with intervals.
    p : float
        Of a sign-flip test of the difference over networks, as if they were independent.
    """
    by_cfps, families = per_network(class_order("cfps", f"target_{definition}"), TARGETED)
    by_miss, _ = per_network(miss_rate_order(definition), TARGETED)
    difference = np.subtract(by_cfps, by_miss)
    means = [mean_over_families(values, families) for values in (by_cfps, by_miss, difference)]
    return *means, sign_flip_p(difference)


def sign_flip_p(differences, *, seed=0, draws=9999):
    """Two-sided p-value of the mean of differences (M,), in (0, 1], by a sign-flip test; NaN are left out, NaN of none.

    Exact for up to EXACT_NETWORKS; for more, `draws` random sign vectors with `seed` are used, with the observed signs
    included. The null hypothesis is that the differences are symmetric about 0. At least 2 / 2^M.
    # ASSUME: networks are independent, which does not hold for those of one family or training set.
    """
    differences = np.asarray(differences, dtype=np.float64)
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if n == 0:
        return np.nan
    if n <= EXACT_NETWORKS:
        signs = np.array(list(product((1.0, -1.0), repeat=n)))
    else:
        drawn = np.random.default_rng(seed).choice(np.array([1.0, -1.0]), size=(draws, n))
        signs = np.vstack([np.ones(n), drawn])
    means = signs @ differences / n
    return float(np.mean(np.abs(means) >= abs(means[0]) - 1e-12))


def claims():
    """Claims of the paper, in its order."""
    return [cosines(), attracted_errors(), under_corruptions(), under_attack(), towards_cat(), vulnerability()]


def cosines():
    """CW4: what a high cosine shows."""
    confusions = measurement("similarities", measure="clean", similarity="confusion_cosine").set_index("audit")
    errors = measurement("similarities", measure="clean", similarity="error_cosine").set_index("audit")
    audits = ["published-logits", "real-checkpoints"]
    published = confusions.loc[audits[0]]
    checkpoints = confusions.loc[audits[1]]
    alike = [interval_words(errors.loc[audit, "median"]) for audit in audits]
    permuted = [interval_words(errors.loc[audit, "permuted"]) for audit in audits]
    return Claim(
        "CW4",
        PAPER,
        "Cosines of 0.76 to 0.83 between models show that their class-wise predictions are alike (Figure 7).",
        "{:.2f} to {:.2f}".format(*COSINES),
        f"confusions: median {interval_words(published['median'], decimals=4)}, under permuted classes "
        f"{interval_words(published['permuted'], decimals=4)}; checkpoints {interval_words(checkpoints['median'])}, "
        f"{interval_words(checkpoints['permuted'])}; unrelated vectors {cosine_of_unrelated_vectors():.2f}",
        verdict(published["permuted"][1] < COSINES[0]),
        "A high cosine says nothing: vectors without negative entries have one anyway, and confusions with renamed "
        f"classes reach more than the paper's. Without the diagonal the median is {alike[0]}, permuted {permuted[0]}, "
        f"and {alike[1]}, permuted {permuted[1]}: the networks do err alike. Medians are over all pairs, "
        f"{published['pairs']} and {checkpoints['pairs']}, which range from {published['low']:.4f} to "
        f"{published['high']:.4f} and from {checkpoints['low']:.2f} to {checkpoints['high']:.2f}; the paper does not "
        "say which vectors it compares. " + means_note("all"),
    )


def attracted_errors():
    """CW5: which classes errors land in."""
    cat_and_airplane = count(lambda classes: set(classes["cfps"].nlargest(2, keep="all").index) == {"cat", "airplane"})
    cat_first = last("cat", "cfps", sign=-1)
    few_errors = []
    for name in WEAK:
        _, _, words = count(lambda classes, name=name: classes.loc[name, "cfps"] < 1 / CLASSES)
        few_errors.append(f"{name} {words}")
    return Claim(
        "CW5",
        PAPER,
        "Cat and airplane attract most errors, and bird, deer and dog few, for every architecture (Figure 2).",
        "figure",
        f"cat alone first in {cat_first[2]}, cat and airplane first and second in {cat_and_airplane[2]}; CFPS below "
        f"1 / K: {', '.join(few_errors)}",
        verdict(cat_and_airplane[0] == cat_and_airplane[1]),
        "Undisturbed images, as in the figure. " + counts_note("all"),
    )


def under_corruptions():
    """CW6: whether weak and sought-after classes stay the same on corrupted images."""
    rows = measurement("corruptions")
    families = families_of(rows["model"])
    shares = {name: mean_over_families(rows[name], families) for name in rows.columns.drop("model")}
    return Claim(
        "CW6",
        PAPER,
        "Weak classes and the class with most false positives stay the same under common corruptions (Figure 3).",
        "figure",
        f"weakest class the same in a share of {interval_words(shares['weakest'])}, class of most false positives "
        f"{interval_words(shares['most_reached'])}; rho over classes with the undisturbed ones: recall "
        f"{interval_words(shares['recall_order'])}, CFPS {interval_words(shares['cfps_order'])}",
        verdict(min(shares["weakest"][0], shares["most_reached"][0]) >= MOST),
        f"Shares of (network, corruption); reproduced would be {MOST:.0%} or more. Undisturbed classes are those of "
        "the same images. Of classes that tie, one that stays is enough; all stay in "
        f"{interval_words(shares['all_weakest'])} and {interval_words(shares['all_most_reached'])}. "
        + means_note("corrupted"),
    )


def under_attack():
    """CW7: which class is recognised least under attack, and where the errors land."""
    table = networks(CHECKPOINTS)
    recall = sum(classes["attacked_recall"] for classes in table.values()) / len(table)
    cfps = sum(classes["attacked_cfps"] for classes in table.values()) / len(table)
    deer = last("deer", "attacked_recall", CHECKPOINTS)
    weakest_cat = last("cat", "attacked_recall", CHECKPOINTS)
    cat = last("cat", "attacked_cfps", CHECKPOINTS, sign=-1)
    ties = [len(lowest(classes["attacked_recall"])) for classes in table.values()]
    several = [number for number in ties if number > 1]
    return Claim(
        "CW7",
        PAPER,
        "Under PGD (8/255, 20 steps) deer is recognised least and errors gather in cat (Figure 4).",
        "figure",
        f"mean over networks: {recall.idxmin()} recognised least, most errors in {cfps.idxmax()}; deer alone least in "
        f"{deer[2]}, cat alone least in {weakest_cat[2]}, most errors in cat alone in {cat[2]}",
        verdict(recall.idxmin() == "deer" and cfps.idxmax() == "cat"),
        "At 2/255, which the robust ones among them were trained for: they are far smaller than those of the paper. "
        f"{len(several)} of {len(ties)}, the ResNets, have {min(several)} or {max(several)} classes of which no image "
        "is recognised any more. " + counts_note("attacked"),
    )


def towards_cat():
    """CW8: whether targeted attacks reach cat more often than deer."""
    difference = {}
    for definition in ("success", "excess", "among_misclassified"):
        column = f"target_{definition}"

        def lead_of_cat(classes, column=column):
            return classes.loc["cat", column] - classes.loc["deer", column]

        difference[definition] = mean(lead_of_cat, TARGETED)
    more = count(lambda classes: classes.loc["cat", "target_success"] > classes.loc["deer", "target_success"], TARGETED)
    return Claim(
        "CW8",
        PAPER,
        "Targeted PGD (2/255, 20 steps) succeeds more often towards cat than towards deer (Figures 5 and 6).",
        "figure",
        f"cat more often in {more[2]}; cat minus deer {interval_words(difference['success'], '+')} of all samples, "
        f"{interval_words(difference['excess'], '+')} beyond the undisturbed rate, "
        f"{interval_words(difference['among_misclassified'], '+')} of those misclassified",
        verdict(difference["success"][1] > 0),
        "The paper does not say which of the three it means. The count's interval is Clopper-Pearson's. "
        + means_note(TARGETED),
    )


def vulnerability():
    """CW9: whether the false positives of a class say how easily attacks reach it."""
    success = predictors_of_targeted_success("success")
    excess = predictors_of_targeted_success("excess")
    return Claim(
        "CW9",
        PAPER,
        "The number of false positives of a class significantly affects how easily attacks reach it (abstract).",
        "significantly",
        f"rho over classes {interval_words(success[0])} with CFPS, {interval_words(success[1])} with 1 - recall; with "
        f"the success beyond the undisturbed rate {interval_words(excess[0])} and {interval_words(excess[1])}",
        verdict(excess[0][1] > 0),
        "The paper prints no statistic. An association, no effect. Without the undisturbed rate subtracted, both sides "
        f"count the same false positives. CFPS less 1 - recall: {interval_words(success[2], '+')} (sign-flip p = "
        f"{success[3]:.3f}) and {interval_words(excess[2], '+')} (p = {excess[3]:.3f}); [Findings](findings.md) has "
        "more. " + means_note(TARGETED),
    )
