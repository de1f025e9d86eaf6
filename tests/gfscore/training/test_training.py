import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gfscore.attacks.gradient_ascent import survivors
from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images
from gfscore.networks.sources.trained import Attack, Ball, Steps
from gfscore.training import loop
from gfscore.training.loop import describe_training, train_classifier, training_settings
from gfscore.training.objectives import (
    METHODS,
    Setup,
    Threat,
    class_means,
    conditional_value_at_risk,
    divergence,
    exponentiated_gradient,
    mart_loss,
    threat_of,
    trades,
    trades_loss,
    warp,
    worst_class,
)

BALL = {"norm": "linf", "eps": 0.15}
STEP = BALL | {"step_size": 0.05}
STEPS = STEP | {"steps": 3}
THREATS = {
    "FGSM": STEP, "PGD": STEPS, "TRADES": STEPS, "MART": STEPS, "PRL": BALL, "WORST_CLASS": STEPS,
}  # fmt: skip
COEFFICIENTS = {
    "ERM": {},
    "ERM_DA": {"rotation": 10, "shift": 0.06, "scale": 0.1, "flip": True},
    "FGSM": {},
    "PGD": {},
    "TRADES": {"beta": 6.0},
    "MART": {"lam": 5.0},
    "PRL": {"rho": 0.25, "samples": 4},
    "WORST_CLASS": {"rate": 0.05, "floor": 0.1},
}
QUICK = {"architecture": "small_convnet", "arguments": {"width": 4, "pool": 2}, "epochs": 2, "batch_size": 16}
QUICK |= {"learning_rate": 0.01, "weight_decay": 1e-4, "device": "cpu"}
NAMES = [str(digit) for digit in range(10)]


def settings_of(method, **changes):
    own = {"method": method, "coefficients": COEFFICIENTS[method], "threat": THREATS.get(method), "seed": 1}
    return training_settings(QUICK | own | changes)


def train(images, labels, method, **changes):
    return train_classifier(images, labels, settings_of(method, **changes), classes=int(labels.max()) + 1)


def digits(split):
    return open_images({"source": "digits", "split": split, "test_share": 0.5, "seed": 0}, classes=NAMES)


@pytest.fixture(scope="module")
def colours():
    """120 images 3x10x12 of three classes, each bright in one channel."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    images = rng.uniform(0, 0.4, (120, 3, 10, 12)).astype(np.float32)
    images[np.arange(120), labels] += 0.6
    return images, labels


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture
def logits():
    rng = np.random.default_rng(5)
    return rng.normal(0, 3, (6, 4)), rng.normal(0, 3, (6, 4)), rng.integers(0, 4, 6)


def test_trades_loss_agrees_with_its_formula(logits):
    clean, adversarial, y = logits
    p, q, rows = softmax(clean), softmax(adversarial), np.arange(6)
    expected = np.mean(-np.log(p[rows, y]) + 6 * np.sum(p * np.log(p / q), axis=1))
    found = trades_loss(torch.tensor(clean), torch.tensor(adversarial), torch.tensor(y), beta=6)
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_mart_loss_agrees_with_its_formula(logits):
    clean, adversarial, y = logits
    p, q = softmax(clean), softmax(adversarial)
    terms = []
    for i in range(6):
        strongest_wrong = max(q[i, k] for k in range(4) if k != y[i])
        boosted = -np.log(q[i, y[i]]) - np.log(1 - strongest_wrong)
        weighted = sum(p[i, k] * np.log(p[i, k] / q[i, k]) for k in range(4)) * (1 - p[i, y[i]])
        terms.append(boosted + 5 * weighted)
    found = mart_loss(torch.tensor(clean), torch.tensor(adversarial), torch.tensor(y), lam=5)
    assert found.item() == pytest.approx(np.mean(terms), rel=1e-10)


def test_mart_loss_stays_finite_on_a_confident_error():
    clean = torch.tensor([[0.0, 60.0, 0.0]], requires_grad=True)
    loss = mart_loss(clean, clean, torch.tensor([0]), lam=5)
    loss.backward()
    assert loss.item() == pytest.approx(60 + 60 - np.log(2), rel=1e-5)
    assert torch.isfinite(clean.grad).all()


def test_divergence_is_that_of_clean_from_adversarial_and_not_the_reverse():
    p, q = torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]).log()
    assert divergence(p, q).item() == pytest.approx(0.9 * np.log(1.8) + 0.1 * np.log(0.2), rel=1e-5)
    assert divergence(q, p).item() == pytest.approx(-0.5 * np.log(4 * 0.09), rel=1e-5)


def test_trades_perturbs_towards_the_largest_divergence_not_the_largest_loss():
    # The logit of class 1 over class 0 is 4 x: at x = 0.75 the model errs on label 0. Cross-entropy rises towards
    # x = 1, but the divergence from the clean prediction is largest at the other end of the ball, x = 0.5.
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[0.0], [4.0]]))
        network[1].bias.zero_()
    threat = Threat("linf", eps=0.25, step_size=0.1, steps=20)
    objective = trades(Setup(2, threat, torch.Generator().manual_seed(0)), beta=6)
    images = torch.full((32, 1, 1, 1), 0.75)
    found = objective(network, images, torch.zeros(32, dtype=torch.long)).item()
    p, q = 1 / (1 + np.exp(-3)), 1 / (1 + np.exp(-2))
    away = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert found <= -np.log(1 - p) + 6 * away + 1e-5
    r = 1 / (1 + np.exp(-4))
    towards = p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r))
    assert towards < away
    # Starts above the image climb to the far end, x = 1, the others to x = 0.5.
    assert found > -np.log(1 - p) + 6 * (towards + 0.2 * (away - towards))


def tail_mean(losses, rho):
    """CVaR by sorting: mean of the largest rho M values, the last of them taken in part."""
    mass, total = rho * len(losses), 0.0
    for loss in sorted(losses, reverse=True):
        share = min(1.0, mass)
        total, mass = total + share * loss, mass - share
    return total / (rho * len(losses))


@settings(max_examples=100, deadline=None)
@given(
    losses=st.lists(st.floats(0, 50, width=32), min_size=1, max_size=25),
    rho=st.one_of(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 1.0]), st.floats(0.05, 1)),
)
def test_inner_minimisation_of_prl_reaches_the_sorted_tail_mean(losses, rho):
    found = conditional_value_at_risk(torch.tensor([losses], dtype=torch.float64), rho=rho)
    assert found.item() == pytest.approx(tail_mean(losses, rho), rel=1e-6, abs=1e-5)


def test_gradient_of_prl_is_a_weighting_of_the_losses():
    for losses, rho, expected in (
        ([2.0, 2.0, 2.0, 2.0], 0.5, [0.25, 0.25, 0.25, 0.25]),  # ties share
        ([4.0, 1.0, 3.0, 2.0], 1.0, [0.25, 0.25, 0.25, 0.25]),  # the average case
        ([4.0, 1.0, 3.0, 2.0], 0.375, [2 / 3, 0, 1 / 3, 0]),  # a tail of one and a half samples
        ([1.0, 9.0, 3.0, 7.0, 5.0, 0.0, 2.0, 4.0, 6.0, 8.0], 0.3, [0, 1 / 3, 0, 1 / 3, 0, 0, 0, 0, 0, 1 / 3]),
        ([5.0], 1.0, [1.0]),
    ):
        row = torch.tensor([losses], requires_grad=True)
        conditional_value_at_risk(row, rho=rho).sum().backward()
        np.testing.assert_allclose(row.grad[0], expected, atol=1e-6)


def test_class_weights_move_to_the_class_of_highest_loss():
    weights, losses = torch.full((3,), 1 / 3), torch.tensor([0.2, 1.0, 0.5])
    once = exponentiated_gradient(weights, losses, rate=2.0)
    expected = np.exp(2 * losses.numpy())
    np.testing.assert_allclose(once, expected / expected.sum(), rtol=1e-5)
    for _ in range(50):
        weights = exponentiated_gradient(weights, losses, rate=2.0)
    assert weights[1] > 0.999
    assert weights.min() > 0
    for _ in range(50):
        weights = exponentiated_gradient(weights, torch.tensor([1.0, 0.2, 0.5]), rate=2.0)
    assert weights.argmax() == 0


def test_class_means_know_absent_classes():
    means, present = class_means(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 2, 2]), classes=4)
    assert means.tolist() == [1.0, 0.0, 4.0, 0.0]
    assert present.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_worst_class_objective_tends_to_the_loss_of_the_worst_class(colours):
    images, labels = torch.from_numpy(colours[0]), torch.from_numpy(colours[1])
    network = nn.Sequential(nn.Flatten(), nn.Linear(360, 3))
    still = Threat("linf", eps=1e-6, step_size=1e-6, steps=3)
    objective = worst_class(Setup(3, still, torch.Generator().manual_seed(0)), rate=5.0, floor=0.0)
    with torch.no_grad():
        losses = nn.functional.cross_entropy(network(images), labels, reduction="none")
    worst = max(losses[labels == k].mean().item() for k in range(3))
    values = [objective(network, images, labels).item() for _ in range(60)]
    assert losses.mean().item() < values[0] < values[-1] == pytest.approx(worst, rel=1e-3)


def test_warp_without_limits_changes_nothing():
    images = torch.rand(4, 2, 9, 8)
    still = warp(images, rotation=0, shift=0, scale=0, flip=False, generator=torch.Generator())
    torch.testing.assert_close(still, images, atol=1e-5, rtol=0)


def test_warp_with_flip_mirrors_about_half_of_the_images():
    images = torch.rand(200, 1, 8, 8)
    mirrored = warp(images, rotation=0, shift=0, scale=0, flip=True, generator=torch.Generator().manual_seed(0))
    same = torch.isclose(mirrored, images, atol=1e-5).all(dim=(1, 2, 3))
    flipped = torch.isclose(mirrored, images.flip(3), atol=1e-5).all(dim=(1, 2, 3))
    assert (same ^ flipped).all()
    assert 70 < flipped.sum() < 130


def test_warp_moves_by_at_most_the_shift():
    images = torch.zeros(300, 1, 16, 16)
    images[:, :, 8, 8] = 1
    moved = warp(images, rotation=0, shift=0.125, scale=0, flip=False, generator=torch.Generator().manual_seed(0))
    rows, columns = (moved[:, 0].sum(0) > 1e-6).nonzero(as_tuple=True)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (6, 10, 6, 10)  # 0.125 of 16 is 2 pixels


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_other_images_and_two_trainings_agree(method, colours):
    first, second = (train(*colours, method, epochs=6) for _ in range(2))
    for one, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    with torch.no_grad():
        predicted = first(torch.from_numpy(colours[0])).argmax(1).numpy()
    assert np.mean(predicted == colours[1]) > 0.9
    assert not first.training


def test_another_seed_gives_other_weights(colours):
    first, second = (train(*colours, "ERM", epochs=1, seed=seed) for seed in (1, 2))
    assert not torch.equal(first[0].weight, second[0].weight)


def test_the_seed_also_determines_order_and_perturbations(colours, monkeypatch):
    build = loop.build_network
    monkeypatch.setattr(loop, "build_network", lambda name, *, seed, **rest: build(name, seed=0, **rest))
    first, second = (train(*colours, "PGD", epochs=1, seed=seed) for seed in (1, 2))
    assert not torch.equal(first[0].weight, second[0].weight)


def test_training_leaves_torch_as_it_was(colours):
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    train(*colours, "PGD", epochs=1)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.rand(1), expected)


def test_adversarial_training_resists_what_fools_plain_training():
    train_set, test_set = digits("train"), digits("test")
    attack = {"norm": "linf", "eps": 0.15, "step_size": 0.03, "steps": 10, "restarts": 1, "seed": 0}
    robust = {}
    for method in ("ERM", "PGD"):
        settings = settings_of(method, arguments={"width": 8}, epochs=8, batch_size=64)
        network = train_classifier(*load_all(train_set), settings, classes=10)
        described = describe_training(network, train_set, test_set, settings=settings, attack=Attack(**attack))
        survived = survivors(network, test_set.full_batches(256), test_set.labels, **attack)
        assert described["robust_accuracy"] == survived.mean()
        counts = np.bincount(test_set.labels)
        assert np.dot(described["robust_accuracy_per_class"], counts) / counts.sum() == pytest.approx(survived.mean())
        assert described["clean_accuracy"] > 0.85
        assert described["robust_accuracy_attack"] == "PGD-10, l_inf 0.15, test split"
        robust[method] = described["robust_accuracy"]
    assert robust["PGD"] > robust["ERM"] + 0.15


class Small(nn.Module):
    """A network that has memory for so many images at a time, and remembers the sizes that it took."""

    def __init__(self, network, most, message="CUDA out of memory"):
        super().__init__()
        self.network, self.most, self.message, self.sizes = network, most, message, []

    def forward(self, images):
        if len(images) > self.most:
            raise torch.OutOfMemoryError(self.message) if "memory" in self.message else RuntimeError(self.message)
        self.sizes.append(len(images))
        return self.network(images)


def test_a_trained_network_is_attacked_by_as_many_images_as_fit_into_memory(capsys):
    images = digits("test")
    settings = settings_of("ERM", epochs=3, batch_size=64)
    network = train_classifier(*load_all(images), settings, classes=10)
    attack = Attack(eps=0.05, step_size=0.02, steps=3)
    whole, small = Small(network, 1000), Small(network, 40)
    expected, found = (
        describe_training(one, images, images, settings=settings, attack=attack) for one in (whole, small)
    )
    assert found == expected and 0 < found["robust_accuracy"] < found["clean_accuracy"]
    # 256, 128 and 64 are too many.
    assert capsys.readouterr().out.count("out of memory: attacked") == 3
    assert max(whole.sizes) == 256
    assert all(value.requires_grad for value in small.parameters())


@pytest.mark.parametrize(
    ("most", "message", "error", "halvings"),
    [(4, "wrong shape", RuntimeError, 0), (0, "CUDA out of memory", torch.OutOfMemoryError, 8)],
)
def test_what_is_no_lack_of_memory_or_cannot_be_halved_stays_an_error(most, message, error, halvings, capsys):
    images, failing = digits("test").select(np.arange(20)), Small(nn.Flatten(), most, message)
    attack = Attack(eps=0.05, step_size=0.02, steps=1)
    with pytest.raises(error, match=message):
        describe_training(failing, images, images, settings=settings_of("ERM"), attack=attack)
    assert capsys.readouterr().out.count("out of memory: attacked") == halvings


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "PDG"},
        {"coefficients": {"beta": 1, "gamma": 2}},
        {"threat": {"norm": "linf", "eps": 0.1, "seed": 1}},
        {"threat": None},
        {"architecture": "resnet"},
    ],
)
def test_settings_that_no_method_has_are_refused(changes):
    with pytest.raises(ValueError, match="validation error"):
        training_settings(settings_of("TRADES").model_dump() | changes)


def test_bad_arguments_and_threats_are_named(colours):
    with pytest.raises(InputError, match="no argument 'widht'; it knows width, pool"):
        train(*colours, "ERM", arguments={"widht": 3})
    with pytest.raises(InputError, match=r"needs threat\.norm"):
        threat_of(Ball(eps=0.1))
    with pytest.raises(InputError, match=r"needs threat\.step_size"):
        threat_of(Steps(norm="l2", eps=0.1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_missing_gpu_is_an_error_and_not_a_slow_training(colours):
    with pytest.raises(InputError, match=r"finds no CUDA device; run this .* device: cpu"):
        train(*colours, "ERM", device="cuda")
    with pytest.raises(InputError, match="finds no CUDA device"):
        describe_training(nn.Linear(1, 1), None, None, settings=settings_of("ERM", device="cuda"), attack=Attack())


def test_prl_needs_a_tail_of_at_least_one_sample(colours):
    with pytest.raises(InputError, match="rho \\* samples >= 1"):
        train(*colours, "PRL", coefficients={"rho": 0.1, "samples": 5})
