"""Samples that fit into the minutes."""

import pytest

from gfscore.workflow.new_audit.audit_file import FEW_SAMPLES, START_SECONDS, proofs_leave_enough_attacks, sizes


def test_everything_is_taken_where_time_suffices():
    found = sizes([1e-5], [50] * 10, attack_count=1, minutes=5)
    assert (found.clean, found.adversarial, found.minimal) == (None, None, None)
    assert START_SECONDS < found.seconds < 300


def test_more_time_takes_more_and_what_is_taken_fits():
    before = 0
    for minutes in (2, 5, 20, 60):
        found = sizes([0.01], [1000] * 10, attack_count=1, minutes=minutes)
        assert found.seconds <= 60 * minutes
        assert found.adversarial > before
        before = found.adversarial


@pytest.mark.parametrize(
    ("changes", "factor"), [({"attack_count": 3}, 3), ({"forward_seconds": [0.002]}, 2), ({"counts": [1000] * 20}, 2)]
)
def test_radii_passes_and_classes_share_the_time(changes, factor):
    usual = {"forward_seconds": [0.001], "counts": [1000] * 10, "attack_count": 1, "minutes": 5}
    base, less = (sizes(**usual | changed).adversarial for changed in ({}, changes))
    assert less == pytest.approx(base / factor, rel=0.11)


def test_at_least_one_of_each_class_is_taken():
    found = sizes([10.0], [1000] * 1000, attack_count=3, minutes=1)
    assert found.clean == found.adversarial == found.minimal == 1
    assert found.seconds > 60


def test_twenty_of_each_of_ten_classes_are_attacked_in_five_minutes_at_two_milliseconds_a_pass():
    assert sizes([0.002], [50] * 10, attack_count=1, minutes=5).adversarial >= FEW_SAMPLES


def test_proofs_and_attacks_are_of_the_same_samples_and_fit_together():
    usual = {"forward_seconds": [0.001], "counts": [1000] * 10, "attack_count": 1, "minutes": 5}
    without = sizes(**usual)
    with_proofs = sizes(**usual, proof_seconds=[0.3])
    assert with_proofs.proven and not without.proven
    # Of 270 s for computing proofs have 108 s, at .3 / 1.6 s each 57 of each class, and attacks 97 s, at .35 s each 27.
    assert with_proofs.adversarial == 27
    assert with_proofs.seconds <= 300
    assert proofs_leave_enough_attacks(with_proofs, without, usual["counts"])
    assert not proofs_leave_enough_attacks(sizes(**usual, proof_seconds=[3.0]), without, usual["counts"])


def test_proofs_of_everything_are_no_fewer_than_attacks_on_everything():
    usual = {"forward_seconds": [1e-5], "counts": [50] * 10, "attack_count": 1, "minutes": 5}
    with_proofs = sizes(**usual, proof_seconds=[0.01])
    assert with_proofs.adversarial is None
    assert proofs_leave_enough_attacks(with_proofs, sizes(**usual), usual["counts"])
