import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.passes import refusing_nan, watched

IMAGES = np.ones((2, 1, 2, 2), dtype=np.float32)


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
        running.logits(IMAGES)
        running.logits(IMAGES[:0])
    # Later passes are nobody's business.
    assert len(classifier.logits(IMAGES)) == 2


@pytest.mark.parametrize("make", SOURCES)
def test_numbers_and_classes_that_are_ruled_out_pass(make):
    with watched(make(3e38, -INF)) as running:
        assert running.logits(IMAGES).shape == (2, 2)


def test_passes_with_and_without_gradients_are_seen():
    layer = nn.Linear(4, 2)
    classifier = from_network(nn.Sequential(nn.Flatten(), layer))

    @refusing_nan
    def measure(running, images):
        running.logits(images)
        running.network(torch.from_numpy(images).requires_grad_()).sum().backward()
        with torch.no_grad():
            return running.network(torch.from_numpy(images))

    assert measure(classifier, IMAGES).shape == (2, 2)
    with pytest.raises(InputError, match="NaN or infinite"):
        measure(classifier, np.full_like(IMAGES, np.nan))


def test_an_error_that_comes_of_no_number_is_told_by_its_cause():
    with pytest.raises(InputError, match="NaN or infinite") as caught, watched(without_network(NAN)) as running:
        assert np.isfinite(running.logits(IMAGES)).all()
    assert isinstance(caught.value.__cause__, AssertionError)
    with pytest.raises(ZeroDivisionError), watched(without_network(0.0)):
        raise ZeroDivisionError


def test_complex_numbers_are_refused_by_the_classifier_itself():
    classifier = from_network(Constant(1j, 2 + 0j))
    with pytest.raises(InputError, match=r"returns a torch\.complex64; make it"):
        classifier.logits(IMAGES)
    with pytest.raises(InputError, match="real logits"), watched(classifier) as running:
        running.logits(IMAGES)
