"""Columns of the tables that compare the measures of an audit, and of their curves."""

import pyarrow as pa

from gfscore.audit.classwise.targets import TARGET_MATRIX, TARGET_PREDICTORS, TARGET_SUCCESS
from gfscore.tables.table import MEASURED

ALL = -1
"""Value of class_index for all samples together, with ALL_NAME as class_name."""

ALL_NAME = "all"

_CLASS = (
    ("class_index", pa.int32(), "class, 0..K-1; -1 for all samples together"),
    ("class_name", pa.string(), "name of the class; all for all samples together"),
)

_CONFIDENCE = ("confidence", pa.float64(), "confidence of the bounds")

AGREEMENT_COLUMNS = {
    "falsification": (
        *MEASURED,
        ("distances", pa.string(), "measure of kind minimal that the score is compared with"),
        ("calibration", pa.string(), "none, or the objective that chose the temperature"),
        ("temperature", pa.float64(), "temperature of the score"),
        *_CLASS,
        ("n", pa.int64(), "samples with both a score and a distance"),
        ("correct", pa.int64(), "of these, classified correctly by both measures"),
        ("violations", pa.int64(), "of these, with an adversarial example nearer than the score"),
        ("rate", pa.float64(), "violations / correct, a lower bound of the true share; null without correct samples"),
        ("low", pa.float64(), "lower Clopper-Pearson bound of this row alone; null if T was chosen on these samples"),
        ("high", pa.float64(), "upper bound, likewise; of the share that these attacks contradict, not the true one"),
        _CONFIDENCE,
        ("censored", pa.int64(), "samples without an adversarial example found"),
        ("mean_score", pa.float64(), "mean score over the n samples, 0 if misclassified"),
        ("mean_distance", pa.float64(), "mean distance, 0 if misclassified, the largest searched if censored"),
        ("p_mean", pa.float64(), "p-value by betting of the hypothesis mean score <= mean_distance; null where low is"),
    ),
    "radius_curves": (
        *MEASURED,
        ("kind", pa.string(), "minimal: samples not broken within the radius; certified: certified to it"),
        *_CLASS,
        ("n", pa.int64(), "samples of the class"),
        ("radius", pa.float64(), "distance in the norm of the measure"),
        ("share", pa.float64(), "share correct and robust at the radius; for minimal an upper bound of the true share"),
        ("low", pa.float64(), "certified: lower bound of the true share, simultaneous over classes at each radius"),
        ("high", pa.float64(), "minimal: upper bound of the true share, likewise"),
        _CONFIDENCE,
    ),
    "class_distances": (
        *MEASURED,
        *_CLASS,
        ("n", pa.int64(), "samples of the class"),
        ("misclassified", pa.int64(), "of these, misclassified without perturbation (distance 0)"),
        ("found", pa.int64(), "with an adversarial example"),
        ("censored", pa.int64(), "without one up to the largest distance searched"),
        ("success_rate", pa.float64(), "found / correctly classified; null without any"),
        ("median", pa.float64(), "median distance over all n; null if censored"),
        ("mean", pa.float64(), "mean distance, censored samples at the largest searched"),
    ),
    "log_rank_tests": (
        *MEASURED,
        ("n", pa.int64(), "samples"),
        ("classes", pa.int64(), "classes with samples"),
        ("statistic", pa.float64(), "log-rank chi-square statistic"),
        ("degrees_of_freedom", pa.int64(), "its degrees of freedom; 0: nothing to compare"),
        ("p_chi_square", pa.float64(), "asymptotic p-value, valid for large classes"),
        ("p_permutation", pa.float64(), "permutation p-value, valid for every number of samples"),
        ("permutations", pa.int64(), "random permutations; p_permutation is at least 1 / (1 + permutations)"),
    ),
    "refutations": (
        *MEASURED,
        ("n", pa.int64(), "samples, abstentions included"),
        ("attacked", pa.int64(), "certificates that were attacked"),
        ("refuted", pa.int64(), "of these, refuted by an attack on the smoothed classifier"),
        ("allowed", pa.int64(), "largest number explained by chance: 99.9% quantile of Binomial(n, alpha)"),
        ("alpha", pa.float64(), "error probability of one certificate"),
        ("within_chance", pa.bool_(), "refuted is at most allowed"),
    ),
    "class_shares": (
        *MEASURED,
        *_CLASS,
        ("n", pa.int64(), "samples of the class"),
        ("robust", pa.int64(), "decided as robust"),
        ("not_robust", pa.int64(), "decided as not robust"),
        ("undecided", pa.int64(), "not decided within the budget"),
        ("low", pa.float64(), "lower bound of the true share; simultaneous over classes, that of all samples alone"),
        ("high", pa.float64(), "upper bound, likewise"),
        _CONFIDENCE,
        ("paper_low", pa.float64(), "the exact-binomial paper's Eq. 7 as printed: no confidence interval"),
        ("paper_high", pa.float64(), "its upper end, likewise"),
        ("kappa", pa.float64(), "tolerated share of changed neighbours"),
        ("alpha", pa.float64(), "level of the test, which paper_low and paper_high take for its error rate"),
        ("error_rate", pa.float64(), "largest probability of a wrong decision, which low and high allow for"),
    ),
    "target_success": TARGET_SUCCESS.columns,
    "target_matrix": TARGET_MATRIX.columns,
    "target_predictors": TARGET_PREDICTORS.columns,
    "measure_agreement": (
        ("dataset", pa.string(), "data evaluated"),
        ("over", pa.string(), "classes (of one model) or models (by aggregate)"),
        ("threat", pa.string(), "threat model of the classifier; null over models"),
        ("model", pa.string(), "classifier; null over models"),
        ("first", pa.string(), "measure"),
        ("second", pa.string(), "measure"),
        ("n", pa.int64(), "classes or models with values of both measures"),
        ("rho", pa.float64(), "Spearman rank correlation; null where undefined"),
        ("low", pa.float64(), "lower bound, approximate (Bonett and Wright 2000); null below n = 4 and at rho = +-1"),
        ("high", pa.float64(), "upper bound, likewise"),
        _CONFIDENCE,
        ("p", pa.float64(), "two-sided permutation p-value of no association, of this row alone"),
        ("p_method", pa.string(), "every order (exact), or random orders"),
    ),
    "training_methods": (
        ("dataset", pa.string(), "data evaluated"),
        ("adversarial", pa.string(), "measure of kind adversarial"),
        ("probabilistic", pa.string(), "measure of kind probabilistic"),
        ("threat", pa.string(), "threat model the classifier was made for"),
        ("model", pa.string(), "classifier"),
        ("training", pa.string(), "training method; where models share it, with what tells them apart"),
        ("n", pa.int64(), "samples of all three measures"),
        ("accuracy", pa.float64(), "clean accuracy"),
        ("attack_failure_rate", pa.float64(), "share correct under attack, an upper bound of robust accuracy"),
        ("robust", pa.float64(), "share decided as probabilistically robust"),
        ("undecided", pa.float64(), "share not decided within the budget"),
        ("observation", pa.float64(), "lower bound of the robust share as the paper prints it (Eq. 7)"),
        ("robust_low", pa.float64(), "lower bound of the true robust share, of this row alone"),
        ("robust_high", pa.float64(), "upper bound, likewise"),
        _CONFIDENCE,
        ("error_rate", pa.float64(), "largest probability of a wrong decision, which these bounds allow for"),
    ),
    "masking_signs": (
        *MEASURED,
        ("other", pa.string(), "measure whose attacks succeeded; null: this measure itself"),
        ("count", pa.int64(), "samples that show the sign"),
        ("n", pa.int64(), "samples compared"),
        ("proof", pa.bool_(), "the attacks certainly failed on these samples; else this is suspected"),
        ("text", pa.string(), "the sign in words"),
    ),
}
"""Columns by table; values are at T = 1 except in falsification."""
