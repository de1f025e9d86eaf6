"""Wrong verdicts of the rule that no class declines since the last release, by simulation: run.py regression_gate.

Pairs of outcomes of three classes are drawn with a known decline. A verdict is wrong where it says PASS though a class
declines by at_most (the least decline that it must not pass), or FAIL though none declines by more. McNemar's test
knows whether two releases differ at all, not whether they differ by at_most, and is no answer to this question.
"""

import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from timing import row

from helpers.simulated_releases import shares_of_verdicts

AT_MOST = 0.02
DISCORDANCES = (AT_MOST, 0.1, 0.3, 0.5)
CLASSES = 3
PER_CLASS = 400
REPEATS = 2000
ALPHA = 0.05
TOLERATED = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / REPEATS)

DESIGNS = {
    "one class exactly at_most worse, the others as much better": [AT_MOST] + [-AT_MOST] * (CLASSES - 1),
    "every class exactly at_most worse": [AT_MOST] * CLASSES,
    "equal": [0.0] * CLASSES,
}

DECIDED = {0.02: 5000, 0.05: 800}
"""at_most -> samples of each class with which equal releases are judged, a tenth of whose pairs differs."""


def wrong(design, shares):
    """Shares of verdicts that are wrong on a design, by their word."""
    return {"FAIL": shares["FAIL"]} if design == "equal" else {"PASS": shares["PASS"], "FAIL": shares["FAIL"]}


def rows():
    """A row for each share of pairs that differ, and one for what samples decide."""
    for discordance in DISCORDANCES:
        errors = {}
        for design, declines in DESIGNS.items():
            shares = shares_of_verdicts(
                declines, discordance=discordance, per_class=PER_CLASS, at_most=AT_MOST, repeats=REPEATS
            )
            for word, share in wrong(design, shares).items():
                errors[f"{word}, {design}"] = share
        worst = max(errors.values())
        detail = f"{REPEATS:,} pairs of releases, {CLASSES} x {PER_CLASS}, at_most {AT_MOST}, alpha {ALPHA}: "
        detail += "; ".join(f"{words} {share:.4f}" for words, share in errors.items())
        yield row(
            f"wrong verdicts on declines, {discordance:g} of the pairs differ",
            TOLERATED / max(worst, 1 / REPEATS),
            detail,
            target=1,
            unit="times below alpha plus three standard errors",
        )

    passed = {}
    for at_most, per_class in DECIDED.items():
        shares = shares_of_verdicts(
            DESIGNS["equal"], discordance=0.1, per_class=per_class, at_most=at_most, repeats=REPEATS // 20
        )
        passed[f"at_most {at_most:g}, {per_class:,} a class"] = shares["PASS"]
    detail = f"{CLASSES} classes, 0.1 of the pairs differ, alpha {ALPHA}; share that passes: "
    detail += "; ".join(f"{words} {share:.2f}" for words, share in passed.items())
    yield row("equal releases that pass", min(passed.values()), detail, target=0.5, unit="share that passes")
