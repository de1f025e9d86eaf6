import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gfscore.attacks.batch_pgd import attack_name, batch_pgd, survivors, uniform_noise
from gfscore.attacks.gradient_ascent import correct, project


def linear(weights, bias=(0.0, 0.0)):
    network = nn.Sequential(nn.Flatten(), nn.Linear(len(weights[0]), len(weights)))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor(weights))
        network[1].bias.copy_(torch.tensor(bias))
    return network


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


WEIGHTS = [[1.0, -2.0, 0.5, 0.0], [-1.0, 1.0, 0.5, 3.0]]
DIFFERENCE = np.array(WEIGHTS[1]) - np.array(WEIGHTS[0])  # (-2, 3, 0, 3), the direction away from class 0
MOVED = [0, 1, 3]  # the third pixel has no influence: its gradient is rounding
GREY = torch.full((2, 1, 2, 2), 0.5)


def attack(norm, **changes):
    return {"norm": norm, "eps": 0.1, "step_size": 0.03, "steps": 20, "generator": seeded(), **changes}


@pytest.mark.parametrize(
    ("norm", "steps", "moved", "tolerance"),
    [("linf", 20, np.sign(DIFFERENCE), 1e-6), ("l2", 100, DIFFERENCE / np.linalg.norm(DIFFERENCE), 1e-4)],
)
def test_pgd_finds_the_optimum_of_a_linear_model(norm, steps, moved, tolerance):
    adversarial = batch_pgd(linear(WEIGHTS), GREY, torch.tensor([0, 1]), **attack(norm, steps=steps))
    expected = (0.5 + 0.1 * moved)[MOVED]
    np.testing.assert_allclose(adversarial[0].flatten()[MOVED], expected, atol=tolerance)
    np.testing.assert_allclose(adversarial[1].flatten()[MOVED], 1 - expected, atol=tolerance)


def test_pgd_respects_the_box_where_it_binds():
    images = torch.tensor([0.02, 0.95, 0.5, 0.5]).reshape(1, 1, 2, 2)
    adversarial = batch_pgd(linear(WEIGHTS), images, torch.tensor([0]), **attack("linf"))
    np.testing.assert_allclose(adversarial.flatten()[MOVED], [0.0, 1.0, 0.6], atol=1e-6)


def test_one_step_from_a_random_start_may_not_use_the_whole_ball():
    once = batch_pgd(linear(WEIGHTS), GREY, torch.tensor([0, 0]), **attack("linf", step_size=0.02, steps=1))
    assert (once - GREY).abs().max() <= 0.1 + 1e-6
    assert not torch.allclose((once - GREY)[0].flatten()[MOVED].abs(), torch.tensor(0.1))


@settings(max_examples=40, deadline=None)
@given(
    threat=st.fixed_dictionaries(
        {
            "norm": st.sampled_from(["linf", "l2"]),
            "eps": st.floats(0.001, 3),
            "step_size": st.floats(0.001, 3),
            "steps": st.integers(0, 4),
        }
    ),
    seed=st.integers(0, 1000),
)
def test_every_attack_stays_in_the_ball_and_in_the_unit_box(threat, seed):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 4, 3))
    images = torch.rand(3, 2, 4, 4, generator=seeded(seed))
    adversarial = batch_pgd(network, images, torch.tensor([0, 1, 2]), generator=seeded(seed), **threat)
    order = float("inf") if threat["norm"] == "linf" else 2
    assert (
        torch.linalg.vector_norm((adversarial - images).flatten(1), ord=order, dim=1).max()
        <= threat["eps"] * 1.0001 + 1e-6
    )
    assert adversarial.min() >= 0
    assert adversarial.max() <= 1
    assert all(value.grad is None for value in network.parameters())


def test_projection_leaves_inner_points_alone_and_shortens_outer_ones():
    inner = GREY + 0.01
    torch.testing.assert_close(project(inner, GREY, norm="l2", eps=0.1), inner)
    outer = project(GREY + 0.3, GREY, norm="l2", eps=0.1)
    torch.testing.assert_close(outer, GREY + 0.05)  # four pixels: 0.1 / sqrt(4) each


def test_random_points_fill_the_ball_uniformly():
    images = torch.zeros(20_000, 1, 1, 3)
    radius = uniform_noise(images, norm="l2", eps=2.0, generator=seeded()).flatten(1).norm(dim=1)
    # Volume of a 3-ball grows with the cube: half of it lies within 2 * 0.5^(1/3); sd of the share is .0035.
    assert radius.max() <= 2.0 + 1e-6
    assert abs((radius < 2 * 0.5 ** (1 / 3)).float().mean() - 0.5) < 0.014
    cube = uniform_noise(images, norm="linf", eps=2.0, generator=seeded())
    assert abs((cube.abs() < 1).float().mean() - 0.5) < 0.014


def test_survivors_of_a_linear_model_are_exactly_those_beyond_eps():
    rng = np.random.default_rng(3)
    images = rng.uniform(0.2, 0.8, (400, 1, 2, 2)).astype(np.float32)
    margin = images.reshape(400, 4) @ -DIFFERENCE + 2.0  # bias 2 for class 0
    labels = rng.integers(0, 2, 400).astype(np.int32)
    own = np.where(labels == 0, margin, -margin)
    network = linear(WEIGHTS, bias=(2.0, 0.0))
    for norm, dual in (("linf", 1), ("l2", 2)):
        distance = own / np.linalg.norm(DIFFERENCE, ord=dual)
        clear = np.abs(distance - 0.1) > 1e-3
        how = {"norm": norm, "eps": 0.1, "step_size": 0.02, "steps": 60, "seed": 1}
        survived = survivors(network, np.array_split(images, 7), labels, **how)
        np.testing.assert_array_equal(survived[clear], (distance > 0.1)[clear])
        assert 0 < survived.mean() < np.mean(own > 0)


def test_misclassified_and_fooled_samples_leave_the_batch():
    images = np.array([0.5, 0.5, 0.5, 0.9], dtype=np.float32).reshape(4, 1, 1, 1)
    labels = np.array([0, 0, 1, 1])
    seen = []

    class Threshold(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            value = x.flatten(1) - 0.55
            return torch.cat([-value, value], dim=1)

    how = {"norm": "linf", "eps": 0.1, "step_size": 0.1, "steps": 1, "restarts": 2, "seed": 0}
    survived = survivors(Threshold(), [images], labels, **how)
    assert survived.tolist() == [False, False, False, True]
    # All four clean; three correct ones attacked and judged; then only the survivor.
    assert seen == [4, 3, 3, 1, 1]


def test_attacks_leave_mode_and_gradients_alone():
    network = linear(WEIGHTS).train()
    batch_pgd(network, GREY, torch.tensor([0, 1]), **attack("l2"))
    assert network.training
    assert network[1].weight.grad is None
    assert not GREY.requires_grad


def test_a_tie_at_the_top_is_not_correct():
    logits = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    assert correct(logits, torch.tensor([0, 0, 1])).tolist() == [False, True, False]


def test_the_name_of_an_attack_says_what_it_is():
    settings_of_attack = {"norm": "linf", "eps": 0.15, "steps": 20, "step_size": 0.015, "seed": 0}
    assert attack_name(**settings_of_attack) == "PGD-20, l_inf 0.15"
    assert attack_name(**settings_of_attack, restarts=5) == "PGD-20, l_inf 0.15, 5 restarts"


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_each_image_is_perturbed_within_its_own_radius_by_its_own_steps(norm):
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    images = torch.full((4, 1, 4, 4), 0.5)
    radius = torch.tensor([0.0, 0.01, 0.05, 0.2])
    for step_size, share in ((radius, 1.0), (radius / 100, 0.05)):
        adversarial = batch_pgd(
            network, images, torch.zeros(4, dtype=torch.long),
            norm=norm, eps=radius, step_size=step_size, steps=3, generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        difference = (adversarial - images).flatten(1)
        length = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
        assert (length <= radius + 1e-6).all()
        assert (length >= share * radius - 1e-6).all()
