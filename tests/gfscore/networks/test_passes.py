"""Counts of forward and backward passes, and logits that are no numbers."""

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.attacks.libraries import as_library_expects
from gfscore.core.errors import InputError
from gfscore.networks import passes
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.passes import refusing_nan, watched

IMAGES = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()


def of(block, classifier, **how):
    before = passes.counts()
    with passes.counted(classifier, **how) as running:
        block(running)
    return passes.counts_since(before)


def test_passes_count_whoever_makes_them(network):
    def every_way(running):
        running.logits(IMAGES.numpy())
        BatchedClassifier(running, batch_size=4).logits(IMAGES)
        running.network(IMAGES[:1])
        with as_library_expects(running.network, seed=0) as given:
            given(IMAGES[:2])

    assert of(every_way, from_network(network)) == {"forwards": 6 + 6 + 1 + 2, "backwards": 0}
    network(IMAGES)
    assert of(lambda running: None, from_network(network)) == {"forwards": 0, "backwards": 0}, "counts go on afterwards"


def test_every_gradient_counts_and_a_pass_without_one_does_not(network):
    def gradients(running):
        points = IMAGES.clone().requires_grad_()
        logits = running.network(points)
        for index in range(3):
            torch.autograd.grad(logits[:, index].sum(), points, retain_graph=True)
        running.network(points)

    assert of(gradients, from_network(network)) == {"forwards": 12, "backwards": 18}


def test_counting_changes_neither_logits_nor_gradients(network):
    def both():
        points = IMAGES.clone().requires_grad_()
        logits = network(points)
        return logits.detach(), torch.autograd.grad(logits.square().sum(), points)[0]

    plain = both()
    with passes.counted(from_network(network)):
        for value, counted in zip(plain, both(), strict=True):
            assert torch.equal(value, counted)


def test_a_classifier_without_a_network_is_counted_too():
    classifier = Classifier("", None, 3, None, run=lambda images: np.zeros((len(images), 3), dtype=np.float32))
    assert of(lambda running: running.logits(IMAGES.numpy()), classifier) == {"forwards": 6, "backwards": 0}


def test_a_pass_that_fails_is_not_counted(network):
    def fails(running):
        with pytest.raises(RuntimeError):
            running.network(torch.zeros(5, 1, 3, 3))

    assert of(fails, from_network(network)) == {"forwards": 0, "backwards": 0}


ONES = np.ones((2, 1, 2, 2), dtype=np.float32)


class Constant(nn.Module):
    def __init__(self, *values):
        super().__init__()
        self.values = torch.tensor(values)

    def forward(self, x):
        return self.values.expand(len(x), -1)


def without_network(*values):
    return Classifier("", None, None, None, run=lambda images: np.tile(np.float32(values), (len(images), 1)))


SOURCES = [lambda *values: from_network(Constant(*values)), without_network]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("values", [(0.0, NAN), (INF, INF), (NAN, -INF)])
def test_what_is_no_number_is_refused_whatever_comes_after(make, values):
    classifier = make(*values)
    with pytest.raises(InputError, match="NaN or infinite"), watched(classifier) as running:
        running.logits(ONES)
        running.logits(ONES[:0])
    # Later passes are nobody's business.
    assert len(classifier.logits(ONES)) == 2


@pytest.mark.parametrize("make", SOURCES)
def test_numbers_and_classes_that_are_ruled_out_pass(make):
    with watched(make(3e38, -INF)) as running:
        assert running.logits(ONES).shape == (2, 2)


def test_passes_with_and_without_gradients_are_seen():
    layer = nn.Linear(4, 2)
    classifier = from_network(nn.Sequential(nn.Flatten(), layer))

    @refusing_nan
    def measure(running, images):
        running.logits(images)
        running.network(torch.from_numpy(images).requires_grad_()).sum().backward()
        with torch.no_grad():
            return running.network(torch.from_numpy(images))

    assert measure(classifier, ONES).shape == (2, 2)
    with pytest.raises(InputError, match="NaN or infinite"):
        measure(classifier, np.full_like(ONES, np.nan))


def test_an_error_that_comes_of_no_number_is_told_by_its_cause():
    with pytest.raises(InputError, match="NaN or infinite") as caught, watched(without_network(NAN)) as running:
        assert np.isfinite(running.logits(ONES)).all()
    assert isinstance(caught.value.__cause__, AssertionError)
    with pytest.raises(ZeroDivisionError), watched(without_network(0.0)):
        raise ZeroDivisionError


def test_complex_numbers_are_refused_by_the_classifier_itself():
    classifier = from_network(Constant(1j, 2 + 0j))
    with pytest.raises(InputError, match=r"returns a torch\.complex64; make it"):
        classifier.logits(ONES)
    with pytest.raises(InputError, match="real logits"), watched(classifier) as running:
        running.logits(ONES)
