import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from gfscore.audit.agreement.gradient_masking import Attacked, masking_table, masking_warnings
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import measure_batch as attack
from gfscore.measures.minimal import Minimal
from gfscore.measures.minimal.batch import measure_batch as nearest
from gfscore.networks.classifier import from_network
from helpers.samples import seeds_of
from helpers.steps import audit_inputs, models_named

NAN = float("nan")
EPS = 0.15
FGSM, PGD = {"name": "fgsm"}, {"name": "pgd", "steps": 20, "step_size": EPS / 8, "restarts": 1}
SQUARE = {"name": "square", "queries": 300}


def attacked(distance, *, eps=0.1, attack=None, tried=("pgd",), norm="linf", labels=None, ids=None, passes=None):
    distance = np.array(distance, dtype=float)
    attack = [None if np.isnan(d) else tried[0] for d in distance] if attack is None else attack
    ids = [f"s{i}" for i in range(len(distance))] if ids is None else ids
    labels = np.zeros(len(distance), int) if labels is None else labels
    passes = None if passes is None else np.full(len(distance), passes)
    return Attacked(np.array(ids), np.array(labels), norm, eps, distance, np.array(attack, dtype=object), tried, passes)


def found(count, n=100, *, at=0.05):
    """Distances of n samples of which the first so many were broken."""
    return [at] * count + [NAN] * (n - count)


# Networks whose gradients are known to be honest, or masked


class Rounded(nn.Module):
    """Pixels are rounded, so that no gradient is left."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(torch.round(16 * x) / 16)


class Saturated(Rounded):
    """The softmax is 0 or 1 in float32: its cross-entropy has no gradient, though the log-odds have."""

    def forward(self, x):
        return 1e4 * self.network(x)


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return (data.images / 16).astype(np.float32)[:, None], data.target.astype(np.int64)


@pytest.fixture(scope="module")
def honest(digits):
    """A small convolutional network, trained without any defence."""
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(256, 10)),
    )
    x, y = (torch.from_numpy(part[:1200]) for part in digits)
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(6):
        for chosen in torch.randperm(1200).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(x[chosen]), y[chosen]).backward()
            optimiser.step()
    return network.eval()


def signs_of(network, digits, *, n=200):
    """Signs in one-step, iterated, gradient-free and minimal-norm attacks, with passes known and unknown."""
    classifier = from_network(network)
    x = digits[0][1200 : 1200 + n]
    y = classifier.logits(x).argmax(1).astype(np.int64)
    measures = {}
    for name, eps, entry in (("fgsm", EPS, FGSM), ("pgd", EPS, PGD), ("near", EPS / 3, PGD), ("square", EPS, SQUARE)):
        settings = Adversarial.model_validate({"norm": "linf", "eps": eps, "attacks": [entry]})
        columns = attack(classifier, x, y, settings=settings, seeds=seeds_of(x))
        measures[name] = (eps, columns["distance"], columns, entry["name"])
    for name in ("fmn", "deepfool"):
        settings = {"norm": "linf", "largest_distance": 0.5, "attacks": [{"name": name}], "bisection_steps": 10}
        columns = nearest(classifier, x, y, settings=Minimal.model_validate(settings), seeds=seeds_of(x))
        measures[name] = (0.5, np.where(columns["censored"], NAN, columns["value"]), columns, name)
    return [
        masking_warnings(
            {
                name: Attacked(np.arange(n), y, "linf", eps, distance, columns["attack"], (tried,), passes)
                for name, (eps, distance, columns, tried) in measures.items()
                for passes in [columns["steps"] if known else None]
            }
        )
        for known in (True, False)
    ], {name: np.isnan(distance).sum() for name, (_, distance, _, _) in measures.items()}


def test_an_honest_network_shows_no_sign_though_weaker_attacks_fail(honest, digits):
    signs, survivors = signs_of(honest, digits)
    # One step, and a search of few queries, do leave samples that many steps break.
    assert survivors["fgsm"] > survivors["pgd"] + 3
    assert survivors["square"] > survivors["pgd"] + 20
    assert signs == [[], []]


def test_rounded_pixels_are_given_away_by_what_uses_no_gradients_and_by_the_grey_image(honest, digits):
    for signs in signs_of(Rounded(honest), digits)[0]:
        shown = {(sign.measure, sign.other) for sign in signs}
        assert {("pgd", "square"), ("fmn", "square"), ("fmn", None)} <= shown
        assert not {measure for measure, _ in shown} & {"fgsm", "square"}
        assert all(sign.proof for sign in signs)


def test_a_saturated_softmax_hides_nothing(honest, digits):
    signs, survivors = signs_of(Saturated(honest), digits)
    assert signs == [[], []]
    assert survivors["pgd"] <= signs_of(honest, digits)[1]["pgd"] + 10


# Each rule by itself


def test_what_a_smaller_ball_gave_and_a_larger_one_did_not_is_proof():
    # Besides: found in both, found in neither, wrong without a perturbation.
    small = attacked([*[0.04] * 3, *[0.05] * 98, NAN, 0.0], eps=0.05)
    large = attacked([*[NAN] * 3, *[0.1] * 98, NAN, NAN], eps=0.1)
    (sign,) = masking_warnings({"small": small, "large": large})
    assert (sign.measure, sign.other, sign.count, sign.n, sign.proof) == ("large", "small", 3, 103, True)
    assert "3 of 103 samples survive large though small broke them" in sign.text
    assert "too weak or misled" in sign.text


def test_one_step_that_beats_many_is_proof_and_samples_are_joined_by_name():
    fgsm = attacked([0.1, 0.1, 0.1, NAN], tried=("fgsm",), ids=["c", "a", "b", "z"])
    pgd = attacked([NAN, NAN, 0.1], ids=["a", "b", "c"])
    (sign,) = masking_warnings({"fgsm": fgsm, "pgd": pgd})
    assert (sign.measure, sign.other, sign.count, sign.n) == ("pgd", "fgsm", 2, 3)


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (("fgsm",), ("pgd",)),
        (("fgsm", "square"), ("apgd-ce",)),
        (("square",), ("pgd",)),
        (("deepfool",), ("fmn",)),
        (("deepfool",), ("fmn", "deepfool")),
        (("pgd",), ("pgd",)),
        (("pgd",), ("pgd", "pgd")),
    ],
)
def test_attacks_that_are_weaker_by_design_are_not_held_against_stronger_ones(weak, strong):
    measures = {"weak": attacked(found(0), tried=weak), "strong": attacked(found(90), tried=strong)}
    assert masking_warnings(measures) == []


def test_a_few_samples_are_noise():
    for other, most in (("fgsm", 2), ("square", 2), ("fmn", 10)):
        for hits, signs in ((most, 0), (most + 1, 1)):
            measures = {"pgd": attacked(found(0)), "other": attacked(found(hits), tried=(other,))}
            assert len(masking_warnings(measures)) == signs, (other, hits)
    # A single sample is, of any number.
    assert masking_warnings({"pgd": attacked(found(0, 3)), "other": attacked(found(1, 3), tried=("fgsm",))}) == []


@pytest.mark.parametrize(
    ("other", "passes", "signs"),
    [
        # The same attack in a smaller ball has to get by with as many passes, a different one with ten times as many.
        ({"eps": 0.05}, 21, 1),
        ({"eps": 0.05}, 22, 0),
        ({"eps": 0.05}, None, 1),
        ({"tried": ("fmn",), "eps": 0.5}, 210, 1),
        ({"tried": ("fmn",), "eps": 0.5}, 211, 0),
        # Without gradients, passes are no steps.
        ({"tried": ("square",)}, 5000, 1),
    ],
)
def test_fewer_passes_are_weaker_by_design(other, passes, signs):
    measures = {"pgd": attacked(found(0), passes=21), "other": attacked(found(50), passes=passes, **other)}
    assert len(masking_warnings(measures)) == signs


def test_other_norms_and_larger_distances_say_nothing():
    found = attacked([0.04], norm="l2")
    far = attacked([0.11], eps=0.2)
    assert masking_warnings({"a": attacked([NAN]), "b": found, "c": far}) == []


def test_within_the_radius_means_but_for_the_rounding_of_pixels():
    for outside, signs in ((1e-8, 1), (9e-7, 1), (9e-6, 0)):
        one_step = attacked(found(5, at=0.1 + outside), tried=("fgsm",))
        assert len(masking_warnings({"fgsm": one_step, "pgd": attacked(found(0))})) == signs


def test_a_black_box_attack_that_beats_gradients_is_suspicious():
    tried = ("apgd-ce", "square")

    def of(squares, n, tried=tried):
        return masking_warnings(
            {"m": attacked(found(squares, n), attack=["square"] * squares + [None] * (n - squares), tried=tried)}
        )

    (sign,) = of(2, 400)
    assert (sign.count, sign.n, sign.proof, sign.other) == (2, 400, False, None)
    assert "square, which uses no gradients, broke 2 of 400" in sign.text
    # What search by chance finds; what the gradients found is none of it.
    assert of(1, 600) == of(1, 300) == of(2, 1000) == []
    mixed = attacked(found(4), attack=["apgd-ce"] * 3 + ["square"] + [None] * 96, tried=tried)
    assert masking_warnings({"m": mixed}) == []
    # Before any gradient, without them, or after one step, it has beaten nothing.
    for order in (("square", "apgd-ce"), ("square",), ("fgsm", "square")):
        assert of(4, 4, order) == []
    assert len(of(4, 4, ("fgsm", "pgd", "square"))) == 1


def test_survivors_of_several_classes_around_the_grey_image_are_proof():
    distance, labels = [NAN, NAN, NAN, NAN, 0.4], [0, 0, 1, 1, 2]
    (sign,) = masking_warnings({"huge": attacked(distance, eps=0.5, labels=labels)})
    assert (sign.count, sign.proof) == (2, True)
    assert "at least 2 of them" in sign.text
    # All of one class may be right; in a smaller ball anything may; one sample may be missed, and one step may fail.
    assert masking_warnings({"huge": attacked(distance, eps=0.5, labels=[0, 0, 0, 0, 1])}) == []
    assert masking_warnings({"huge": attacked(distance, eps=0.5, labels=[0, 0, 0, 1, 1])}) == []
    assert masking_warnings({"large": attacked(distance, eps=0.49, labels=labels)}) == []
    for tried in (("fgsm",), ("square",), ("fgsm", "square")):
        assert masking_warnings({"huge": attacked(distance, eps=0.5, labels=labels, tried=tried)}) == []


def test_an_empty_measure_gives_no_sign():
    assert masking_warnings({"none": attacked([], tried=("pgd", "square"), eps=0.5)}) == []


def test_the_signs_of_an_audit_with_minimal_distances_only(tmp_path):
    """Survivors of several classes where every ball holds the grey image, and one attack that beats another."""
    n = 40
    measures = {
        name: {"kind": "minimal", "norm": "linf", "largest_distance": end, "attacks": [{"name": attack}]}
        for name, end, attack in (("near", 0.5, "fmn"), ("far", 0.6, "fab"))
    }
    missed = np.arange(n) < n // 2
    frames = {
        ("m", name): pd.DataFrame(
            {
                "sample_id": [f"s{row}" for row in range(n)],
                "label": np.arange(n) % 4,
                "prediction": 0,
                "value": np.where(censored, measures[name]["largest_distance"], 0.1),
                "censored": censored,
                "attack": np.where(censored, None, measures[name]["attacks"][0]["name"]),
                "steps": 50,
            }
        )
        for name, censored in (("near", missed), ("far", np.zeros(n, dtype=bool)))
    }
    found = masking_table(audit_inputs(tmp_path, models_named("m"), measures, frames), 4)
    assert found["measure"].tolist() == ["near", "near"] and found["proof"].all()
    assert found["count"].tolist() == [15, 20]
    assert found["other"].isna().tolist() == [True, False] and found["other"].iloc[1] == "far"
