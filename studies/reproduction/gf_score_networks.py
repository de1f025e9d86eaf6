"""Claims of the GF-Score paper about the score itself, on the real networks at hand."""

from gfscore.audit.metrics.nrgc import nrgc
from gfscore.audit.metrics.rdi import rdi
from studies.real_networks.statistics import change_of_order, mean_over_families, order, order_over_families
from studies.reproduction import gf_score_tables as tables
from studies.reproduction.claims import Claim, verdict
from studies.reproduction.real_networks import (
    CHECKPOINTS,
    PUBLISHED,
    TIMED,
    average,
    counts_note,
    families_of,
    interval_words,
    last,
    means_note,
    measurement,
    networks,
    times_the_score,
)

PAPER = "GF-Score"
PUBLISHED_RHO = 0.8
"""Spearman's rho of GREAT's own ImageNet scores with RobustBench, as Table 2 quotes it."""

CLAIMED_SPEED = 2_000
"""How many times as fast as attacks the score is said to be."""

ACTIVATIONS = ("softmax", "sigmoid")


def claims():
    """Claims of the page, in its order."""
    return [published_imagenet(), weakest_by_nature(), other_implementations(), calibration(), fairness()]


def published_imagenet():
    """GF25: the agreement that GREAT's own paper found on ImageNet."""
    ours = tables.rank_agreement("imagenet", "great_score", "robust_accuracy_pct")
    published_by_chance = tables.exact_p_value(PUBLISHED_RHO, models=5)
    ours_by_chance = tables.exact_p_value(ours, models=5)
    return Claim(
        "GF25",
        PAPER,
        "GREAT's uncalibrated score agrees with RobustBench's ranking of five ImageNet models at 0.800 (Table 2).",
        f"{PUBLISHED_RHO:.3f}",
        f"{ours:.3f} from the scores of Table 4; five models in random order: P(|rho| >= 0.8) = "
        f"{published_by_chance:.3f}, P(|rho| >= 0.9) = {ours_by_chance:.3f}",
        verdict(abs(ours - PUBLISHED_RHO) < 0.0005),
        "The same five models and the same definition, other samples. Table 2 lists 0.900 as the better method; five "
        "models tell neither number from chance at the 5% level, nor the two from each other: one more pair of "
        "neighbours changes places.",
    )


def weakest_by_nature():
    """GF26: whether cat is the weakest class of other networks too."""
    published = [last("cat", column, PUBLISHED) for column in ("recall", "great_softmax")]
    checkpoints = [last("cat", column, CHECKPOINTS) for column in ("recall", "great_softmax", "attacked_recall")]
    in_most_networks = all(alone > n / 2 for alone, n, _ in (*published, *checkpoints))
    return Claim(
        "GF26",
        PAPER,
        "That cat is the most vulnerable class is due to the data, not to the training (section 5.2).",
        "13 of 17 (76%)",
        f"cat alone weakest of the 8 published networks by recall in {published[0][2]}, by softmax score in "
        f"{published[1][2]}; of the 17 checkpoints in {checkpoints[0][2]}, {checkpoints[1][2]}, and under attack "
        f"(l_inf 2/255) in {checkpoints[2][2]}",
        verdict(in_most_networks),
        "Reproduced as a count: cat alone is last in most networks by every measure; tied are four ResNets, of which "
        "attacks leave nothing in 7 or 8 classes. That other classes are last in others "
        "shows that training has a part too; [Findings](findings.md) says how large. " + counts_note("all"),
    )


def other_implementations():
    """GF27: whether a public implementation of the score computes the same."""
    table = networks()
    leads = measurement("logit_leads")
    lead = [leads[name] for name in table]
    score = [average(classes, "great_softmax") for classes in table.values()]
    families = families_of(table)
    agreement = order_over_families(lead, score, families)
    mean_lead = interval_words(mean_over_families(lead, families))
    mean_score = interval_words(mean_over_families(score, families))
    return Claim(
        "GF27",
        PAPER,
        "The GREAT score is one number, whichever implementation computes it (GREAT Score, on which the paper builds).",
        "0 to 1.2533",
        f"without activation and factor {min(leads.values()):.2f} to {max(leads.values()):.2f} on 25 networks, mean "
        f"{mean_lead}; softmax score {min(score):.2f} to {max(score):.2f}, mean {mean_score}; rho over networks "
        f"{interval_words(agreement)}",
        verdict(max(leads.values()) <= 1.2533),
        "The Adversarial Robustness Toolbox 1.20 (`art.evaluations.great_score.GreatScorePyTorch`) takes the lead of "
        "the true class over the next in whatever the classifier returns, logits as a rule: neither an activation nor "
        "sqrt(pi/2). Read in its source; ours is the same formula on the same logits. A number without its activation, "
        "temperature and factor cannot be compared. " + means_note("all"),
    )


def speed():
    """GF23: how many times as long attacks take as the score."""
    times = times_the_score()
    rows = measurement("costs", audit="real-checkpoints")
    passes = mean_over_families(rows["passes"], families_of(rows["model"]))
    return Claim(
        "GF23",
        PAPER,
        "GREAT is roughly 2,000 times as fast as methods that attack (section 1).",
        "2,000 times",
        f"{times['adversarial-linf']:.0f} times as fast as PGD, Auto-PGD and Square by processor time, "
        f"{min(times.values()):.0f} to {max(times.values()):.0f} times as fast as six measures; in passes "
        "{:.0f} ({:.0f} to {:.0f}) times, without Square".format(*passes),
        verdict(max(times.values()) >= CLAIMED_SPEED / 2),
        "The paper names neither its attacks nor their settings, which decide it: in passes the factor is how many an "
        "attack takes per image, one with a gradient counted twice, for the score takes one. Refuted is that attacks "
        "take so long whatever they are; those of AutoAttack, which runs thousands of passes for an image that "
        f"survives, may. Times are {TIMED}; of them there is no interval. Passes: of 20 steps each. "
        + means_note("attacked"),
    )


def calibration():
    """GF28: what calibration does to the agreement with robustness."""
    table = networks(CHECKPOINTS)
    families = families_of(table)
    clean = [average(classes, "recall") for classes in table.values()]
    attacked = [average(classes, "attacked_recall") for classes in table.values()]
    by_clean = measurement("calibrations", objective="clean").set_index("activation")
    by_attacked = measurement("calibrations", objective="attacked").set_index("activation")
    sentences = []
    changes = []
    for activation in ACTIVATIONS:
        chosen = by_clean.loc[activation]
        before = [average(classes, f"great_{activation}") for classes in table.values()]
        after = [chosen["scores"][name] for name in table]
        agreement_before = interval_words(order_over_families(before, attacked, families))
        agreement_after = interval_words(order_over_families(after, attacked, families))
        sentences.append(
            f"{activation} {agreement_before} at T = 1, {agreement_after} at {chosen['temperature']:.3g}, where Eq. 8 "
            f"goes from {order(before, clean):.3f} to {chosen['best']:.3f}"
        )
        changes.append(change_of_order(before, after, attacked, families))
    most = by_attacked["best"]
    low = by_clean.loc["softmax"]
    accuracy_alone = interval_words(order_over_families(clean, attacked, families))
    return Claim(
        "GF28",
        PAPER,
        "Self-calibration by Eq. 8 raises the rank agreement of the score with robustness (as H1, on real networks).",
        "0.662 to 0.871",
        f"{'; '.join(sentences)}; clean accuracy alone {accuracy_alone}",
        verdict(min(change for change, _, _ in changes) > 0),
        "Rho with the accuracy under attack, which is least on the four ResNets; their softmax scores are the highest. "
        f"The changes are {interval_words(changes[0], '+')} and {interval_words(changes[1], '+')}. With softmax, "
        "calibration makes the score clean accuracy (H4): its optimum,"
        f" {low['first']:.2f} to {low['last']:.3f}, touches the end of the "
        f"range. No temperature from 0.01 to 10 gives more than {most['softmax']:.2f} and {most['sigmoid']:.2f}, so "
        "calibrating by these attacks would not mend it either (GF13, GF22). The temperature is searched once, not in "
        "each resample. " + means_note("attacked"),
    )


def fairness():
    """GF29: whether a higher score goes with more disparity."""
    table = networks(CHECKPOINTS)
    families = families_of(table)
    agreements = {}
    for activation in ACTIVATIONS:
        column = f"great_{activation}"
        score = [average(classes, column) for classes in table.values()]
        for name, metric in (("RDI", rdi), ("NRGC", nrgc)):
            disparity = [float(metric(classes[column].to_numpy())) for classes in table.values()]
            agreements[name, activation] = order_over_families(score, disparity, families)
    words = {key: interval_words(agreement, "+") for key, agreement in agreements.items()}
    return Claim(
        "GF29",
        PAPER,
        "More robust models are less fair between classes (as H6, on real networks).",
        "positive correlation of score and disparity",
        f"score with RDI: softmax {words['RDI', 'softmax']}, sigmoid {words['RDI', 'sigmoid']}; with NRGC: "
        f"{words['NRGC', 'softmax']}, {words['NRGC', 'sigmoid']}",
        verdict(min(value for value, _, _ in agreements.values()) > 0),
        "T = 1. As in the paper's own tables NRGC has the opposite sign, with both activations. The sign by RDI is "
        "the activation's: where all scores are near 0, as by sigmoid, so are their differences. "
        + means_note(CHECKPOINTS),
    )
