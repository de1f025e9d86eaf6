"""Small networks whose boundaries are known, images near these, and networks with faults."""

import numpy as np
import pytest
import torch
from torch import nn


def linear(classes, pixels=48, *, seed=0, scale=1.0):
    """Linear classifier whose boundaries pass near the grey image."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(pixels, classes)
    with torch.no_grad():
        layer.weight.copy_(scale * torch.randn(classes, pixels, generator=generator))
        layer.bias.copy_(-layer.weight.sum(1) / 2 + 0.1 * scale * torch.randn(classes, generator=generator))
    return nn.Sequential(nn.Flatten(), layer)


def curved(classes, pixels=48, *, width=32, seed=0):
    """A network of one hidden layer, in eval mode."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, classes)).eval()


def grey(n, shape=(3, 4, 4), seed=1):
    """Images so far inside [0, 1] that the box does not bind."""
    return np.random.default_rng(seed).uniform(0.2, 0.8, (n, *shape)).astype(np.float32)


def predicted(network, images):
    """Classes that a network says of arrays."""
    with torch.no_grad():
        return network(torch.from_numpy(images)).argmax(1).numpy()


def margins(network, images, labels, norm):
    """Distance of each image to the nearest boundary of its label's region under `linear`; negative outside, float64."""
    weights, bias = (value.detach().double().numpy() for value in network[1].parameters())
    logits = images.reshape(len(images), -1).astype(float) @ weights.T + bias
    result = []
    for z, y in zip(logits, labels, strict=True):
        dual = np.linalg.norm(weights[y] - np.delete(weights, y, 0), ord=1 if norm == "linf" else 2, axis=1)
        result.append(np.min((z[y] - np.delete(z, y)) / dual))
    return np.array(result)


class Wrapped(nn.Module):
    """A network behind a function of images and of the network."""

    def __init__(self, network, function):
        super().__init__()
        self.network, self.function = network, function

    def forward(self, x):
        return self.function(self.network, x)


def detached(network):
    """The network without gradients of its logits."""
    return Wrapped(network, lambda network, x: network(x).detach())


def rounded(network, levels):
    """Gradient masking: pixels are rounded, so that every gradient is 0."""
    return Wrapped(network, lambda network, x: network(torch.round(levels * x) / levels))


def capped():
    """Logit 1 can reach logit 0 and no more."""

    def logits(_, x):
        pixel = x.flatten(1)[:, 0]
        return torch.stack([torch.ones_like(pixel), (2 * pixel).clamp(max=1)], dim=1)

    return Wrapped(None, logits)


def broken(network, images, value=float("nan"), *, beyond=1e-2):
    """Logits are `value` where a pixel differs from the data: only what a measure makes of them shows it."""
    data = torch.from_numpy(images).flatten(1)

    def logits(network, x):
        near = torch.cdist(x.detach().flatten(1), data).amin(1)
        return torch.where(near[:, None] > beyond, value, network(x))

    return Wrapped(network, logits)


@pytest.fixture
def one_thread():
    """Networks this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
