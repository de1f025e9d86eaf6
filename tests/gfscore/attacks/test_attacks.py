import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gfscore.attacks.gradient_ascent import attack_name, correct, fgsm, pgd, project, random_in_ball, robust_accuracy
from gfscore.core.errors import InputError


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


def test_pgd_finds_the_linf_optimum_of_a_linear_model():
    adversarial = pgd(linear(WEIGHTS), GREY, torch.tensor([0, 1]), **attack("linf"))
    expected = 0.5 + 0.1 * np.sign(DIFFERENCE)
    np.testing.assert_allclose(adversarial[0].flatten()[MOVED], expected[MOVED], atol=1e-6)
    np.testing.assert_allclose(adversarial[1].flatten()[MOVED], 1 - expected[MOVED], atol=1e-6)


def test_pgd_finds_the_l2_optimum_of_a_linear_model():
    adversarial = pgd(linear(WEIGHTS), GREY, torch.tensor([0, 1]), **attack("l2", steps=100))
    expected = 0.5 + 0.1 * DIFFERENCE / np.linalg.norm(DIFFERENCE)
    np.testing.assert_allclose(adversarial[0].flatten(), expected, atol=1e-4)
    np.testing.assert_allclose(adversarial[1].flatten(), 1 - expected, atol=1e-4)


def test_pgd_respects_the_box_where_it_binds():
    images = torch.tensor([0.02, 0.95, 0.5, 0.5]).reshape(1, 1, 2, 2)
    adversarial = pgd(linear(WEIGHTS), images, torch.tensor([0]), **attack("linf", random_start=False))
    np.testing.assert_allclose(adversarial.flatten()[MOVED], [0.0, 1.0, 0.6], atol=1e-6)


def test_fgsm_is_one_step_along_the_sign_of_the_gradient():
    adversarial = fgsm(linear(WEIGHTS), GREY, torch.tensor([0, 0]), norm="linf", eps=0.1)
    np.testing.assert_allclose(adversarial[0].flatten()[MOVED], (0.5 + 0.1 * np.sign(DIFFERENCE))[MOVED], atol=1e-7)


def test_fgsm_with_a_random_start_may_not_use_the_whole_ball():
    once = fgsm(
        linear(WEIGHTS),
        GREY,
        torch.tensor([0, 0]),
        norm="linf",
        eps=0.1,
        step_size=0.02,
        random_start=True,
        generator=seeded(),
    )
    assert (once - GREY).abs().max() <= 0.1 + 1e-6
    assert not torch.allclose((once - GREY)[0].flatten()[[0, 1, 3]].abs(), torch.tensor(0.1))


@settings(max_examples=40, deadline=None)
@given(
    threat=st.fixed_dictionaries(
        {
            "norm": st.sampled_from(["linf", "l2"]),
            "eps": st.floats(0.001, 3),
            "step_size": st.floats(0.001, 3),
            "steps": st.integers(0, 4),
            "restarts": st.integers(1, 2),
        }
    ),
    seed=st.integers(0, 1000),
)
def test_every_attack_stays_in_the_ball_and_in_the_unit_box(threat, seed):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 4, 3))
    images = torch.rand(3, 2, 4, 4, generator=seeded(seed))
    adversarial = pgd(network, images, torch.tensor([0, 1, 2]), generator=seeded(seed), **threat)
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
    radius = random_in_ball(images, norm="l2", eps=2.0, generator=seeded()).flatten(1).norm(dim=1)
    # Volume of a 3-ball grows with the cube: half of it lies within 2 * 0.5^(1/3); sd of the share is .0035.
    assert radius.max() <= 2.0 + 1e-6
    assert abs((radius < 2 * 0.5 ** (1 / 3)).float().mean() - 0.5) < 0.014
    cube = random_in_ball(images, norm="linf", eps=2.0, generator=seeded())
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
        survived = robust_accuracy(
            network, images, labels, norm=norm, eps=0.1, step_size=0.02, steps=60, seed=1, batch_size=64
        )
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

    survived = robust_accuracy(
        Threshold(), images, labels, norm="linf", eps=0.1, step_size=0.1, steps=1, restarts=2, seed=0
    )
    assert survived.tolist() == [False, False, False, True]
    # All four clean; three correct ones attacked and judged; then only the survivor.
    assert seen == [4, 3, 3, 1, 1]


def test_more_restarts_never_lower_the_loss():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.Tanh(), nn.Linear(20, 3))
    for layer in (network[1], network[3]):
        nn.init.normal_(layer.weight, std=3)
    images, labels = torch.rand(64, 1, 4, 4), torch.randint(0, 3, (64,))

    def loss(restarts):
        found = pgd(network, images, labels, **attack("linf", restarts=restarts, steps=3))
        return nn.functional.cross_entropy(network(found), labels, reduction="none")

    one, five = loss(1), loss(5)
    assert (five >= one - 1e-5).all()
    assert (five > one + 1e-3).any()


def test_attacks_leave_mode_and_gradients_alone():
    network = linear(WEIGHTS).train()
    pgd(network, GREY, torch.tensor([0, 1]), **attack("l2"))
    assert network.training
    assert network[1].weight.grad is None
    assert not GREY.requires_grad


def test_a_tie_at_the_top_is_not_correct():
    logits = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    assert correct(logits, torch.tensor([0, 0, 1])).tolist() == [False, True, False]


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="'l1' is unknown; choose one of linf, l2"):
        pgd(linear(WEIGHTS), GREY, torch.tensor([0, 1]), **attack("l1"))
    with pytest.raises(InputError, match="give a seeded torch"):
        pgd(linear(WEIGHTS), GREY, torch.tensor([0, 1]), **attack("linf", generator=None))


def test_the_name_of_an_attack_says_what_it_is():
    settings_of_attack = {"norm": "linf", "eps": 0.15, "steps": 20, "step_size": 0.015, "seed": 0}
    assert attack_name(**settings_of_attack) == "PGD-20, l_inf 0.15"
    assert attack_name(**settings_of_attack, restarts=5) == "PGD-20, l_inf 0.15, 5 restarts"
