"""One claim of a paper and how it fared."""

from dataclasses import dataclass

REPRODUCED, REFUTED, UNTESTABLE = "reproduced", "refuted", "untestable here"

VERDICTS = (REPRODUCED, REFUTED, UNTESTABLE)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper beside our number.

    `key` unique short name; `paper` short name, a key of page.PAPERS; `claim` in our words with its place in the paper;
    `claimed` the paper's number; `ours` our number, computed; `verdict` one of VERDICTS; `note` what a reader needs to
    judge the verdict, for "untestable here" always the reason.
    """

    key: str
    paper: str
    claim: str
    claimed: str
    ours: str
    verdict: str
    note: str = ""


def verdict(holds):
    """Verdict of a claim that was computed: "reproduced" when it holds, else "refuted"."""
    return REPRODUCED if holds else REFUTED


def untestable(key, paper, claim, claimed, note, *, ours="none"):
    """Claim that needs something this package does not hold; `note` says what, `ours` what can be computed instead."""
    return Claim(key, paper, claim, claimed, ours, UNTESTABLE, note)
