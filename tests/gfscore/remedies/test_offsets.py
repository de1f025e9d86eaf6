from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import norm

from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.measures import KINDS
from gfscore.networks import passes
from gfscore.networks.adjusted import with_offsets
from gfscore.networks.classifier import from_network
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.remedies.attacked_images import AttackEnds, gradient_attacks
from gfscore.remedies.objectives import merit_of
from gfscore.remedies.offsets import choose_offsets, search_offsets
from gfscore.remedies.seen_points import SeenPoints
from helpers.networks import curved, grey, linear, one_thread  # noqa: F401

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.seconds(20)]

PGD = KINDS["adversarial"].parse(
    {"kind": "adversarial", "eps": 0.02, "attacks": [{"name": "pgd", "steps": 10, "step_size": 0.005}]}
)


def two_classes(mean, deviation, *, n=10_000, seed=0):
    """Robust margins of two classes, normal with these means and deviations: labels (2 n,), logits (2 n, 2)."""
    labels = np.repeat([0, 1], n)
    margin = np.random.default_rng(seed).normal(np.array(mean)[labels], np.array(deviation)[labels])
    return labels, two_logits(margin, labels)


def two_logits(margin, labels):
    signs = np.where(np.arange(2) == labels[:, None], 0.5, -0.5)
    return signs * margin[:, None]


def fair(n=1000, *, classes=10, seed=0, rise=1.5):
    """Logits of a classifier whose classes are exchangeable: labels (n K,), logits (n K, K)."""
    labels = np.repeat(np.arange(classes), n)
    logits = np.random.default_rng(seed).normal(size=(n * classes, classes))
    logits[np.arange(len(labels)), labels] += rise
    return labels, logits


def lowering(logits, labels, by):
    """Attack that lowers the label's logit by a number, whatever the offsets."""

    def attack(offsets, rows, *, number):
        ends = logits[rows].copy()
        ends[np.arange(len(rows)), labels[rows]] -= by
        return AttackEnds(ends)

    return attack


def searched(logits, labels, *, by=0.5, attack=None, **settings):
    seen = SeenPoints(logits, labels)
    attack = attack or lowering(logits, labels, by)
    return search_offsets(attack, seen, settings=OffsetSettings(**{"most_loss": None, **settings}))


@pytest.mark.parametrize("objective", ["worst_class", "rdi"])
def test_offsets_of_two_classes_are_those_of_the_closed_form(objective):
    # Class 1 is robust where its margin exceeds -d, class 0 where it exceeds d, with d = b_1 - b_0.
    means, deviations = (2.0, 0.5), (1.0, 1.5)
    best = (means[0] * deviations[1] - means[1] * deviations[0]) / sum(deviations)
    share = norm.cdf((means[0] - best) / deviations[0])

    labels, logits = two_classes(means, deviations)
    choice = searched(logits + two_logits(np.full(len(labels), 0.5), labels), labels, objective=objective)
    values = choice.trail[choice.chosen].values
    error = np.sqrt(share * (1 - share) / 10_000)
    assert np.diff(choice.offsets)[0] == pytest.approx(best, abs=0.08)
    assert values == pytest.approx([share, share], abs=4 * error)
    assert choice.offsets.sum() == pytest.approx(0, abs=1e-12)


def test_planted_offsets_of_a_fair_classifier_are_found_again():
    planted = np.random.default_rng(1).normal(scale=0.5, size=10)
    planted -= planted.mean()
    labels, logits = fair()
    choice = searched(logits + planted, labels, objective="rdi")
    assert np.abs(choice.offsets + planted).max() < 0.15
    assert np.ptp(choice.trail[choice.chosen].values) < np.ptp(choice.trail[0].values) / 5


def test_exchangeable_classes_get_small_offsets():
    norms = []
    for seed in range(5):
        labels, logits = fair(300, seed=seed)
        norms.append(np.linalg.norm(searched(logits, labels, objective="worst_class").offsets))
    # Offsets of 0.05 change the robust accuracy of a class by one standard error.
    assert max(norms) < 10**0.5 * 0.1


def test_search_that_gets_worse_returns_and_halves_its_steps():
    labels, logits = two_classes((2.0, 0.5), (1.0, 1.0), n=500)

    def attack(offsets, rows, *, number):
        # A class that is lowered loses all of its images, however little it is.
        lead = offsets[labels[rows]] - offsets[1 - labels[rows]]
        ends = np.where(lead[:, None] < 0, two_logits(-lead / 2, labels[rows]), logits[rows])
        return AttackEnds(ends)

    choice = searched(logits, labels, attack=attack)
    steps = [attempt.step for attempt in choice.trail[1:]]
    assert len(steps) > 1
    assert all(later <= earlier / 2 for earlier, later in pairwise(steps))
    assert [attempt.values.min() for attempt in choice.trail[1:]] == [0] * len(steps)
    assert not choice.offsets.any()


def test_steps_that_are_far_too_long_lead_nowhere_else(monkeypatch):
    labels, logits = two_classes((2.0, 0.5), (1.0, 1.5), n=2000)
    usual = searched(logits, labels)
    monkeypatch.setattr("gfscore.remedies.offsets.FIRST_STEP", 200.0)
    long = searched(logits, labels)
    worst = usual.trail[usual.chosen].merit
    assert long.trail[long.chosen].merit.value == pytest.approx(worst.value, abs=worst.standard_error)


def test_floor_is_reached_at_the_least_loss_of_the_mean():
    labels, logits = fair()
    planted = np.linspace(-0.8, 0.8, 10)
    settings = {"objective": "floor", "floor": 0.25}
    choice = searched(logits + planted, labels, **settings)
    chosen = choice.trail[choice.chosen]
    equalised = searched(logits + planted, labels, objective="worst_class")
    assert choice.reached
    assert (chosen.values - np.sqrt(chosen.values * (1 - chosen.values) / 1000)).min() >= 0.25
    assert choice.trail[0].values.min() < 0.25
    assert np.linalg.norm(choice.offsets) < np.linalg.norm(equalised.offsets)
    assert not searched(logits + planted, labels, objective="floor", floor=0.95).reached


def test_worst_class_gains_what_the_mean_may_lose():
    labels, logits = two_classes((2.0, 0.2), (0.5, 4.0), n=2000)
    free, bound = searched(logits, labels), searched(logits, labels, most_loss=0.02)
    before, chosen = bound.trail[0], bound.trail[bound.chosen]
    assert before.mean - free.trail[free.chosen].mean > 0.02
    assert before.mean - chosen.mean <= 0.02
    assert before.values.min() < chosen.values.min()


def test_means_are_those_of_the_class_weights():
    labels, logits = two_classes((2.0, 0.5), (1.0, 1.0), n=500)
    first = searched(logits, labels, class_weights=[3, 1]).trail[0]
    assert first.mean == pytest.approx(0.75 * first.values[0] + 0.25 * first.values[1])


def test_errors_of_the_objectives():
    values, counts = np.array([0.5, 0.8, 0.2]), np.array([100, 100, 64])
    worst = merit_of(values, counts, OffsetSettings())
    assert (worst.value, worst.standard_error) == pytest.approx((0.2, 0.05))
    spread = merit_of(values, counts, OffsetSettings(objective="rdi"))
    assert (spread.value, spread.standard_error) == pytest.approx((-0.6, np.hypot(0.04, 0.05)))
    below = merit_of(values, counts, OffsetSettings(objective="floor", floor=0.16))
    assert (below.reached, below.value) == (False, pytest.approx(-0.01))
    above = merit_of(values, counts, OffsetSettings(objective="floor", floor=0.15, class_weights=[1, 1, 2]))
    assert (above.reached, above.value) == (True, pytest.approx(0.425))
    assert above.standard_error == pytest.approx(np.sqrt((0.25 * 0.05) ** 2 + (0.25 * 0.04) ** 2 + (0.5 * 0.05) ** 2))


# ---- networks ----


@pytest.fixture(scope="module")
def unfair():
    """A network, 150 images near its boundaries and their labels; class 2 is weak."""
    network = curved(3, width=24)
    images = grey(150)
    with torch.no_grad():
        logits = network(torch.from_numpy(images)).numpy()
        network[3].bias -= torch.tensor(np.median(logits, axis=0))
        labels = network(torch.from_numpy(images)).argmax(1).numpy()
        network[3].bias[2] -= 0.05
    return network, images, labels


def chosen(network, images, labels, **arguments):
    names = [f"image-{row}" for row in range(len(images))]
    image_set = from_arrays(images, labels, sample_id=names, preprocessing="none")
    settings = OffsetSettings(rounds=4, most_loss=None)
    return choose_offsets(from_network(network), image_set, settings=settings, attack=PGD, **arguments)


def robust(network, images, labels, offsets):
    columns = KINDS["adversarial"].load()(
        with_offsets(from_network(network), offsets),
        images,
        labels,
        settings=PGD,
        seeds=np.arange(len(images), dtype=np.uint64),
    )
    return np.array([columns["value"][labels == label].mean() for label in range(3)])


def test_worst_class_gains_under_a_fresh_attack_that_sees_the_offsets(unfair):
    network, images, labels = unfair
    choice = chosen(network, images, labels)
    before = robust(network, images, labels, np.zeros(3))
    after = robust(network, images, labels, choice.offsets)
    assert after.min() > before.min() + 0.1
    assert choice.offsets[before.argmin()] == choice.offsets.max()


@pytest.mark.parametrize(
    ("attacks", "kept"),
    [
        (["apgd-ce", "square"], ["apgd-ce"]),
        (["square"], ["square"]),
        (["square", "apgd-dlr", "fgsm"], ["apgd-dlr", "fgsm"]),
    ],
)
def test_rounds_use_the_attacks_that_follow_gradients(attacks, kept):
    measure = KINDS["adversarial"].parse(
        {"kind": "adversarial", "eps": 0.1, "attacks": [{"name": name} for name in attacks]}
    )
    assert [attack.name for attack in gradient_attacks(measure).attacks] == kept
    assert [attack.name for attack in measure.attacks] == attacks


def test_offsets_added_to_logits_are_the_logits_of_the_adjusted_network(unfair):
    network, images, _ = unfair
    offsets = np.array([0.5, -0.25, -0.25])
    classifier = from_network(network, classes=3)
    adjusted = with_offsets(classifier, offsets)
    assert np.array_equal(adjusted.logits(images), classifier.logits(images) + offsets.astype(np.float32))
    with pytest.raises(InputError, match="2 offsets"):
        with_offsets(classifier, offsets[:2])


def test_worst_case_of_a_linear_network_is_that_of_its_margins():
    # Two classes: an attack lowers each margin by eps times the l1 norm of the difference of the weights.
    network = linear(2)
    images = grey(200)
    weights = network[1].weight.detach().numpy()
    with torch.no_grad():
        logits = network(torch.from_numpy(images)).numpy().astype(float)
    labels = (np.random.default_rng(0).random(200) < 0.5).astype(np.int64)
    margin = logits[np.arange(200), labels] - logits[np.arange(200), 1 - labels]
    robust_margin = margin - PGD.eps * np.abs(weights[0] - weights[1]).sum()
    choice = chosen(network, images, labels)
    for attempt in choice.trail:
        shift = attempt.offsets[labels] - attempt.offsets[1 - labels]
        expected = [np.mean((robust_margin + shift > 0)[labels == label]) for label in range(2)]
        assert attempt.values == pytest.approx(expected, abs=1e-9)


def test_choice_depends_neither_on_the_batch_nor_on_an_interruption(unfair, tmp_path, monkeypatch):
    network, images, labels = unfair
    whole = chosen(network, images, labels)
    batched = chosen(network, images, labels, batch_size=32, folder=tmp_path / "other")
    assert np.array_equal(batched.offsets, whole.offsets)

    from gfscore.remedies import attacked_images

    attacked_batches = []
    attack = attacked_images.worst_case

    def counting(*arguments, **settings):
        attacked_batches.append(settings)
        if len(attacked_batches) == 7:
            raise KeyboardInterrupt
        return attack(*arguments, **settings)

    monkeypatch.setattr(attacked_images, "worst_case", counting)
    with pytest.raises(KeyboardInterrupt):
        chosen(network, images, labels, batch_size=32, folder=tmp_path / "same")
    resumed = chosen(network, images, labels, batch_size=32, folder=tmp_path / "same")
    assert np.array_equal(resumed.offsets, batched.offsets)
    assert [attempt.forwards for attempt in resumed.trail] == [attempt.forwards for attempt in batched.trail]
    batches = sum(-(-attempt.attacked // 32) for attempt in batched.trail)
    assert len(attacked_batches) == batches + 1


def test_passes_of_the_rounds_are_those_of_the_network(unfair):
    network, images, labels = unfair
    before = passes.counts()
    choice = chosen(network, images, labels)
    spent = passes.counts_since(before)
    assert choice.forwards == spent["forwards"]
    assert sum(attempt.backwards for attempt in choice.trail) == spent["backwards"]


def test_images_without_a_class_are_refused(unfair):
    network, images, labels = unfair
    with pytest.raises(InputError, match="none of: 1"):
        chosen(network, images[labels != 1], labels[labels != 1])
    with pytest.raises(InputError, match="3 logits, but an image has label 3"):
        chosen(network, images, np.append(labels[:-1], 3))
