"""The first sentences of an audit: what a gate on a score hides about attacks, and no more than the tables say."""

import pandas as pd
import pytest

from gfscore.audit.audit_tables import AuditTables
from gfscore.show.report.under_attack import _no_attack, under_attack

MEASURES = {"great": {"kind": "great"}, "attack": {"kind": "adversarial"}}
SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
REVERSED = [0.07, 0.2, 0.3, 0.7, 0.75, 0.8]


def sentences(attacked=None, *, stated=None, passing="ABCDEF", width=0.05, rules=1):
    """Sentences on six models A to F: their accuracies under an attack of the audit, and those that are stated."""
    rows = [("great", SCORES)] + ([("attack", attacked)] if attacked else [])
    summary = pd.DataFrame(
        {
            "dataset": "d",
            "threat": "none",
            "model": name,
            "measure": measure,
            "calibration": "none",
            "value": value,
            "value_alone_high": value + width,
            "robust_accuracy": float("nan") if stated is None else stated[place],
            "robust_accuracy_source": None if stated is None else "published",
        }
        for measure, values in rows
        for place, (name, value) in enumerate(zip("ABCDEF", values, strict=True))
    )
    judged = [{"threat": "none", "model": name, "verdict": "PASS" if name in passing else "FAIL"} for name in "ABCDEF"]
    measures = {name: MEASURES[name] for name, _ in rows}
    return under_attack(AuditTables(None, summary, None), {"rules": [{"models": judged}] * rules}, measures)


def test_the_passing_model_that_falls_first_and_the_reversed_order_are_named():
    assert sentences(REVERSED) == [
        "A passes, yet is right on only 7% of the samples under attack (attack); 2 other models that pass are right on "
        "less than half",
        "The order of the models by great is nearly the reverse of their order under attack (Spearman −1.00, attack)",
    ]


def test_of_two_sources_the_bounded_one_names_the_model_and_the_stated_one_the_order():
    weakest, order = sentences(REVERSED, stated=[0.1, 0.3, 0.2, 0.75, 0.7, 0.8])
    assert "7% of the samples under attack (attack)" in weakest
    assert order.endswith("(Spearman −0.886, as published)")


def test_an_audit_without_attacks_says_so_first():
    first, *others = sentences(stated=REVERSED)
    assert first == (
        "This audit ran no attack on its images: the score says how clearly the classes are told apart, not what an "
        "attack would leave"
    )
    assert len(others) == 2
    assert "no attack" not in " ".join(sentences(REVERSED))
    only_accuracy = {"clean": {"kind": "clean"}}
    assert _no_attack(only_accuracy) == "This audit ran no attack on its images"
    for kind in ("adversarial", "minimal", "targeted"):
        assert _no_attack(only_accuracy | {"attack": {"kind": kind}}) is None
    for kind in ("certified", "probabilistic", "corruption"):
        assert _no_attack(only_accuracy | {"other": {"kind": kind}})


@pytest.mark.parametrize(
    ("passing", "width", "expected"),
    [
        ("CDEF", 0.05, "C passes, yet is right on only 30% of the samples under attack (attack)"),
        ("BCDEF", 0.05, "B passes, yet is right on only 20% of the samples under attack (attack); 1 other model that"),
        # Its upper bound reaches one half: no more than the data say.
        ("CDEF", 0.2, None),
        ("DEF", 0.05, None),
        ("", 0.05, None),
    ],
)
def test_only_models_that_pass_and_are_surely_below_one_half_are_named(passing, width, expected):
    found = [sentence for sentence in sentences(REVERSED, passing=passing, width=width) if "passes" in sentence]
    assert [sentence[: len(expected)] for sentence in found] == ([expected] if expected else [])


def test_nothing_is_said_of_agreeing_or_unclear_orders_nor_without_an_attack_or_a_rule():
    assert sentences([0.9, 0.85, 0.8, 0.75, 0.7, 0.65]) == []
    assert sentences([0.8, 0.6, 0.9, 0.7, 0.95, 0.75]) == []
    assert len(sentences()) == 1
    assert not any("passes" in sentence for sentence in sentences(REVERSED, rules=0))


def test_stated_accuracies_serve_where_the_audit_attacks_nothing():
    _, weakest, order = sentences(stated=REVERSED)
    assert "A passes, yet is right on only 7% of the samples under attack (as published)" in weakest
    assert "nearly the reverse" in order
