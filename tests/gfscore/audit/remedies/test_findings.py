import pandas as pd
import pytest

from gfscore.audit.remedies.findings import HELPS, NOT_SHOWN, finding_of, remedies_in_short
from helpers.synthetic_audits import remedied

CLASSES = ["cat", "dog", "frog"]


def findings(tables):
    return [finding_of(row) for row in in_short(tables).to_dict("records")]


def in_short(tables):
    return remedies_in_short(tables["remedy_models"], tables["remedy_classes"])


def test_a_sure_gain_helps_and_the_class_that_loses_most_pays():
    (finding,) = findings(remedied(["M"], CLASSES, per_class=300))
    assert finding.kind == HELPS
    assert finding.subject["model"] == "M" and finding.subject["payer"] == "frog"
    assert finding.numbers["before"] == pytest.approx(0.1) and finding.numbers["after"] == pytest.approx(0.4)
    assert 0 < finding.numbers["low"] < 0.3
    assert (finding.numbers["payer_before"], finding.numbers["payer_after"]) == pytest.approx((0.8, 0.5))
    assert (finding.numbers["gaining"], finding.numbers["losing"]) == (1, 1)
    assert "frog" in finding.sentence


def test_a_gain_that_is_not_sure_is_none():
    (finding,) = findings(remedied(["M"], CLASSES, per_class=20, gain=0.1))
    assert finding.kind == NOT_SHOWN and finding.numbers["after"] > finding.numbers["before"]
    assert finding.subject["payer"] is None and "payer_before" not in finding.numbers


def test_the_surest_gain_stands_first():
    tables = remedied(["A"], CLASSES, per_class=30)
    for name, frame in remedied(["B"], CLASSES, per_class=300).items():
        tables[name] = pd.concat([tables[name], frame], ignore_index=True)
    assert in_short(tables)["label"].tolist() == ["B", "A"]


def test_verdicts_before_and_after_are_part_of_the_finding():
    verdicts = {"none/M": "FAIL", "none/M adjusted": "INCONCLUSIVE"}
    (finding,) = findings(remedied(["M"], CLASSES, verdicts=verdicts))
    assert (finding.subject["verdict_before"], finding.subject["verdict_after"]) == ("FAIL", "INCONCLUSIVE")
