"""The rules of a gate as config.yaml writes them: threshold, what they rest on, share of alpha, verdict.

Imports nothing heavy, because config.yaml is checked with it. What they judge stands in gate_statistics.
"""

from collections.abc import Collection, Mapping
from typing import Any

DIRECTIONS = ("at_least", "at_most")
"""Keys of a rule that hold its threshold; exactly one of them stands in each rule."""

FALSIFICATION = "falsification_rate"
"""Statistic of a score against attack distances: the share of correct samples whose score exceeds a distance found."""

GROUP_GAP = "group_gap"
"""Statistic of the groups that an attribute makes: the largest difference between their values of a measure."""

ONE_CLASS = "class"
"""Statistic of the class that a rule names: its value."""


def threshold_of(rule: Mapping[str, Any]) -> tuple[str, float]:
    """Direction and threshold of a rule: ("at_least", 0.4)."""
    return next((direction, rule[direction]) for direction in DIRECTIONS if rule.get(direction) is not None)


def evidence_of(rule: Mapping[str, Any]) -> str | tuple[str, str, str]:
    """Key of the bounds that a rule is judged by.

    The name of the measure; for GROUP_GAP a triple with the attribute; for FALSIFICATION a triple that says whether
    bounds of each class are meant or of all classes together.
    """
    if rule["statistic"] == GROUP_GAP:
        return rule["measure"], GROUP_GAP, rule["attribute"]
    if rule["statistic"] != FALSIFICATION:
        return rule["measure"]
    return rule["measure"], FALSIFICATION, "classes" if rule.get("class") is not None else "together"


def verdict_of(rule: Mapping[str, Any], low: float, high: float) -> str:
    """PASS, FAIL or INCONCLUSIVE, from the lower and the upper bound of the statistic that a rule judges.

    PASS when the bound on the safe side reaches the threshold, FAIL when the other bound misses it.
    """
    direction, threshold = threshold_of(rule)
    if direction == "at_most":
        low, high, threshold = -high, -low, -threshold
    if low >= threshold:
        return "PASS"
    return "FAIL" if high < threshold else "INCONCLUSIVE"


def alpha_of(rule: Mapping[str, Any], *, rules: int, models: int) -> float:
    """Probability of a wrong verdict that one model gets under one rule at one look.

    1 - confidence in equal shares over the rules of the gate, the models and the looks at growing samples that were
    planned; so over all of them together no verdict is wrong, with probability at least the confidence.
    """
    return (1 - rule["confidence"]) / (rules * models * rule["looks"]["planned"])


def combine(verdicts: Collection[str]) -> str:
    """FAIL if anything fails, PASS if everything passes, INCONCLUSIVE otherwise."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "PASS" if verdicts and all(verdict == "PASS" for verdict in verdicts) else "INCONCLUSIVE"
