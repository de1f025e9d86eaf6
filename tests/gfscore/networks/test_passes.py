import numpy as np
import pytest
import torch

from gfscore.attacks.libraries import as_library_expects
from gfscore.networks import passes
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier, from_network

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


def test_a_network_that_is_compiled_is_compiled_once_and_counted(network):
    torch._dynamo.reset()
    graphs = []

    def compiler(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    def compiled(running):
        fast = torch.compile(running.network, backend=compiler)
        with torch.no_grad():
            for _ in range(3):
                fast(IMAGES)

    assert of(compiled, from_network(network), compiled=True) == {"forwards": 18, "backwards": 0}
    assert len(graphs) == 1
