import numpy as np
import pytest
import torch
from torch import nn

from gfscore.attacks.ball_attacks import auto_pgd, checkpoints, fgsm, pgd
from gfscore.attacks.goals import (
    LOG_ODDS,
    difference_of_logits_ratio,
    difference_of_logits_ratio_to_target,
    log_odds_of_others,
    log_odds_of_target,
)
from gfscore.attacks.gradient_ascent import cross_entropy
from gfscore.attacks.registry import BALL_ATTACKS, expand, parse_attack
from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from gfscore.networks.classifier import from_network
from gfscore.proofs.counterexamples import distance, from_bytes
from helpers.networks import Wrapped, broken, capped, grey, linear, margins, one_thread, predicted, rounded  # noqa: F401
from helpers.networks import curved as curved_network
from helpers.samples import draws_of, seeds_of

measure_batch = KINDS["adversarial"].load()
pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = (3, 6, 6)
PIXELS = 108
EPS = {"linf": 0.01, "l2": 0.08}
SHORT = {
    "fgsm": {},
    "pgd": {"steps": 20, "step_size": 0.25, "restarts": 1},
    "apgd-ce": {"steps": 25, "restarts": 1},
    "apgd-dlr": {"steps": 25, "restarts": 1},
    "apgd-targeted": {"steps": 25, "targets": 9},
    "fab": {"steps": 15, "targets": 9},
    "square": {"queries": 150},
}
"""Settings of each attack; step_size in radii."""

EXACT = [(2, "pgd"), (2, "apgd-ce"), (2, "fab"), (3, "apgd-dlr"), (3, "fab"), (10, "apgd-targeted"), (10, "fab")]
"""Numbers of classes with which attacks find all that there is to find on a linear classifier."""

NEARLY_EXACT = [(3, "pgd"), (3, "apgd-ce"), (10, "pgd"), (10, "apgd-ce"), (10, "apgd-dlr")]
"""Here the loss pulls towards several classes at once, so that a little of the ball is lost."""


def entry(name, norm="linf"):
    given = {"name": name, **SHORT[name]}
    return given | {"step_size": given["step_size"] * EPS[norm]} if name == "pgd" else given


def members(entries, classes):
    return expand([parse_attack(attack, BALL_ATTACKS) for attack in entries], classes)


def measured(network, images, labels, *names, norm="linf", seed=0, **changes):
    settings = {"norm": norm, "eps": EPS[norm], "attacks": [entry(name, norm) for name in names]} | changes
    return measure_batch(
        from_network(network),
        images,
        np.asarray(labels),
        settings=KINDS["adversarial"].parse(settings),
        seeds=seeds_of(images, seed),
    )


@pytest.fixture(scope="module")
def curved():
    network = curved_network(5, PIXELS, width=40)
    with torch.no_grad():
        network[1].weight.mul_(4)
    images = np.random.default_rng(3).random((60, *SHAPE), dtype=np.float32)
    labels = predicted(network, images)
    labels[:6] = (labels[:6] + 1) % 5
    return network, images, labels


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(("classes", "name"), EXACT + NEARLY_EXACT)
def test_survivors_of_a_linear_classifier_are_exactly_those_beyond_eps(classes, name, norm):
    network, images = linear(classes, PIXELS), grey(80, SHAPE)
    labels = predicted(network, images)
    labels[:10] = (labels[:10] + 1) % classes
    margin = margins(network, images, labels, norm)
    lost = 0.05 if (classes, name) in EXACT else 0.25
    clear = (margin > 1.001 * EPS[norm]) | (margin < (1 - lost) * EPS[norm])
    images, labels, margin = images[clear], labels[clear], margin[clear]
    result = measured(network, images, labels, name, norm=norm)
    np.testing.assert_array_equal(result["value"] == 1, margin > EPS[norm])
    assert 0.15 < result["value"].mean() < 0.9
    assert set(result["attack"][margin <= 0]) == {"clean"}
    found = (margin > 0) & (margin <= EPS[norm])
    assert set(result["attack"][found]) == {name}
    # No perturbation shorter than the distance to the boundary can succeed.
    assert (result["distance"][found] >= margin[found] - 1e-6).all()
    assert (result["distance"][found] <= EPS[norm] * 1.0001).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["fgsm", "square"])
def test_weaker_attacks_break_only_what_can_be_broken(name, norm):
    network, images = linear(10, PIXELS), grey(60, SHAPE)
    labels = predicted(network, images)
    margin = margins(network, images, labels, norm)
    result = measured(network, images, labels, name, norm=norm)
    assert (result["value"][margin > EPS[norm]] == 1).all()
    assert result["value"][margin < 0.3 * EPS[norm]].mean() < 0.4


def test_fgsm_is_exact_for_two_classes():
    network, images = linear(2, PIXELS), grey(100, SHAPE)
    labels = predicted(network, images)
    margin = margins(network, images, labels, "linf")
    clear = np.abs(margin - EPS["linf"]) > 1e-4
    result = measured(network, images[clear], labels[clear], "fgsm")
    np.testing.assert_array_equal(result["value"] == 1, margin[clear] > EPS["linf"])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_autoattack_works_with_few_classes(monkeypatch, classes, norm):
    monkeypatch.setattr(
        "gfscore.attacks.autoattack.MEMBERS",
        [entry(n) for n in ("apgd-ce", "apgd-targeted", "fab", "square")],
    )
    network, images = linear(classes, PIXELS), grey(50, SHAPE)
    labels = predicted(network, images)
    margin = margins(network, images, labels, norm)
    clear = np.abs(margin - EPS[norm]) > 0.05 * EPS[norm]
    attacks = [{"name": "autoattack", "version": "standard"}]
    result = measured(network, images[clear], labels[clear], norm=norm, attacks=attacks)
    np.testing.assert_array_equal(result["value"] == 1, margin[clear] > EPS[norm])


def test_autoattack_is_composed_as_documented():
    standard = [{"name": "autoattack", "version": "standard"}]
    names = {k: [member["name"] for member in members(standard, k)] for k in (2, 3, 4, 10)}
    assert names[10] == names[4] == ["apgd-ce", "apgd-targeted", "fab", "square"]
    assert names[3] == ["apgd-ce", "apgd-dlr", "fab", "square"]
    assert names[2] == ["apgd-ce", "fab", "square"]
    assert [member["targets"] for k in (2, 4, 100) for member in members(standard, k)[-2:-1]] == [1, 3, 9]


def test_settings_that_cannot_work_are_refused():
    for name, classes, remedy in (("apgd-dlr", 2, "use apgd-ce$"), ("apgd-targeted", 3, "apgd-ce or apgd-dlr")):
        with pytest.raises(InputError, match=f"'{name}' needs at least .* {classes}.*{remedy}"):
            members([entry(name)], classes)
        members([entry(name)], classes + 1)
    for attacks, message in (
        ([{"name": "pdg"}], "'pdg' is unknown; did you mean 'pgd'"),
        ([{"name": "fgsm", "steps": 3}], "'fgsm': steps: Extra inputs are not permitted; got 3"),
        ([{"name": "apgd-ce", "steps": 0}], "'apgd-ce': steps: .*; got 0"),
        ([{"name": "autoattack", "version": "plus"}], "'autoattack': version: .*; got 'plus'"),
    ):
        with pytest.raises(InputError, match=message):
            members(attacks, 10)


def test_the_result_is_the_pointwise_worst_case(curved):
    network, images, labels = curved
    names = ["fgsm", "pgd", "apgd-dlr"]
    apart = [measured(network, images, labels, name) for name in names]
    joint = measured(network, images, labels, *names)
    fgsm_alone, worst = apart[0]["value"], np.min([result["value"] for result in apart], axis=0)
    assert (joint["value"] <= worst).all()
    assert joint["value"].sum() >= worst.sum() - 1
    np.testing.assert_array_equal(joint["attack"] == "fgsm", apart[0]["attack"] == "fgsm")
    assert fgsm_alone.mean() > joint["value"].mean() > 0
    np.testing.assert_array_equal(joint["value"] == 1, joint["attack"] == None)  # noqa: E711
    np.testing.assert_array_equal(joint["value"] == 1, np.isnan(joint["distance"]))
    np.testing.assert_array_equal(joint["value"] == 1, joint["prediction"] == labels)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_counterexamples_are_kept_where_asked_for_in_the_ball_and_confirmed(curved, norm):
    network, images, labels = curved
    plain = measured(network, images, labels, "fgsm", "pgd", norm=norm)
    columns = measured(network, images, labels, "fgsm", "pgd", norm=norm, counterexamples=True)
    kept = columns.pop("counterexample")
    assert columns.keys() == plain.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(columns[name], values)
    broken_rows = np.flatnonzero(np.isin(columns["attack"], ["fgsm", "pgd"]))
    assert len(broken_rows) >= 3
    for row, content in enumerate(kept):
        assert (content is not None) == (row in broken_rows)
        if content is not None:
            point = from_bytes(content, SHAPE)
            assert distance(point, images[row], norm) <= EPS[norm] and point.min() >= 0 and point.max() <= 1
            with torch.no_grad():
                assert int(network(torch.from_numpy(point[None])).argmax()) != labels[row]


def test_samples_already_fooled_leave_the_batch_and_passes_are_counted(curved):
    network, images, labels = curved
    seen = []
    watched = Wrapped(network, lambda network, x: seen.append(len(x)) or network(x))
    result = measured(watched, images, labels, "pgd", "apgd-ce", "fab", "square")
    assert result["steps"].sum() == sum(seen)
    # 6 are wrong at once; others leave within an attack.
    assert seen[:2] == [60, 54]
    assert seen[20] < 54
    survivor, wrong = result["value"] == 1, result["attack"] == "clean"
    assert (result["steps"][wrong] == 1).all()
    assert (result["steps"][survivor] == result["steps"].max()).all()
    assert (result["steps"][result["attack"] == "pgd"] <= 1 + 20 + 1).all()


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_batch_of_misclassified_samples_only_and_a_batch_of_one(curved, name, norm):
    network, images, labels = curved
    result = measured(network, images[:6], labels[:6], name, norm=norm)
    assert (result["value"] == 0).all()
    assert set(result["attack"]) == {"clean"}
    assert (result["distance"] == 0).all()
    np.testing.assert_array_equal(result["prediction"], predicted(network, images[:6]))
    assert measured(network, images[7:8], labels[7:8], name, norm=norm)["value"].shape == (1,)


def test_an_attack_that_leaves_the_ball_is_caught(curved, monkeypatch):
    network, images, labels = curved

    def leaves(network, images, labels, *, ball, draws):
        return (images + 2 * ball["eps"]).clamp(0, 1), torch.zeros(len(images), dtype=torch.int64)

    monkeypatch.setattr("gfscore.attacks.ball_attacks.fgsm", leaves)
    with pytest.raises(AssertionError, match="left the linf ball"):
        measured(network, images, labels, "fgsm")


def test_a_tie_at_the_top_counts_as_fooled():
    images = np.full((2, 1, 5, 5), 0.3, dtype=np.float32)
    images[1] = 0.1
    for name in ("pgd", "square"):
        given = {"eps": 0.25, "attacks": [entry(name) | ({"step_size": 0.1} if name == "pgd" else {})]}
        result = measured(capped(), images, np.array([0, 0]), **given)
        assert result["value"].tolist() == [0, 1]
        assert result["prediction"].tolist() == [1, 0]
        assert list(result["attack"]) == [name, None]


def test_a_masked_network_resists_gradients_but_not_square(curved):
    network, images, labels = curved
    masked = rounded(network, 25)
    labels = predicted(masked, images)
    with_gradients = measured(masked, images, labels, "apgd-ce", "fab", eps=0.06)
    both = measured(masked, images, labels, "apgd-ce", "fab", "square", eps=0.06)
    assert with_gradients["value"].mean() > both["value"].mean() + 0.1
    assert (both["attack"] == "square").sum() > 5


@pytest.mark.parametrize("name", ["fgsm", "pgd", "apgd-ce", "apgd-dlr"])
def test_scaled_logits_hide_no_gradients(curved, name):
    """Where the softmax rounds to 1 the cross-entropy has no gradient; what is ascended instead does not need it."""
    network, images, _ = curved

    labels, large = predicted(network, images), Wrapped(network, lambda network, x: 1e4 * network(x))
    plain, scaled = (measured(classifier, images, labels, name)["value"].mean() for classifier in (network, large))
    assert plain < 0.9
    assert scaled == pytest.approx(plain, abs=0.04)


def test_log_odds_rise_with_the_cross_entropy_in_its_direction():
    logits = torch.tensor([[2.0, 1.0, -1.0], [0.5, 1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1])
    lead, entropy = log_odds_of_others(logits, labels), cross_entropy(logits, labels)
    torch.testing.assert_close(lead, torch.log(torch.expm1(entropy)))
    ours, theirs = (torch.autograd.grad(value.sum(), logits)[0] for value in (lead, entropy))
    torch.testing.assert_close(nn.functional.normalize(ours), nn.functional.normalize(theirs))
    aims = torch.tensor([[1, 0], [0, 1]])
    torch.testing.assert_close(log_odds_of_target(logits, aims), -lead)


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("disturbed", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(curved, name, disturbed):
    network, images, _ = curved
    with pytest.raises(InputError, match="NaN or infinite logits for images of this measure"):
        measured(broken(network, images, disturbed), images, predicted(network, images), name)


def test_a_class_that_is_ruled_out_is_no_fault(curved):
    network, images, labels = curved
    ruled_out = Wrapped(network, lambda network, x: nn.functional.pad(network(x), (0, 1), value=-torch.inf))
    found, plain = (measured(one, images, labels, "pgd", "apgd-ce")["value"] for one in (ruled_out, network))
    assert found.tolist() == pytest.approx(plain.tolist())


def test_the_difference_of_logits_ratio_is_the_printed_one():
    logits = torch.tensor([[5.0, 2.0, 1.0, -4.0], [1.0, 4.0, 3.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0])
    # -(5 - 2) / (5 - 1) and -(1 - 4) / (4 - 1).
    np.testing.assert_allclose(difference_of_logits_ratio(logits, labels), [-0.75, 1.0])
    aims = torch.tensor([[0, 2], [0, 3]])
    # -(5 - 1) / (5 - (1 - 4) / 2) and -(1 - 0) / (4 - (1 + 0) / 2).
    np.testing.assert_allclose(difference_of_logits_ratio_to_target(logits, aims), [-4 / 6.5, -1 / 3.5])


def test_checkpoints_of_auto_pgd_are_the_papers():
    # p = 0, .22, .41, .57, .70, .80, .87, .93, .99
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert checkpoints(1) == [1]


def test_auto_pgd_halves_its_steps_and_ends_at_the_point_of_highest_loss():
    """A network whose loss oscillates under the first step size: two pixels in a narrow valley."""

    def valley(_, x):
        a, b = x.flatten(1).unbind(1)
        away = -((a - 0.503) ** 2) * 300 - (b - 0.497) ** 2 * 300
        return torch.stack([torch.full_like(a, 5.0), away], dim=1)

    x = torch.full((1, 1, 1, 2), 0.5) + torch.tensor([0.03, -0.02])
    options = {"ball": {"norm": "linf", "eps": 0.1}, "draws": draws_of(x), "goal": LOG_ODDS}
    points, passes = auto_pgd(Wrapped(None, valley), x, torch.tensor([0]), steps=100, restarts=1, **options)
    np.testing.assert_allclose(points.flatten(), [0.503, 0.497], atol=2e-3)
    assert passes.tolist() == [101]


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(("name", "loss"), [("apgd-ce", "ce"), ("apgd-dlr", "dlr")])
def test_auto_pgd_is_as_strong_as_the_reference(curved, name, loss, norm):
    from pyautoattack.autopgd_base import APGDAttack

    network, images, labels = curved
    x, y = torch.from_numpy(images[6:]), torch.from_numpy(labels[6:].astype(np.int64))
    library = APGDAttack(
        network, n_iter=25, norm=norm.replace("l", "L", 1), eps=EPS[norm], loss=loss, seed=0, device="cpu"
    )
    survivors = int((network(library.perturb(x, y)).argmax(1) == y).sum())
    ours = int(measured(network, images[6:], labels[6:], name, norm=norm)["value"].sum())
    assert 0 < ours <= survivors + 1


def test_restarts_are_spent_on_standing_samples_only(curved):
    network, images, labels = curved
    x, y = torch.from_numpy(images[6:]), torch.from_numpy(labels[6:].astype(np.int64))
    ball = {"norm": "linf", "eps": EPS["linf"]}

    def spent(restarts):
        options = {"steps": 2, "step_size": 0.005, "restarts": restarts, "ball": ball}
        return pgd(network, x, y, draws=draws_of(x), **options)[1]

    once, thrice = spent(1), spent(3)
    assert once.max() == 2
    # Two steps and the look at their end, twice, then two steps.
    assert thrice.max() == 8
    assert thrice.min() < 3
    assert (thrice >= once).all()


def test_fgsm_is_one_step_along_the_sign_of_the_gradient(curved):
    network, images, labels = curved
    x, y = torch.from_numpy(images[6:]), torch.from_numpy(labels[6:].astype(np.int64))
    points, passes = fgsm(network, x, y, ball={"norm": "linf", "eps": 0.1}, draws=draws_of(x))
    inner = x.requires_grad_()
    gradient = torch.autograd.grad(nn.functional.cross_entropy(network(inner), y, reduction="sum"), inner)[0]
    torch.testing.assert_close(points, (x + 0.1 * gradient.sign()).clamp(0, 1).detach())
    assert (passes == 1).all()


@pytest.mark.parametrize("scale", [1e-26, 1e-22, 1e20, 1e30])
@pytest.mark.parametrize("name", ["fgsm", "pgd", "apgd-ce", "apgd-dlr"])
def test_no_scale_of_the_logits_hides_an_example_in_l2(name, scale):
    """In float32 the squares of such gradients overflow, or vanish."""
    network, images = linear(3, PIXELS), grey(20, SHAPE)
    labels = predicted(network, images)
    scaled = Wrapped(network, lambda network, x: scale * network(x))
    margin = margins(network, images, labels, "l2")
    eps = 1.5 * float(np.median(margin))
    result = measured(scaled, images, labels, name, norm="l2", eps=eps)
    assert (result["value"][margin < 0.3 * eps] == 0).all() and (margin < 0.3 * eps).sum() > 2
    assert (result["value"][margin > eps] == 1).all()


@pytest.mark.parametrize("name", ["apgd-ce", "apgd-dlr", "apgd-targeted"])
def test_classes_that_logits_of_minus_infinity_exclude_do_not_hide_an_example(name):
    network, images = linear(2, PIXELS), grey(20, SHAPE)
    labels = predicted(network, images)
    excluded = torch.full((1, 3), -torch.inf)
    masked = Wrapped(network, lambda network, x: torch.cat([network(x), excluded.expand(len(x), -1)], dim=1))
    margin = margins(network, images, labels, "linf")
    eps = 1.1 * float(np.median(margin))
    result = measured(masked, images, labels, name, eps=eps)
    assert (result["value"][margin < 0.9 * eps] == 0).all() and (margin < 0.9 * eps).sum() > 5
    assert (result["value"][margin > eps] == 1).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (4, 27), (12, 12), (20, 30), (24, 24), (24, 25), (32, 24)])
def test_square_takes_images_of_every_size(height, width, norm):
    pixels = 3 * height * width
    network, images = linear(3, pixels), grey(20, (3, height, width))
    labels = predicted(network, images)
    margin = margins(network, images, labels, norm)
    eps = 10 * float(np.median(margin))
    result = measured(network, images, labels, "square", norm=norm, eps=eps)
    assert result["value"].mean() < 0.9 and (result["distance"][result["value"] == 0] <= eps * 1.0001).all()


@pytest.mark.parametrize("name", ["fgsm", "pgd", "apgd-ce"])
def test_a_network_that_only_sees_the_sum_of_the_pixels(name):
    """Autograd may hand out one number for all pixels; an image passes the threshold of 0.52 by 0.01 a pixel or not."""

    def brightness(_, x):
        gap = x.flatten(1).sum(1) - 0.52 * 25
        return torch.stack([-gap, gap], dim=1)

    images = np.full((2, 1, 5, 5), 0.515, dtype=np.float32)
    images[1] = 0.50
    result = measured(Wrapped(None, brightness), images, np.array([0, 0]), name)
    assert result["value"].tolist() == [0, 1]
    assert result["distance"][0] == pytest.approx(0.01, rel=0.6)
