"""The GF-Score paper's claims about rankings and bounds, and those that need the models."""

from gfscore.core.names import enumeration
from gfscore.statistics import SCALE
from gfscore.statistics.intervals import samples_for_half_width
from studies.reproduction import gf_score_tables as tables
from studies.reproduction import gf_score_theory as theory
from studies.reproduction.claims import Claim, untestable, verdict
from studies.reproduction.gf_score_networks import speed

PAPER = "GF-Score"


def claims():
    """Claims on rank agreement and re-ranking, on concentration bounds, and on scores that need the networks."""
    return [*rankings(), *bounds(), *needing_models(), speed(), proof_of_rdi_bound()]


def rankings():
    """Rank agreement and re-ranking."""
    cifar = tables.rank_agreement("cifar10", "great_score", "robust_accuracy_pct")
    before = tables.rank_agreement("imagenet", "great_score", "robust_accuracy_pct")
    after = tables.rank_agreement("imagenet", "great_score_calibrated", "robust_accuracy_pct")
    calibrated = tables.rank_agreement("cifar10", "great_score_calibrated", "robust_accuracy_pct")
    clean = tables.rank_agreement("cifar10", "clean_accuracy_pct", "robust_accuracy_pct")
    families = tables.rank_agreement_in_families("clean_accuracy_pct", "robust_accuracy_pct")
    falling = [tables.place("Augustin2020Adversarial", column) for column in ("great_score", "fp_great")]
    rising = [tables.place("Wu2020Adversarial", column) for column in ("great_score", "fp_great")]
    levels = theory.rank_correlation_levels(5)
    step = min(levels[1:] - levels[:-1])
    return [
        Claim(
            "GF11",
            PAPER,
            "Without calibration the score agrees with RobustBench's ranking of the CIFAR-10 models (Table 2).",
            "0.662",
            f"{cifar:.6f}",
            verdict(round(cifar, 3) == 0.662),
        ),
        Claim(
            "GF12",
            PAPER,
            "On ImageNet the rank agreement is 0.900 before and 1.000 after calibration (Table 2).",
            "0.900, 1.000",
            f"{before:.3f}, {after:.3f}",
            verdict((round(before, 3), round(after, 3)) == (0.9, 1.0)),
            "The numbers hold; H5 says what they show.",
        ),
        Claim(
            "GF13",
            PAPER,
            "Attack-free calibration matches or exceeds the attack-based one on CIFAR-10 (caption of Table 2).",
            "0.871 against 0.897",
            f"{calibrated:.3f} against 0.897",
            verdict(calibrated >= 0.897),
            "The caption contradicts its own table. The 0.897 is quoted from the GREAT paper, not recomputed.",
        ),
        Claim(
            "GF14",
            PAPER,
            "More robust models tend to have higher clean accuracy, within a family (section 3.4).",
            "monotone relation",
            f"at least {min(families.values()):.3f} within each family; {clean:.3f} over the 17 CIFAR-10 models",
            verdict(min(families.values()) > 0.5),
            f"Families, here two or more models of one first author: {enumeration(families)}. Chance alone would order "
            "a family of two so once in 2 times, one of four once in 24. Over all models "
            "it holds so well that clean accuracy alone is the better ranking (H4).",
        ),
        Claim(
            "GF15",
            PAPER,
            "By FP, Augustin2020 falls from 2nd to 5th of the CIFAR-10 models (section 5.2).",
            "2 to 5",
            f"{falling[0]:.0f} to {falling[1]:.0f}",
            verdict(falling == [2, 5]),
        ),
        Claim(
            "GF16",
            PAPER,
            "By FP, Wu2020 rises from 16th to 14th (section 5.2).",
            "16 to 14",
            f"{rising[0]:.0f} to {rising[1]:.0f}",
            verdict(rising == [16, 14]),
        ),
        Claim(
            "GF17",
            PAPER,
            "The ImageNet calibration curve is smooth, so the grid finds its optimum reliably (Figure 6).",
            "smooth curve",
            f"{len(levels)} possible values, at least {step:.1f} apart",
            verdict(step < 0.01),
            "A rank correlation of five models is a step function of T: it changes only where two scores cross, and "
            "its optimum is an interval, not a point.",
        ),
    ]


def bounds():
    """Concentration bounds."""
    half_width = theory.bound_per_class(1000, 10)
    alone = theory.great_theorem_samples(0.05, 1)
    union = theory.great_theorem_samples(0.05, 10)
    hoeffding = samples_for_half_width(0.05, classes=10, alpha=theory.ALPHA, width=SCALE)
    return [
        Claim(
            "GF18",
            PAPER,
            "With 1,000 samples in each of ten classes all class scores are within 0.069 of the truth, confidence 95% "
            "(Proposition 1, Eq. 11).",
            "0.069",
            f"{half_width:.6f}",
            verdict(round(half_width, 3) == 0.069),
        ),
        Claim(
            "GF19",
            PAPER,
            "GREAT's sample size suffices for an error of 0.05 with confidence 95% (GREAT Score, Theorem 2, on which "
            "the paper builds).",
            "32 e log(2 / delta) / eps^2",
            f"theorem {alone:,} for one score, {union:,} with a union over ten classes; "
            f"Hoeffding {hoeffding:,} per class",
            verdict(alone >= hoeffding),
            f"It suffices, and with the union is {union / hoeffding:.0f} times what Hoeffding's inequality needs.",
        ),
    ]


def needing_models():
    """Claims that need the 22 networks and their data."""
    return [
        untestable(
            "GF20",
            PAPER,
            "The class scores and calibrated scores themselves (Tables 3 to 5).",
            "22 models",
            "They need the published weights, both test sets and, for ImageNet, a GPU. The audits cifar10-l2 and "
            "imagenet-linf recompute them once those files are in place.",
        ),
        untestable(
            "GF21",
            PAPER,
            "n12057211 is the strongest ImageNet class in all five models (Figure 4).",
            "5 of 5",
            "No table prints ImageNet's class scores.",
        ),
        untestable(
            "GF22",
            PAPER,
            "Calibration by C&W attacks reaches a rank agreement of 0.897 on CIFAR-10 (Table 2, quoted from GREAT).",
            "0.897",
            "It needs attacks on the 17 networks.",
        ),
    ]


def proof_of_rdi_bound():
    """The first line of the proof of the bound on RDI."""
    error, first, second = theory.first_line_counterexample()
    return Claim(
        "GF24",
        PAPER,
        "The error of RDI is at most the sum of the errors of the truly best and the truly worst class (Eq. 13, first "
        "line of the proof of Proposition 2).",
        "error <= sum",
        f"error {error:.1f}, sum {first:.1f}",
        verdict(error <= first),
        "Class scores (0.6, 0.5, 0), estimated as (0.6, 0.9, 0): another class comes out best. What is concluded, "
        f"twice the largest error of a class (here {second:.1f}), holds, and Eq. 12 with it.",
    )
