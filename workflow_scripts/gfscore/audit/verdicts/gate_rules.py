"""The rules of a gate as config.yaml writes them: direction, threshold, range of the statistic, share of alpha.

Imports nothing heavy, because config.yaml is checked with it.
"""

from gfscore.audit.metric_names import BETTER, SUMMARY

DIRECTIONS = ("at_least", "at_most")
"""Keys of a rule that hold its threshold; exactly one of them stands in each rule."""

FALSIFICATION = "falsification_rate"
"""Statistic of a score against attack distances: the share of correct samples whose score exceeds a distance found."""

GROUP_GAP = "group_gap"
"""Statistic of the groups that an attribute makes: the largest difference between their values of a measure."""

IN_RANGE_OF_MEASURE = ("wcr", "value", "class_mean", "class")
"""Statistics whose range is that of the measure."""


def direction_of(statistic):
    """Key that holds the threshold of a statistic: at_least where more is better, at_most where less is."""
    return DIRECTIONS[0] if BETTER[statistic] > 0 else DIRECTIONS[1]


def threshold_of(rule):
    """Direction and threshold of a rule: ("at_least", 0.4)."""
    return next((direction, rule[direction]) for direction in DIRECTIONS if rule.get(direction) is not None)


def evidence_of(rule):
    """Key of the bounds that a rule is judged by.

    The name of the measure; for GROUP_GAP a triple with the attribute; for FALSIFICATION a triple that says whether
    bounds of each class are meant or of all classes together.
    """
    if rule["statistic"] == GROUP_GAP:
        return rule["measure"], GROUP_GAP, rule["attribute"]
    if rule["statistic"] != FALSIFICATION:
        return rule["measure"]
    return rule["measure"], FALSIFICATION, "classes" if rule.get("class") is not None else "together"


def range_of(statistic, value_range, *, classes, lam):
    """Smallest and largest possible value of a statistic, for a measure's range, K classes or groups, lambda of FP."""
    lowest, highest = value_range
    if statistic in IN_RANGE_OF_MEASURE:
        return lowest, highest
    if statistic == FALSIFICATION:
        return 0.0, 1.0
    width = highest - lowest
    if statistic in ("rdi", GROUP_GAP):
        return 0.0, width
    return {"nrgc": (0.0, 1 - 1 / classes), "fp": (lowest - lam * width, highest)}[statistic]


def highest_values(value_range, *, classes):
    """Largest possible value of each number of SUMMARY, beyond which no bound is printed."""
    return {name: range_of(name, value_range, classes=classes, lam=0)[1] for name in SUMMARY}


def verdict_of(rule, low, high):
    """PASS, FAIL or INCONCLUSIVE, from the lower and the upper bound of the statistic that a rule judges.

    PASS when the bound on the safe side reaches the threshold, FAIL when the other bound misses it.
    """
    direction, threshold = threshold_of(rule)
    if direction == "at_most":
        low, high, threshold = -high, -low, -threshold
    if low >= threshold:
        return "PASS"
    return "FAIL" if high < threshold else "INCONCLUSIVE"


def alpha_of(rule, *, rules, models):
    """Probability of a wrong verdict that one model gets under one rule at one look.

    1 - confidence in equal shares over the rules of the gate, the models and the looks at growing samples that were
    planned; so over all of them together no verdict is wrong, with probability at least the confidence.
    """
    return (1 - rule["confidence"]) / (rules * models * rule["looks"]["planned"])


def combine(verdicts):
    """FAIL if anything fails, PASS if everything passes, INCONCLUSIVE otherwise."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "PASS" if verdicts and all(verdict == "PASS" for verdict in verdicts) else "INCONCLUSIVE"


def words_of(rule, title):
    """A rule as a clause: what every model must show, at which confidence, and at which look."""
    direction, threshold = threshold_of(rule)
    if (rule["statistic"], direction) == ("wcr", "at_least"):
        demand = f"every class has a mean {rule['measure']} of at least {threshold:g}"
    else:
        demand = f"{title} of {rule['measure']} is {direction.replace('_', ' ')} {threshold:g}"
    looks = rule["looks"]
    planned = f", at look {looks['this']} of {looks['planned']}" if looks["planned"] > 1 else ""
    return f"{demand}, judged for all models together with {100 * rule['confidence']:g}% confidence{planned}"
