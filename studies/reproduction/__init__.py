"""What the five source papers claim, beside what their own numbers and this package say.

One module per paper holds small functions that compute one number each, and `claims()`, which states the paper's
claims in our words. `page` turns them into docs/what-reproduces.md; the tests assert the numbers.
"""

from importlib import import_module

MODULES = (
    "studies.reproduction.gf_score_discrepancies",
    "studies.reproduction.gf_score_classes",
    "studies.reproduction.gf_score",
    "studies.reproduction.gf_score_networks",
    "studies.reproduction.exact_binomial",
    "studies.reproduction.measurement_algorithms",
    "studies.reproduction.classwise_analysis",
    "studies.reproduction.classwise_networks",
    "studies.reproduction.projection_fairness",
    "studies.reproduction.projection_tables",
)
"""Modules of this package that state claims, in the order of the page."""


def ledger():
    """Every claim with its verdict, as a list of Claim; computed afresh at each call (about a second)."""
    claims = []
    for name in MODULES:
        claims += import_module(name).claims()
    return claims
