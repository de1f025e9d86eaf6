"""The evidence interval of one proof and several attacks: which measures make it, and what it says of each sample."""

import pandas as pd
import pytest

from gfscore.core.errors import InputError
from gfscore.measures import KINDS, named_measures
from gfscore.measures.names import entry_named, name_of
from gfscore.measures.robust import KIND

PROOF = {"kind": "proven", "eps": "2/255"}
ATTACK = {"kind": "adversarial", "eps": "2/255"}
AUDIT = {
    "clean": {"kind": "clean"},
    "proof": PROOF,
    "attack": ATTACK,
    "stronger": {**ATTACK, "attacks": [{"name": "autoattack"}]},
    "wider": {**ATTACK, "eps": "8/255"},
    "round": {**ATTACK, "norm": "l2"},
    "few": {**ATTACK, "subset": {"samples": 5}},
}


def members(entry, audit=AUDIT):
    measures = named_measures({**audit, "band": {"kind": "robust", "eps": "2/255", **entry}})
    return [member.name for member in measures["band"].members(measures)]


def test_it_is_made_of_the_proof_and_all_attacks_of_its_ball_on_the_same_samples():
    assert members({}) == ["proof", "attack", "stronger"]
    assert members({"members": ["stronger", "proof"]}) == ["proof", "stronger"]


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"members": ["proof", "attck"]}, "attack"),
        ({"members": ["proof", "wider"]}, "wider"),
        ({"members": ["proof", "round"]}, "round"),
        ({"members": ["proof", "clean"]}, "clean"),
        ({"members": ["proof", "attack", "few"]}, "few"),
        ({"members": ["proof"]}, "adversarial"),
        ({"members": ["attack"]}, "proven"),
        ({"eps": "8/255"}, "proven"),
    ],
)
def test_other_balls_samples_and_kinds_are_refused_by_name(entry, named):
    with pytest.raises(InputError, match=named):
        members(entry)


def test_two_proofs_of_a_ball_are_chosen_between_by_name():
    audit = AUDIT | {"longer": {**PROOF, "budget": 10**6}}
    with pytest.raises(InputError, match="proof and longer"):
        members({}, audit)
    assert members({"members": ["longer", "attack"]}, audit) == ["longer", "attack"]


@pytest.mark.parametrize(
    ("names", "offered"),
    [
        (["proof", "attack"], ["robust-linf-2of255"]),
        (["proof", "wider"], []),
        (["proof", "few"], []),
        (["attack", "stronger"], []),
        (["proof"], []),
    ],
)
def test_an_audit_has_it_without_naming_it_where_its_measures_make_one(names, offered):
    entries = list(KIND.entries_for(named_measures({name: AUDIT[name] for name in names})))
    assert [name_of(entry) for entry in entries] == offered
    assert [entry_named(name) for name in offered] == entries


def test_an_audit_that_names_it_has_it_once():
    named = {"band": {"kind": "robust", "eps": "2/255"}}
    assert not list(KIND.entries_for(named_measures(AUDIT | named)))


def table(values, status=None):
    samples = pd.DataFrame({"value": values, "prediction": 0.0}, index=["a", "b", "c", "d"])
    return samples if status is None else samples.assign(status=status)


def interval(*tables):
    sources = [f"file-{position}" for position in range(len(tables))]
    columns = KIND.load()(tables, settings=KINDS["robust"].parse({"kind": "robust"}), sources=sources)
    low = columns["value"]
    return list(zip(low, low + columns["censored"], strict=True))


def test_each_sample_is_proven_attacked_or_open():
    proof = table([1, 0, 0, 0], ["proven", "refuted_float32", "open", "open"])
    assert interval(proof, table([1, 1, 1, 1])) == [(1, 1), (0, 0), (0, 1), (0, 1)]
    # A second attack breaks what the first leaves.
    assert interval(proof, table([1, 1, 1, 1]), table([1, 1, 1, 0])) == [(1, 1), (0, 0), (0, 1), (0, 0)]


def test_a_sample_that_a_member_lacks_is_known_by_the_others_alone():
    missing = float("nan")
    proof = table([1, missing, missing, 0], ["proven", None, None, "open"])
    assert interval(proof, table([missing, 0, 1, missing])) == [(1, 1), (0, 0), (0, 1), (0, 1)]


def test_a_proof_that_an_attack_refutes_is_an_error_that_names_sample_and_files():
    proof = table([0, 1, 1, 0], ["open", "proven", "proven", "open"])
    with pytest.raises(InputError, match=r"file-0 and file-2: the sample 'c'.*\b1\b"):
        interval(proof, table([1, 1, 1, 1]), table([1, 1, 0, 1]))
