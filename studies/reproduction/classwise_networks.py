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
    averaged,
    class_order,
    count,
    counted,
    families_of,
    in_words,
    last,
    mean,
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
    return float(np.mean((first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)))


def miss_rate_order(definition):
    """Function of one network's classes: Spearman's rho of 1 - recall with a definition of targeted success."""
    return lambda own: float(spearman(1 - own["recall"], own[f"target_{definition}"]))


def predictors_of_targeted_success(definition):
    """Rho of CFPS and of 1 - recall with targeted success, and their difference: three `(value, low, high)`, and p.

    p is of a sign-flip test of the difference over networks, as if they were independent.
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
    known = np.asarray(differences, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return np.nan
    if len(known) <= EXACT_NETWORKS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(known))))
    else:
        drawn = np.random.default_rng(seed).choice(np.array([1.0, -1.0]), size=(draws, len(known)))
        signs = np.vstack([np.ones(len(known)), drawn])
    means = signs @ known / len(known)
    return float(np.mean(np.abs(means) >= abs(means[0]) - 1e-12))


def claims():
    """Claims of the paper, in its order."""
    return [cosines(), attracted_errors(), under_corruptions(), under_attack(), towards_cat(), vulnerability()]


def cosines():
    """CW4: what a high cosine shows."""
    confusions, errors = (
        measurement("similarities", measure="clean", similarity=name).set_index("audit")
        for name in ("confusion_cosine", "error_cosine")
    )
    published, checkpoints = (confusions.loc[audit] for audit in ("published-logits", "real-checkpoints"))
    alike = [in_words(errors.loc[own.name, "median"]) for own in (published, checkpoints)]
    permuted = [in_words(errors.loc[own.name, "permuted"]) for own in (published, checkpoints)]
    return Claim(
        "CW4",
        PAPER,
        "Cosines of 0.76 to 0.83 between models show that their class-wise predictions are alike (Figure 7).",
        "{:.2f} to {:.2f}".format(*COSINES),
        f"confusions: median {in_words(published['median'], decimals=4)}, under permuted classes "
        f"{in_words(published['permuted'], decimals=4)}; checkpoints {in_words(checkpoints['median'])}, "
        f"{in_words(checkpoints['permuted'])}; unrelated vectors {cosine_of_unrelated_vectors():.2f}",
        verdict(published["permuted"][1] < COSINES[0]),
        "A high cosine says nothing: vectors without negative entries have one anyway, and confusions with renamed "
        f"classes reach more than the paper's. Without the diagonal the median is {alike[0]}, permuted {permuted[0]}, "
        f"and {alike[1]}, permuted {permuted[1]}: the networks do err alike. Medians are over all pairs, "
        f"{published['pairs']} and {checkpoints['pairs']}, which range from {published['low']:.4f} to "
        f"{published['high']:.4f} and from {checkpoints['low']:.2f} to {checkpoints['high']:.2f}; the paper does not "
        "say which vectors it compares. " + averaged("all"),
    )


def attracted_errors():
    """CW5: which classes errors land in."""
    both = count(lambda own: set(own["cfps"].nlargest(2, keep="all").index) == {"cat", "airplane"})
    top = last("cat", "cfps", sign=-1)
    few = {name: count(lambda own, name=name: own.loc[name, "cfps"] < 1 / CLASSES)[2] for name in WEAK}
    return Claim(
        "CW5",
        PAPER,
        "Cat and airplane attract most errors, and bird, deer and dog few, for every architecture (Figure 2).",
        "figure",
        f"cat alone first in {top[2]}, cat and airplane first and second in {both[2]}; CFPS below 1 / K: "
        + ", ".join(f"{name} {words}" for name, words in few.items()),
        verdict(both[0] == both[1]),
        "Undisturbed images, as in the figure. " + counted("all"),
    )


def under_corruptions():
    """CW6: whether weak and sought-after classes stay the same on corrupted images."""
    rows = measurement("corruptions")
    found = {name: mean_over_families(rows[name], families_of(rows["model"])) for name in rows.columns.drop("model")}
    return Claim(
        "CW6",
        PAPER,
        "Weak classes and the class with most false positives stay the same under common corruptions (Figure 3).",
        "figure",
        f"weakest class the same in a share of {in_words(found['weakest'])}, class of most false positives "
        f"{in_words(found['most_reached'])}; rho over classes with the undisturbed ones: recall "
        f"{in_words(found['recall_order'])}, CFPS {in_words(found['cfps_order'])}",
        verdict(min(found["weakest"][0], found["most_reached"][0]) >= MOST),
        f"Shares of (network, corruption); reproduced would be {MOST:.0%} or more. Undisturbed classes are those of "
        f"the same images. Of classes that tie, one that stays is enough; all stay in {in_words(found['all_weakest'])} "
        f"and {in_words(found['all_most_reached'])}. " + averaged("corrupted"),
    )


def under_attack():
    """CW7: which class is recognised least under attack, and where the errors land."""
    table = networks(CHECKPOINTS)
    recall = sum(own["attacked_recall"] for own in table.values()) / len(table)
    cfps = sum(own["attacked_cfps"] for own in table.values()) / len(table)
    deer, weakest_cat = (last(name, "attacked_recall", CHECKPOINTS) for name in ("deer", "cat"))
    cat = last("cat", "attacked_cfps", CHECKPOINTS, sign=-1)
    ties = [len(lowest(own["attacked_recall"])) for own in table.values()]
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
        "is recognised any more. " + counted("attacked"),
    )


def towards_cat():
    """CW8: whether targeted attacks reach cat more often than deer."""
    difference = {
        name: mean(
            lambda own, name=name: own.loc["cat", f"target_{name}"] - own.loc["deer", f"target_{name}"], TARGETED
        )
        for name in ("success", "excess", "among_misclassified")
    }
    more = count(lambda own: own.loc["cat", "target_success"] > own.loc["deer", "target_success"], TARGETED)
    return Claim(
        "CW8",
        PAPER,
        "Targeted PGD (2/255, 20 steps) succeeds more often towards cat than towards deer (Figures 5 and 6).",
        "figure",
        f"cat more often in {more[2]}; cat minus deer {in_words(difference['success'], '+')} of all samples, "
        f"{in_words(difference['excess'], '+')} beyond the undisturbed rate, "
        f"{in_words(difference['among_misclassified'], '+')} of those misclassified",
        verdict(difference["success"][1] > 0),
        "The paper does not say which of the three it means. The count's interval is Clopper-Pearson's. "
        + averaged(TARGETED),
    )


def vulnerability():
    """CW9: whether the false positives of a class say how easily attacks reach it."""
    found = {name: predictors_of_targeted_success(name) for name in ("success", "excess")}
    success, excess = found["success"], found["excess"]
    return Claim(
        "CW9",
        PAPER,
        "The number of false positives of a class significantly affects how easily attacks reach it (abstract).",
        "significantly",
        f"rho over classes {in_words(success[0])} with CFPS, {in_words(success[1])} with 1 - recall; with the success "
        f"beyond the undisturbed rate {in_words(excess[0])} and {in_words(excess[1])}",
        verdict(excess[0][1] > 0),
        "The paper prints no statistic. An association, no effect. Without the undisturbed rate subtracted, both sides "
        f"count the same false positives. CFPS less 1 - recall: {in_words(success[2], '+')} (sign-flip p = "
        f"{success[3]:.3f}) and {in_words(excess[2], '+')} (p = {excess[3]:.3f}); [Findings](findings.md) has more. "
        + averaged(TARGETED),
    )
