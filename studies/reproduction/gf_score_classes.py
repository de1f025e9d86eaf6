"""The GF-Score paper's claims about its class scores: whether its tables agree, which classes are weak and strong."""

from studies.reproduction import gf_score_tables as tables
from studies.reproduction import gf_score_theory as theory
from studies.reproduction.claims import Claim, verdict

PAPER = "GF-Score"
ROUNDING = 0.0015
"""Both tables are rounded to three decimals; RDI and NRGC combine several rounded scores."""


def claims():
    """Claims on the consistency of the printed tables and on class patterns."""
    return [*consistency(), *class_patterns()]


def consistency():
    """Whether the tables agree with each other and with the leaderboard."""
    differences = {column: tables.disparity_difference(column) for column in tables.DISPARITY}
    by_name = {"RDI": "rdi", "NRGC": "nrgc", "WCR": "wcr", "FP": "fp_great"}
    difference_words = ", ".join(f"{name} {differences[column]:.4f}" for name, column in by_name.items())
    agreeing = tables.models_whose_worst_class_agrees()
    worst_by_model = tables.tied_worst_classes()
    tie_words = []
    for model, worst in worst_by_model.items():
        if len(worst) > 1:
            tie_words.append(f"{' and '.join(worst)} tie at the bottom for {model}")
    aggregate = tables.aggregate_difference()
    decomposition = theory.decomposition_error()
    accuracy = tables.robust_accuracy_difference()
    penalty = tables.penalty_difference()
    return [
        Claim(
            "GF1",
            PAPER,
            "The disparity of each CIFAR-10 model (Table 3) follows from its class scores (Table 5).",
            "17 rows",
            f"largest difference {difference_words}; worst class agrees in {agreeing} of {len(worst_by_model)} rows",
            verdict(max(differences.values()) <= ROUNDING and agreeing == len(worst_by_model)),
            f"Both tables are rounded to three decimals. In Table 5 {'; '.join(tie_words)}, where Table 3 names dog.",
        ),
        Claim(
            "GF2",
            PAPER,
            "The weighted mean of the class scores is the aggregate score, without any numerical error (Eq. 3, "
            "section 4.3).",
            "0",
            f"{aggregate:.4f} in Table 5 (rounding); relative error {'below' if decomposition < 1e-12 else 'above'} "
            "1e-12 on 10,007 samples in unbalanced classes",
            verdict(aggregate <= 0.00051 and decomposition < 1e-12),
            "The identity is exact; floating-point arithmetic leaves its last digits open, so the error is not always "
            "literally zero.",
        ),
        Claim(
            "GF3",
            PAPER,
            "The robust accuracies of the 22 models are RobustBench's (Tables 3 and 4).",
            "22 models",
            f"largest difference {accuracy:.2f} percentage points",
            verdict(accuracy < 0.005),
        ),
        Claim(
            "GF4",
            PAPER,
            "Every ImageNet model has a negative FP score at lambda = 0.5 (Figure 5, Table 4).",
            "5 of 5",
            f"{int((tables.scores_table('imagenet')['fp_great'] < 0).sum())} of 5; "
            f"column within {penalty:.4f} of score - RDI / 2",
            verdict((tables.scores_table("imagenet")["fp_great"] < 0).all() and penalty <= ROUNDING),
        ),
    ]


def class_patterns():
    """Which classes are weak and strong."""
    cat = tables.times_worst("cifar10", "cat")
    dog = tables.times_worst("cifar10", "dog")
    best = tables.times_best()
    lowest = sum("cat" in worst for worst in tables.tied_worst_classes().values())
    velvet = tables.times_worst("imagenet", "n04525038")
    ranges = {dataset: tables.scores_table(dataset)["rdi"] for dataset in ("cifar10", "imagenet")}
    zero = int((tables.scores_table("imagenet")["wcr"] == 0).sum())
    gini_place = tables.scores_table("cifar10")["nrgc"].rank()[ranges["cifar10"].idxmin()]
    return [
        Claim(
            "GF5",
            PAPER,
            "Cat is the weakest class in 13 of 17 CIFAR-10 models and dog in the other 4 (section 5.2).",
            "13 (76%), 4",
            f"{cat} ({cat / 17:.0%}), {dog}",
            verdict((cat, dog) == (13, 4)),
            "Counted in Table 3. In Table 5 cat shares the last place with dog in one more model.",
        ),
        Claim(
            "GF6",
            PAPER,
            "Automobile is the strongest class in 10 models, horse in 5, truck in 2 (section 5.2).",
            "10, 5, 2",
            ", ".join(f"{name} {count}" for name, count in sorted(best.items(), key=lambda item: -item[1])),
            verdict((best["automobile"], best["horse"]) == (10, 5) and best["truck"] in (2, 3)),
            "Counted in Table 5 with ties: in one model horse and truck share the first place, which the paper gives "
            "to horse.",
        ),
        Claim(
            "GF7",
            PAPER,
            "Cat has the lowest and automobile the highest score throughout (caption of Table 5).",
            "all 17 models",
            f"{lowest} of 17 (ties included) and {best['automobile']} of 17",
            verdict(lowest == best["automobile"] == 17),
            "The caption overstates what the text says.",
        ),
        Claim(
            "GF8",
            PAPER,
            "n04525038 is the weakest ImageNet class in 3 of 5 models (Figure 4).",
            "3",
            f"{velvet}",
            verdict(velvet == 3),
            "See H11 for its name.",
        ),
        Claim(
            "GF9",
            PAPER,
            "RDI runs from 0.11 (Wu2020, the fairest) to 0.43 (Augustin2020) on CIFAR-10, from 1.13 to 1.23 on "
            "ImageNet (section 5.2).",
            "0.11 to 0.43; 1.13 to 1.23",
            f"{ranges['cifar10'].min():.3f} ({ranges['cifar10'].idxmin()}) to {ranges['cifar10'].max():.3f} "
            f"({ranges['cifar10'].idxmax()}); {ranges['imagenet'].min():.3f} to {ranges['imagenet'].max():.3f}",
            verdict(
                ranges["cifar10"].idxmin() == "Wu2020Adversarial"
                and ranges["cifar10"].idxmax() == "Augustin2020Adversarial"
            ),
            f"Fairest by RDI only: by NRGC the same model takes place {gini_place:.0f} of 17 (see H6).",
        ),
        Claim(
            "GF10",
            PAPER,
            "Two ImageNet models have a class with score zero (section 5.2, Table 4).",
            "2",
            f"{zero}",
            verdict(zero == 2),
            "Zero to three decimals. With 50 samples per class the true value may be up to "
            f"{theory.bound_per_class(50, 1000):.3f} higher (Eq. 11).",
        ),
    ]
