"""What a report says about the papers behind it: only what the ledger refutes, and only what bears on the page."""

import re

import pytest

from gfscore.show.report.source_claims import CALIBRATION, REFUTED, refuted_here
from studies.reproduction import ledger


@pytest.fixture(scope="module")
def claims():
    return {claim.key: claim for claim in ledger()}


@pytest.mark.parametrize("words", [*REFUTED.values(), CALIBRATION])
def test_every_claim_that_is_named_is_refuted_in_the_ledger(claims, words):
    keys = re.findall(r"\b(?:H|EB|MA|CW|PF)\d+\b", words)
    assert keys
    assert {claims[key].verdict for key in keys} == {"refuted"}


def test_numbers_are_those_of_the_ledger(claims):
    claimed = claims["H1"].claimed.split(" to ")
    ours = [f"{float(number):.3f}" for number in claims["H1"].ours.split(" to ")]
    alone = re.search(r"clean accuracy alone ([\d.]+)", claims["H4"].ours)[1]
    assert re.findall(r"0\.\d+", CALIBRATION) == [*claimed, ours[1], alone]
    assert ours[0] == claimed[0]
    assert claims["CW2"].ours.startswith("0.900 for a class never recognised")


def test_only_what_bears_on_a_page_is_named():
    assert refuted_here({"clean"}, errors=[], groups=None, projection=None) == []
    assert refuted_here({"clean", "great"}, errors=[], groups=None, projection=None) == [REFUTED["great"]]
    everything = refuted_here(REFUTED.keys(), errors=[1], groups=[1], projection=[1])
    assert everything == list(REFUTED.values())


def test_notes_can_be_read_outside_of_markdown(claims):
    # The dashboard shows them as they are.
    assert not [claim.key for claim in claims.values() if "](" in claim.note + claim.ours + claim.claim]
