from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.attacks import libraries
from gfscore.attacks.gradient_ascent import correct
from gfscore.attacks.minimal_norm import deepfool, fmn, refine
from gfscore.attacks.registry import ATTACKS, MINIMAL_ATTACKS, parse_attack
from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from gfscore.networks.classifier import from_network
from helpers.networks import Wrapped, broken, capped, grey, linear, margins, predicted, rounded
from helpers.networks import curved as curved_network
from helpers.samples import seeds_of

measure_batch = KINDS["minimal"].load()

SHAPE = (3, 4, 4)
ALL = {norm: [name for name in MINIMAL_ATTACKS if norm in ATTACKS[name].norms] for norm in ("l2", "linf")}
OPTIONS = {"carlini-wagner": {"steps": 60, "binary_search_steps": 6}, "fab": {"steps": 20}}


def measured(network, images, labels, *, norm="l2", attacks=({"name": "fmn"},), **changes):
    settings = {"norm": norm, "largest_distance": 2.0, "bisection_steps": 14, "attacks": list(attacks)} | changes
    return measure_batch(
        from_network(network), images, labels, settings=KINDS["minimal"].parse(settings), seeds=seeds_of(images)
    )


@pytest.mark.parametrize(("norm", "name"), [(norm, name) for norm, names in ALL.items() for name in names])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_every_attack_finds_the_closed_form_distance_of_a_linear_model(classes, norm, name):
    network, images = linear(classes), grey(20)
    labels = predicted(network, images)
    # Nearer to the boundary than this, float32 pixels are coarser than the tolerance.
    images = images[margins(network, images, labels, norm) > 2e-3]
    labels = predicted(network, images)
    assert len(images) >= 10
    result = measured(network, images, labels, norm=norm, attacks=[{"name": name, **OPTIONS.get(name, {})}])
    truth = margins(network, images, labels, norm)
    assert not result["censored"].any()
    assert set(result["attack"]) == {name}
    np.testing.assert_array_less(truth * (1 - 1e-4), result["value"])
    assert (result["value"] / truth).max() <= 1.001
    assert (result["prediction"] != labels).all()


def test_projections_after_carlini_and_wagner_end_no_farther_and_often_nearer(curved):
    network, images, labels = curved
    attacks = [{"name": "carlini-wagner", **OPTIONS["carlini-wagner"]}]
    drawn = measured(network, images, labels, attacks=attacks)
    with patch.object(libraries, "_projected_nearer", lambda network, images, candidates, labels: candidates):
        plain = measured(network, images, labels, attacks=attacks)
    attacked = plain["value"] > 0
    # Bisection stops within 2^-14 of a crossing.
    assert (drawn["value"] <= plain["value"] * (1 + 2e-4)).all()
    assert (drawn["value"][attacked] < 0.999 * plain["value"][attacked]).mean() > 0.2
    # They cost a few dozen passes, which are counted.
    more = drawn["steps"][attacked] - plain["steps"][attacked]
    assert (more == more[0]).all()
    assert 40 <= more[0] <= 60


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ["fmn", "deepfool"])
@pytest.mark.parametrize("scale", [1e-32, 1e-22, 1e-6, 1e3, 1e20, 1e32])
def test_the_scale_of_the_logits_does_not_matter(scale, name, norm):
    """Also where squares of gradients overflow in float32, or vanish."""
    network, images = linear(4, scale=scale), grey(8)
    labels = predicted(network, images)
    result = measured(network, images, labels, norm=norm, attacks=[{"name": name}])
    np.testing.assert_allclose(result["value"], margins(network, images, labels, norm), rtol=1e-3)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_where_the_box_binds_the_distance_is_the_constrained_one(norm):
    """Two pixels, one at its limit: only the other can move towards the boundary x0 + x1 = 1.2."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[0.0, 0.0], [5.0, 1.0]]))
        network[1].bias.copy_(torch.tensor([0.0, -5.4]))
    images = np.array([[0.98, 0.2]], dtype=np.float32).reshape(1, 1, 1, 2)
    # 5 * 1 + x1 = 5.4 at x1 = 0.4, since x0 cannot exceed 1.
    expected = np.hypot(0.02, 0.2) if norm == "l2" else 0.2
    for name in {"l2": ("fmn", "carlini-wagner"), "linf": ("fmn",)}[norm]:
        result = measured(network, images, np.array([0]), norm=norm, attacks=[{"name": name, "steps": 100}])
        assert result["value"][0] == pytest.approx(expected, rel=2e-3), name


@pytest.fixture(scope="module")
def curved():
    network = curved_network(4)
    images = np.random.default_rng(3).random((40, *SHAPE), dtype=np.float32)
    labels = predicted(network, images)
    labels[:5] = (labels[:5] + 1) % 4
    return network, images, labels


def test_misclassified_samples_have_distance_0_and_are_not_attacked(curved):
    network, images, labels = curved
    result = measured(network, images, labels, attacks=[{"name": "deepfool"}])
    assert (result["value"][:5] == 0).all()
    assert set(result["attack"][:5]) == {"clean"}
    assert (result["steps"][:5] == 1).all()
    assert not result["censored"][:5].any()
    np.testing.assert_array_equal(result["prediction"][:5], predicted(network, images[:5]))
    assert (result["value"][5:] > 0).all()
    assert (result["steps"][5:] > 15).all()


@pytest.mark.parametrize("name", MINIMAL_ATTACKS)
def test_a_batch_of_misclassified_samples_only(curved, name):
    network, images, labels = curved
    result = measured(network, images[:5], labels[:5], attacks=[{"name": name}])
    assert (result["value"] == 0).all()
    assert not result["censored"].any()


@pytest.mark.parametrize("name", ["fmn", "deepfool", "fab"])
def test_a_batch_of_one(curved, name):
    network, images, labels = curved
    alone = measured(network, images[7:8], labels[7:8], attacks=[{"name": name}])
    together = measured(network, images, labels, attacks=[{"name": name}])
    assert alone["value"][0] == pytest.approx(together["value"][7], rel=0.05)


def test_several_attacks_give_the_smallest_distance_of_each_sample(curved):
    network, images, labels = curved
    names = ["deepfool", "fab", "fmn"]
    apart = [measured(network, images, labels, attacks=[{"name": name}]) for name in names]
    joint = measured(network, images, labels, attacks=[{"name": name} for name in names])
    np.testing.assert_array_equal(joint["value"], np.min([result["value"] for result in apart], axis=0))
    winner = np.argmin([result["value"] for result in apart], axis=0)
    assert list(joint["attack"][5:]) == [names[k] for k in winner[5:]]
    np.testing.assert_array_equal(joint["steps"] - 1, sum(result["steps"] - 1 for result in apart))


def test_what_lies_beyond_the_largest_distance_is_censored_there(curved):
    network, images, labels = curved
    free = measured(network, images, labels)
    limit = float(np.median(free["value"]))
    limited = measured(network, images, labels, largest_distance=limit)
    beyond = free["value"] > limit
    assert beyond.any()
    np.testing.assert_array_equal(limited["censored"], limited["attack"] == None)  # noqa: E711
    assert (limited["value"][limited["censored"]] == limit).all()
    assert (limited["prediction"][limited["censored"]] == labels[limited["censored"]]).all()
    assert limited["value"].max() <= limit
    # The limit may change the path, but not by much what is found well within it.
    assert not limited["censored"][free["value"] < 0.95 * limit].any()


# Not carlini-wagner: its change of variables moves each pixel by 1e-6, which may cross a rounding threshold.
@pytest.mark.parametrize("name", ["fmn", "deepfool", "fab"])
def test_a_gradient_masked_model_is_censored_and_never_given_a_distance(curved, name):
    network, images, _ = curved
    masked = rounded(network, 7)
    labels = predicted(masked, images)
    result = measured(masked, images, labels, attacks=[{"name": name}])
    assert result["censored"].all()
    assert (result["value"] == 2.0).all()
    assert list(result["attack"]) == [None] * len(labels)


@pytest.mark.parametrize("name", list(MINIMAL_ATTACKS))
def test_a_classifier_that_never_changes_its_mind_is_censored(name):
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    with torch.no_grad():
        network[1].weight.mul_(1e-6)
        network[1].bias.copy_(torch.tensor([9.0, 0.0, 0.0]))
    result = measured(network, grey(3), np.zeros(3, int), attacks=[{"name": name}])
    assert result["censored"].all()


def test_a_saturated_softmax_output_does_not_break_the_search():
    network, images = Wrapped(linear(3, scale=1e4), lambda network, x: network(x).softmax(1)), grey(6)
    result = measured(network, images, predicted(network, images))
    assert np.isfinite(result["value"]).all()


def test_a_tie_at_the_top_is_adversarial():
    """The distance is that of the tie."""
    images = np.full((1, 1, 2, 2), 0.3, dtype=np.float32)
    result = measured(capped(), images, np.array([0]))
    assert result["value"][0] == pytest.approx(0.2, rel=1e-3)
    assert result["prediction"][0] == 1


def test_refinement_keeps_the_adversarial_side_and_drops_what_is_none(curved):
    network, images, labels = curved
    x, y = torch.from_numpy(images[5:]), torch.from_numpy(labels[5:].astype(np.int64))
    candidates = deepfool(network, x, y, norm="l2", largest_distance=2.0, overshoot=0.5)[0]
    candidates[::2] = x[::2]
    points, found = refine(network, x, candidates, y, steps=20)
    assert not found[::2].any()
    assert found[1::2].all()
    torch.testing.assert_close(points[::2], x[::2], rtol=0, atol=0)
    with torch.no_grad():
        assert not correct(network(points), y)[found].any()
        just_inside = x + (1 - 1e-4) * (points - x)
        assert correct(network(just_inside), y)[found].all()


def test_an_attack_that_leaves_the_box_is_caught(curved):
    network, images, labels = curved
    x, y = torch.from_numpy(images[5:]), torch.from_numpy(labels[5:].astype(np.int64))
    points, found = refine(network, x, x + 100 * torch.randn_like(x), y, steps=3)
    assert points.min() >= 0
    assert points.max() <= 1
    with torch.no_grad():
        assert not correct(network(points), y)[found].any()


def test_fmn_is_no_weaker_than_its_start(curved):
    network, images, labels = curved
    start = measured(network, images, labels, attacks=[{"name": "deepfool", "steps": 10}])
    assert (measured(network, images, labels)["value"] <= start["value"] * (1 + 1e-3)).all()


def test_passes_of_deepfool_are_counted_per_sample(curved):
    network, images, labels = curved
    x, y = torch.from_numpy(images[5:]), torch.from_numpy(labels[5:].astype(np.int64))
    _, passes = deepfool(network, x, y, norm="l2", largest_distance=2.0)
    assert passes.min() >= 2
    assert len(passes.unique()) > 1
    _, more = fmn(network, x, y, norm="l2", largest_distance=2.0, steps=7)
    assert (more == passes.clamp_max(10) + 8).all()


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match=r"'bim' is unknown; known: .*fmn"):
        parse_attack({"name": "bim"}, MINIMAL_ATTACKS)
    with pytest.raises(InputError, match="'fmn': restarts: Extra inputs"):
        parse_attack({"name": "fmn", "restarts": 2}, MINIMAL_ATTACKS)
    kind = KINDS["minimal"]
    settings = kind.parse({"kind": "minimal", "norm": "linf", "attacks": [{"name": "carlini-wagner"}]})
    (mistake,) = kind.mistakes(settings)
    assert "carlini-wagner searches in l2 only" in mistake.words


@pytest.mark.parametrize("name", list(MINIMAL_ATTACKS))
def test_logits_that_are_no_numbers_are_refused(curved, name):
    network, images, _ = curved
    with pytest.raises(InputError, match="NaN or infinite"):
        measured(broken(network, images), images, predicted(network, images), attacks=[{"name": name}])


@pytest.mark.parametrize("name", ["fab", "carlini-wagner"])
def test_gradients_that_overflow_lead_libraries_nowhere(curved, name):
    """The root of 0 has no slope: the pixels must not become NaN, of which the network would make NaN."""
    network, images, labels = curved
    rooted = Wrapped(network, lambda network, x: network(x) + (x.flatten(1)[:, :1] * 0).sqrt())
    result = measured(rooted, images, labels, attacks=[{"name": name, "steps": 20}])
    assert np.isfinite(result["value"]).all()


def test_the_bound_is_not_claimed_of_distances_that_are_not_searched():
    network, images = linear(3), grey(8)
    labels = predicted(network, images)
    truth = margins(network, images, labels, "l2")
    result = measured(network, images, labels, largest_distance=float(np.median(truth)))
    assert (result["censored"] == (truth > np.median(truth))).all()
    assert (result["value"][result["censored"]] < truth[result["censored"]]).all()
    measure = KINDS["minimal"].describe(KINDS["minimal"].parse({}))
    assert "unless that is beyond the largest distance searched" in measure.explanation
