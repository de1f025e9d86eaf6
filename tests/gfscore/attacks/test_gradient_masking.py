import numpy as np

from gfscore.attacks.gradient_masking import Attacked, masking_warnings

NAN = float("nan")


def attacked(distance, *, eps=0.1, attack=None, tried=("pgd",), norm="linf", labels=None, ids=None):
    distance = np.array(distance, dtype=float)
    attack = [None if np.isnan(d) else tried[0] for d in distance] if attack is None else attack
    ids = [f"s{i}" for i in range(len(distance))] if ids is None else ids
    labels = np.zeros(len(distance), int) if labels is None else labels
    return Attacked(np.array(ids), np.array(labels), norm, eps, distance, np.array(attack, dtype=object), tried)


def test_nothing_suspicious_gives_no_sign():
    weak = attacked([0.05, NAN, NAN, 0.0], eps=0.05)
    strong = attacked([0.09, 0.1, NAN, 0.0], eps=0.1)
    assert masking_warnings({"small": weak, "large": strong}) == []


def test_what_a_smaller_ball_gave_and_a_larger_one_did_not_is_proof():
    small = attacked([0.04, 0.05, NAN, 0.0], eps=0.05)
    large = attacked([NAN, 0.1, NAN, NAN], eps=0.1)
    (sign,) = masking_warnings({"small": small, "large": large})
    assert (sign.measure, sign.other, sign.count, sign.n, sign.proof) == ("large", "small", 1, 4, True)
    assert "1 of 4 samples survive large though small broke them" in sign.text


def test_one_step_that_beats_many_is_proof_and_samples_are_joined_by_name():
    fgsm = attacked([0.1, 0.1, NAN], tried=("fgsm",), ids=["c", "a", "z"])
    pgd = attacked([NAN, NAN, 0.1], ids=["a", "b", "c"])
    (sign,) = masking_warnings({"fgsm": fgsm, "pgd": pgd})
    assert (sign.measure, sign.other, sign.count, sign.n) == ("pgd", "fgsm", 1, 2)


def test_other_norms_and_larger_distances_say_nothing():
    found = attacked([0.04], norm="l2")
    far = attacked([0.11], eps=0.2)
    assert masking_warnings({"a": attacked([NAN]), "b": found, "c": far}) == []


def test_rounding_at_the_edge_of_the_ball_does_not_hide_a_proof():
    (sign,) = masking_warnings({"fgsm": attacked([0.1 + 1e-8]), "pgd": attacked([NAN])})
    assert sign.count == 1


def test_a_black_box_attack_that_beats_gradients_is_suspicious():
    tried = ("apgd-ce", "square")
    distance, attack = [0.1] * 2 + [NAN] * 398, ["apgd-ce", "square"] + [None] * 398
    (sign,) = masking_warnings({"m": attacked(distance * 1, attack=["square", "square"] + [None] * 398, tried=tried)})
    assert (sign.count, sign.n, sign.proof, sign.other) == (2, 400, False, None)
    assert "square, which uses no gradients, broke 2 of 400" in sign.text
    # One of 600 is what search by chance finds.
    assert (
        len(masking_warnings({"m": attacked([0.1] + [NAN] * 599, attack=["square"] + [None] * 599, tried=tried)})) == 0
    )
    assert len(masking_warnings({"m": attacked(distance, attack=attack, tried=tried)})) == 1
    # Before any gradient, or without them, it has beaten nothing.
    for order in (("square", "apgd-ce"), ("square",)):
        assert masking_warnings({"m": attacked([0.1] * 4, attack=["square"] * 4, tried=order)}) == []


def test_survivors_of_several_classes_around_the_grey_image_are_proof():
    distance, labels = [NAN, NAN, NAN, 0.4], [0, 0, 1, 2]
    (sign,) = masking_warnings({"huge": attacked(distance, eps=0.5, labels=labels)})
    assert (sign.count, sign.proof) == (1, True)
    assert "at least 1 of them" in sign.text
    # All of one class may be right; in a smaller ball anything may.
    assert masking_warnings({"huge": attacked(distance, eps=0.5, labels=[0, 0, 0, 1])}) == []
    assert masking_warnings({"large": attacked(distance, eps=0.49, labels=labels)}) == []


def test_an_empty_measure_gives_no_sign():
    assert masking_warnings({"none": attacked([], tried=("pgd", "square"), eps=0.5)}) == []
