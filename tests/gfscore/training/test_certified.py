"""Certified training: its bounds against a network computed by hand, attacked points and the bounds of proofs."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from gfscore.attacks.batch_pgd import batch_pgd
from gfscore.core.errors import InputError
from gfscore.networks.architectures import build_network
from gfscore.networks.sources.trained import Trained
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove
from gfscore.training.certified import Box, Schedule, TracedNetwork, interval_bounds, least_margins
from gfscore.training.methods import crown_ibp, ibp, sabr
from gfscore.training.objectives import EpochEnd, Setup, Threat

EPS = 0.1


def hand_network():
    """z = (relu(a + b), 3 relu(a - b)) of two pixels a, b."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
        network[3].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        network[1].bias.zero_()
        network[3].bias.zero_()
    return network


def hand_batch():
    """One grey image of both classes: a and b in .4 to .6 within EPS, so a + b in .8 to 1.2 and a - b in -.2 to .2."""
    return torch.full((2, 1, 1, 2), 0.5), torch.tensor([0, 1])


def bounded(network, images, labels, eps, *, through_relus):
    graph = TracedNetwork.of(network, images).graph(network)
    bounds = interval_bounds(graph, Box.around(images, eps))
    return least_margins(graph, bounds, labels, through_relus=through_relus)


@pytest.mark.parametrize(
    ("through_relus", "expected"),
    # The chord of relu(a - b) is (a - b + .2) / 2: a + b - 1.5 (a - b + .2) is least at a = .6, b = .4.
    [(False, [[0, 0.2], [-1.2, 0]]), (True, [[0, 0.4], [-1.2, 0]])],
)
def test_margins_of_a_network_computed_by_hand(through_relus, expected):
    margins = bounded(hand_network(), *hand_batch(), EPS, through_relus=through_relus)
    np.testing.assert_allclose(margins.detach(), expected, atol=1e-6)


def convolutional():
    torch.manual_seed(0)
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=4, width=4)
    images = torch.rand(20, 1, 8, 8)
    return network, images, torch.arange(20) % 4


def residual():
    """A sum of branches, normalisation, average and maximum pooling."""

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(1, 3, 3, padding=1)
            self.second = nn.Conv2d(3, 3, 3, padding=1)
            self.last = nn.Linear(12, 4)

        def forward(self, images):
            features = torch.relu(self.first((images - 0.5) / 0.25))
            features = torch.relu(self.second(features)) + features
            pooled = nn.functional.max_pool2d(nn.functional.avg_pool2d(features, 2), 2)
            return self.last(pooled.flatten(1))

    torch.manual_seed(1)
    return Residual(), torch.rand(20, 1, 8, 8), torch.arange(20) % 4


@pytest.mark.parametrize("through_relus", [False, True])
@pytest.mark.parametrize("make", [convolutional, residual])
@pytest.mark.parametrize("eps", [0.01, 0.2])
def test_no_attacked_point_lies_below_a_bound(make, eps, through_relus):
    network, images, labels = make()
    margins = bounded(network, images, labels, eps, through_relus=through_relus).detach()
    generator = torch.Generator().manual_seed(0)
    for rival in range(4):
        attacked = batch_pgd(
            network, images, labels, norm="linf", eps=eps, step_size=eps / 4, steps=20, generator=generator,
            loss=lambda logits, y, rival=rival: logits[:, rival] - logits.gather(1, y[:, None])[:, 0],
        )  # fmt: skip
        logits = network(attacked).detach()
        reached = logits.gather(1, labels[:, None])[:, 0] - logits[:, rival]
        assert (reached >= margins[:, rival] - 1e-5).all()


def test_intervals_are_those_of_proofs():
    network, images, labels = convolutional()
    eps = 0.002
    margins = bounded(network, images, labels, eps, through_relus=False).detach()
    margins[torch.arange(len(labels)), labels] = math.inf
    right = network(images).argmax(1) == labels
    layers = layered(graph_of(network, (1, 8, 8)))
    proofs = prove(layers, images[right].numpy(), labels[right].numpy(), norm="linf", eps=eps, budget=0)
    decided = [proof.decided_by == "ibp" for proof in proofs]
    assert decided == (margins[right].amin(1) > 0).tolist()
    assert any(decided)


def test_the_radius_grows_after_the_warmup():
    schedule = Schedule(epochs=10, warmup=0.2, ramp=0.5)
    assert [schedule.growth(epoch) for epoch in (0, 2, 3, 6, 7, 10)] == pytest.approx([0, 0, 0.2, 0.8, 1, 1])
    assert [Schedule(10, 0.2, 0).growth(epoch) for epoch in (1, 2)] == [0, 1]


def objective_of(method, coefficients, network, *, epochs=10, threat=None):
    threat = threat or Threat("linf", EPS, EPS / 4, 7)
    setup = Setup(2, threat, torch.Generator().manual_seed(0), network, epochs)
    return method(setup, coefficients)


def loss_after(objective, network, epochs):
    objective.after_epoch(EpochEnd(network, epochs, lambda: None))
    return objective(network, *hand_batch()).item()


def cross_entropy(*margins):
    return float(np.mean([math.log(1 + math.exp(-margin)) for margin in margins]))


def test_the_loss_moves_from_images_as_they_are_to_the_least_margins():
    # Of the images themselves the margins are 1 and -1.
    network = hand_network()
    coefficients = ibp.CertifiedCoefficients(kappa=0.4, warmup=0.2, ramp=0.4)
    objective = objective_of(ibp.ibp, coefficients, network)
    assert loss_after(objective, network, 1) == pytest.approx(cross_entropy(1, -1), rel=1e-5)
    # At half the radius a + b is .9 to 1.1 and a - b at most .1.
    halfway = 0.7 * cross_entropy(1, -1) + 0.3 * cross_entropy(0.9 - 0.3, -1.1)
    assert loss_after(objective, network, 4) == pytest.approx(halfway, rel=1e-5)
    full = 0.4 * cross_entropy(1, -1) + 0.6 * cross_entropy(0.2, -1.2)
    assert loss_after(objective, network, 6) == pytest.approx(full, rel=1e-5)


def test_crown_ibp_moves_from_linear_bounds_to_intervals():
    network = hand_network()
    coefficients = crown_ibp.CrownIbpCoefficients(kappa=0, warmup=0, ramp=1, beta=0.25)
    objective = objective_of(crown_ibp.crown_ibp, coefficients, network)
    expected = cross_entropy(0.25 * 0.4 + 0.75 * 0.2, -1.2)
    assert loss_after(objective, network, 10) == pytest.approx(expected, rel=1e-5)


def test_a_small_box_of_the_full_size_is_that_of_ibp():
    network = hand_network()
    coefficients = sabr.SabrCoefficients(warmup=0, ramp=0, size=1)
    assert loss_after(objective_of(sabr.sabr, coefficients, network), network, 1) == pytest.approx(
        cross_entropy(0.2, -1.2), rel=1e-5
    )


def test_a_small_box_lies_around_the_attacked_point_within_the_ball():
    # With a = .6 and b = .4 the margin of class 0, a + b - 3 (a - b), falls with a and rises with b. Three quarters of the
    # ball are attacked, to a = .675 and b = .325; the box around it ends at the ball's corner, where a - b is .4 at most,
    # and a + b at least .95.
    network = hand_network()
    coefficients = sabr.SabrCoefficients(warmup=0, ramp=0, size=0.25)
    objective = objective_of(sabr.sabr, coefficients, network, threat=Threat("linf", EPS, EPS / 4, 12))
    objective.after_epoch(EpochEnd(network, 1, lambda: None))
    loss = objective(network, torch.tensor([[[[0.6, 0.4]]]]), torch.tensor([0])).item()
    assert loss == pytest.approx(cross_entropy(0.95 - 3 * 0.4), rel=1e-4)


@pytest.mark.parametrize("method", ["IBP", "CROWN_IBP", "SABR"])
def test_other_balls_than_boxes_are_refused_with_their_place(method):
    entry = {"train_on": "train", "training": {"method": method}, "attack": {"norm": "l2", "eps": 0.5}}
    with pytest.raises(ValidationError, match=method):
        Trained.model_validate(entry)
    entry["training"]["threat"] = {"norm": "linf", "eps": 0.1}
    assert Trained.model_validate(entry).training.threat.norm == "linf"


def test_a_network_without_bounds_is_refused_by_its_operator():
    images = torch.rand(2, 1, 8, 8)
    network = build_network("patch_mixer", in_channels=1, image_size=(8, 8), classes=2, width=4)
    with pytest.raises(InputError, match="layer_norm"):
        TracedNetwork.of(network, images).graph(network)
