"""Search in fast arithmetic: what float32 does not confirm never counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.attacks.gradient_ascent import misclassified
from gfscore.attacks.registry import BALL_ATTACKS
from gfscore.attacks.search import confirmed_attack, shortened
from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from gfscore.networks.classifier import from_network
from gfscore.networks.number_types import NetworkWithSearch
from gfscore.networks.precision import network_in, search_precision
from helpers.networks import curved, grey, one_thread, predicted, pretended  # noqa: F401
from helpers.real_bounds import sequence_of
from helpers.samples import draws_of, seeds_of

pytestmark = pytest.mark.usefixtures("one_thread")

PGD = {"name": "pgd", "steps": 20, "step_size": None, "restarts": 1}
SETTINGS = {
    "adversarial": {"norm": "linf", "eps": 0.01, "attacks": [PGD]},
    "targeted": {"norm": "linf", "eps": 0.01, "steps": 20, "step_size": None, "restarts": 1},
    "minimal": {
        "norm": "l2",
        "largest_distance": 0.05,
        "bisection_steps": 8,
        "attacks": [{"name": "fmn", "steps": 20}],
    },
}


def measured(kind, network, images, labels, search="float32", **changes):
    classifier = replace(from_network(network), search=search)
    settings = SETTINGS[kind] | changes
    return KINDS[kind].load()(
        classifier, images, np.asarray(labels), settings=KINDS[kind].parse(settings), seeds=seeds_of(images)
    )


def flips_in_bfloat16():
    """Two logits that round to the same number of 8 bits, so that every image is a tie there, and none in float32."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    with torch.no_grad():
        network[1].weight.fill_(1e-4)
        network[1].weight[1].neg_()
        network[1].bias.copy_(torch.tensor([100.1, 100.0]))
    return network.eval()


@pytest.mark.parametrize(("kind", "robust"), [("adversarial", 1), ("targeted", 1), ("minimal", 0.05)])
def test_a_success_that_float32_does_not_confirm_never_counts(kind, robust):
    network, images = flips_in_bfloat16(), grey(6)
    labels = np.zeros(6, dtype=np.int64)
    with network_in(network, "bfloat16") as fast, torch.no_grad():
        assert misclassified(fast(torch.from_numpy(images)), torch.from_numpy(labels)).all()
    exact, fast = measured(kind, network, images, labels), measured(kind, network, images, labels, "bfloat16")
    np.testing.assert_array_equal(fast["value"], robust)
    np.testing.assert_array_equal(fast["prediction"], exact["prediction"])
    if kind != "targeted":
        # All of float32's search, what the fast one took, and two passes that confirm it.
        assert (fast["steps"] >= exact["steps"] + 3).all()


def test_images_of_a_refuted_search_are_attacked_anew_with_the_same_draws(monkeypatch):
    network, images = curved(3), grey(12)
    labels = torch.from_numpy(predicted(network, images))
    pixels, attack = torch.from_numpy(images), BALL_ATTACKS["pgd"].load()
    how = {"ball": {"norm": "linf", "eps": 0.1}, "steps": 10, "step_size": None, "restarts": 2, "draws": draws_of(12)}
    in_float32, _ = attack(network, pixels, labels, **how)

    def wrong(network, *_, **__):
        return pixels.clone(), torch.arange(12)

    calls = []

    def attacked(given, *arguments, **settings):
        calls.append(given)
        return (wrong if len(calls) == 1 else attack)(given, *arguments, **settings)

    points, passes = confirmed_attack(attacked, misclassified, precision="bfloat16")(network, pixels, labels, **how)
    # All but the last left the search early without a success; the last gets a short attack.
    torch.testing.assert_close(points[:-1], in_float32[:-1], rtol=0, atol=1e-6)
    assert calls[1] is network
    assert calls[2] is network
    assert (passes[:-1] > torch.arange(11) + 2).all()


def test_float32_returns_the_attack_itself():
    attack = BALL_ATTACKS["pgd"].load()
    assert confirmed_attack(attack, misclassified, precision="float32") is attack


def test_short_attacks_have_a_tenth_of_the_steps_or_queries():
    assert shortened({"steps": 100, "targets": 9}) == {"steps": 10, "targets": 9}
    assert shortened({"queries": 5000}) == {"queries": 500}
    assert shortened({"steps": 4}) == {"steps": 1}
    assert shortened({}) == {}


@pytest.mark.parametrize("name", ["fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-targeted", "fab", "square"])
@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_every_attack_searches_in_fast_arithmetic_and_loses_nothing(name, precision):
    options = {
        "fgsm": {}, "pgd": {"steps": 10, "step_size": None, "restarts": 2}, "apgd-ce": {"steps": 9, "restarts": 1},
        "apgd-dlr": {"steps": 9, "restarts": 1}, "apgd-targeted": {"steps": 9, "targets": 3},
        "fab": {"steps": 9, "targets": 3}, "square": {"queries": 40},
    }  # fmt: skip
    network, images = curved(5), grey(40)
    labels = predicted(network, images)
    attacks, eps = [{"name": name, **options[name]}], 0.06 if name == "square" else 0.02
    exact = measured("adversarial", network, images, labels, attacks=attacks, eps=eps)
    fast = measured("adversarial", network, images, labels, precision, attacks=attacks, eps=eps)
    assert 0 < exact["value"].mean() < 1
    # A network this small is searched in a ball where many images are near the boundary.
    assert abs(fast["value"].mean() - exact["value"].mean()) <= 0.05
    assert (fast["steps"] >= 1).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ["fmn", "deepfool"])
def test_distances_stay_upper_bounds_near_those_of_float32(name, norm):
    network, images = curved(5), grey(30)
    labels = predicted(network, images)
    changes = {"attacks": [{"name": name}], "norm": norm, "largest_distance": 2.0, "bisection_steps": 12}
    exact = measured("minimal", network, images, labels, **changes)
    fast = measured("minimal", network, images, labels, "bfloat16", **changes)
    assert not fast["censored"].any()
    assert (fast["prediction"] != labels).all()
    assert np.median(fast["value"] / exact["value"]) == pytest.approx(1, abs=0.02)


def test_robust_accuracy_of_a_real_network_stays_that_of_float32(real_data):
    network = sequence_of("kw_base_2_255", real_data / "cifar10/models")
    with np.load(real_data / "cifar10/test_lossless_1017.npz") as file:
        images, labels = file["x"].astype(np.float32) / 255, file["y"].astype(np.int64)
    changes = {"eps": 2 / 255, "attacks": [PGD]}
    exact = measured("adversarial", network, images, labels, **changes)
    fast = measured("adversarial", network, images, labels, "bfloat16", **changes)
    print(f"robust in float32 {exact['value'].mean():.4f}, searched in bfloat16 {fast['value'].mean():.4f}")
    assert abs(fast["value"].mean() - exact["value"].mean()) <= 0.002


# ---- which arithmetic ----


def test_auto_is_float32_on_the_processor():
    classifier = from_network(curved(3))
    assert search_precision("auto", classifier, device="cpu") == "float32"
    assert search_precision("bfloat16", classifier, device="cpu") == "bfloat16"
    with pytest.raises(InputError, match="search: auto"):
        search_precision("tf32", classifier, device="cpu")


@pytest.mark.parametrize(("capability", "expected"), [((9, 0), "tf32"), ((8, 0), "tf32"), ((7, 5), "float32")])
def test_auto_takes_tf32_where_the_card_has_it(monkeypatch, capability, expected):
    classifier = from_network(curved(3))
    with pretended():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
        assert search_precision("auto", classifier, device="cuda") == expected


@pytest.mark.parametrize("setting", ["auto", "float32", "tf32", "bfloat16"])
def test_networks_of_another_number_type_search_in_float32(setting):
    network = NetworkWithSearch(curved(3), curved(3).double(), "float64")
    classifier = from_network(network, number_type="float64")
    assert search_precision(setting, classifier, device="cpu") == "float32"


def test_a_search_that_is_stated_is_part_of_the_version_of_kinds_that_follow_it():
    for kind in KINDS.values():
        assert kind.version_with("auto") == str(kind.version)
        assert (kind.version_with("bfloat16") != str(kind.version)) == kind.fast_search


def test_tensor_float_is_allowed_during_the_search_alone():
    allowed = []

    def attack(network, images, aims):
        allowed.append(torch.backends.cuda.matmul.allow_tf32)
        return images.clone(), torch.ones(len(images), dtype=torch.int64)

    before = torch.backends.cuda.matmul.allow_tf32
    network, images = curved(3), torch.from_numpy(grey(4))
    labels = torch.from_numpy(predicted(network, images.numpy()))
    _, passes = confirmed_attack(attack, misclassified, precision="tf32")(network, images, labels)
    assert allowed == [True]
    assert torch.backends.cuda.matmul.allow_tf32 == before
    assert (passes == 3).all()


def test_only_the_passes_of_the_network_are_in_bfloat16():
    network = curved(3)
    images = torch.from_numpy(grey(4)).requires_grad_()
    with network_in(network, "bfloat16") as fast:
        logits = fast(images)
        assert torch.rand(2, 2).matmul(torch.rand(2, 2)).dtype == torch.float32
    slope = torch.autograd.grad(logits.sum(), images)[0]
    assert logits.dtype == slope.dtype == torch.float32
    difference = (logits - network(images)).abs().max()
    assert 1e-5 < difference < 0.1
