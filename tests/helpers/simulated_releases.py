"""Two releases of a classifier as pairs of outcomes with known truth, and the verdicts of the gate on their declines."""

import numpy as np

from gfscore.audit.settings import IntervalSettings
from gfscore.audit.verdicts.candidates import Candidate, JudgedClasses, sample_counts
from gfscore.audit.verdicts.declines import PairedDifferences
from gfscore.audit.verdicts.gate_rules import DECLINE, RuleSettings
from gfscore.audit.verdicts.judging import judge
from gfscore.measures.declaration import Measure

MEASURE = Measure(title="Robust accuracy", value_range=(0.0, 1.0), unit="share", explanation="", binary=True)


def paired_outcomes(rng, declines, *, discordance, per_class):
    """Pairs of 0/1 outcomes, `per_class` of each class, whose true decline is given for each class.

    `discordance` is the share of pairs that differ; at least the largest decline.
    """
    labels = np.repeat(np.arange(len(declines)), per_class).astype(np.int32)
    lost = (discordance + np.asarray(declines))[labels] / 2
    drawn = rng.random(len(labels))
    is_lost, is_gained = drawn < lost, (drawn >= lost) & (drawn < discordance)
    both_right = rng.random(len(labels)) < 0.6
    earlier = np.where(is_lost, 1.0, np.where(is_gained, 0.0, both_right))
    later = np.where(is_lost, 0.0, np.where(is_gained, 1.0, both_right))
    return differences_of(earlier, later, labels)


def differences_of(earlier, later, labels, *, earlier_high=None, later_high=None, measure=MEASURE):
    """PairedDifferences of values (N,), undecided where upper values are given."""
    earlier, later = np.asarray(earlier, dtype=float), np.asarray(later, dtype=float)
    return PairedDifferences(
        sample_id=np.arange(len(labels)).astype(str),
        labels=np.asarray(labels, dtype=np.int32),
        earlier_low=earlier,
        earlier_high=earlier if earlier_high is None else np.asarray(earlier_high, dtype=float),
        later_low=later,
        later_high=later if later_high is None else np.asarray(later_high, dtype=float),
        missing=np.zeros(len(labels), dtype=bool),
        measure=measure,
    )


def verdict_on(differences, classes, **rule):
    """Verdict (ModelVerdict) of the rule that no class declines by more than `at_most`, for one model."""
    return rule_verdict_on(differences, classes, **rule).models[0]


def rule_verdict_on(differences, classes, *, at_most, confidence=0.95, seed=0, label_error_rates=None, **rule):
    """Verdict (RuleVerdict) of this rule on one model."""
    settings = RuleSettings(measure="robust", statistic=DECLINE, at_most=at_most, confidence=confidence, **rule)
    key = settings.bounds_key
    intervals = IntervalSettings(seed=seed)
    bounds = differences.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
    names = [f"class {k}" for k in range(classes)]
    counts = sample_counts(differences.counts(classes))
    candidate = Candidate("none", "later", {key: JudgedClasses(bounds, names, counts)})
    return judge([candidate], [settings], lam=0.5).rules[0]


class OneOfMany:
    """Bounds of the classes of one release among those of many, which were made at once."""

    def __init__(self, many, classes, position, made):
        self.many, self.made = many, made
        self.classes = slice(position * classes, (position + 1) * classes)
        self.n = many.n[self.classes]

    def lower(self, alpha):
        return self._side("lower", alpha)

    def upper(self, alpha):
        return self._side("upper", alpha)

    def _side(self, side, alpha):
        if (side, alpha) not in self.made:
            self.made[side, alpha] = getattr(self.many, side)(alpha)
        return self.made[side, alpha][self.classes]


def shares_of_verdicts(declines, *, discordance, per_class, at_most, repeats, alpha=0.05, seed=0, at_once=50):
    """Shares of PASS, FAIL and INCONCLUSIVE in `repeats` simulated pairs of releases, a multiple of `at_once`."""
    rng = np.random.default_rng([seed, per_class, len(declines), round(1000 * discordance), round(1000 * at_most)])
    rule = RuleSettings(measure="robust", statistic=DECLINE, at_most=at_most, confidence=1 - alpha)
    statistic = rule.statistic_of()
    shares = {"PASS": 0.0, "FAIL": 0.0, "INCONCLUSIVE": 0.0}
    for start in range(0, repeats, at_once):
        # Classes are bounded each for itself, so that those of many pairs of releases can be bounded at once.
        drawn = paired_outcomes(rng, np.tile(declines, at_once), discordance=discordance, per_class=per_class)
        many, made = drawn.bounds(len(declines) * at_once, intervals=IntervalSettings(seed=start)), {}
        for position in range(at_once):
            bounds = OneOfMany(many, len(declines), position, made)
            shares[rule.verdict(*statistic.bounds(bounds, rule.alpha(rules=1, models=1)))] += 1 / repeats
    return shares
