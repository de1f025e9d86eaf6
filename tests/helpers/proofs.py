"""Small random networks and searches for points that contradict bounds, for tests of proofs."""

from itertools import product

import torch
from torch import nn


class Residual(nn.Module):
    """A convolution beside a shortcut, with a batch normalisation."""

    def __init__(self, channels, activation):
        super().__init__()
        self.layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.activation = activation

    def forward(self, x):
        return self.activation(self.norm(self.layer(x)) + x)


def random_network(seed, *, relu_only=False):
    """A network of two to four random parts for images (2, 4, 4), with three classes; every third one is pruned."""
    torch.manual_seed(seed)
    kinds = [nn.ReLU(), nn.ReLU(), nn.LeakyReLU(0.1)]
    if not relu_only:
        kinds += [nn.Sigmoid(), nn.Tanh()]

    def pick(options):
        return options[int(torch.randint(len(options), ()))]

    parts = [nn.Conv2d(2, 3, 3, padding=1), pick(kinds)]
    for _ in range(int(torch.randint(0, 3, ()))):
        parts += pick(
            [
                [Residual(3, pick(kinds))],
                [nn.BatchNorm2d(3), pick(kinds)],
                [nn.Conv2d(3, 3, 3, padding=1, groups=3), pick(kinds)],
            ]
        )
    parts += pick([[nn.MaxPool2d(2)], [nn.AvgPool2d(2)], [nn.Conv2d(3, 3, 2, stride=2), pick(kinds)]])
    network = nn.Sequential(*parts, nn.Flatten(), nn.Linear(12, 8), pick(kinds), nn.Linear(8, 3))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.3, 2)
        if seed % 3 == 0 and isinstance(module, (nn.Linear, nn.Conv2d)) and module is not network[-1]:
            unit = int(torch.randint(len(module.weight), ()))
            nn.init.zeros_(module.weight[unit])
            if module.bias is not None:
                nn.init.zeros_(module.bias[unit])
    return network.eval()


class TwoLogits(nn.Module):
    """The first number and 0."""

    def forward(self, x):
        x = x.flatten(1)[:, :1]
        return torch.cat([x, 0 * x], dim=1)


class Products(nn.Module):
    """A logit of 1.16e-83 less relu(x_1 - x_2) times each of some factors, and 0."""

    def __init__(self, factors):
        super().__init__()
        self.factors = factors
        self.difference = nn.Linear(2, 1, bias=False)
        self.difference.weight.data = torch.tensor([[1.0, -1.0]])
        self.two_logits = TwoLogits()

    def forward(self, x):
        rectified = torch.relu(self.difference(x.flatten(1)))
        product = rectified
        for factor in self.factors:
            product = product * factor
        return self.two_logits((0 * rectified + 1.16e-13) * 1e-35 * 1e-35 - product)


def cancelling_normalisation(mean, variance):
    """A network whose margin at a black image is mean * factor, rounded to float32 as the bias, less mean * factor."""
    norm = nn.BatchNorm2d(1)
    norm.running_mean.fill_(mean)
    norm.running_var.fill_(variance)
    nn.init.constant_(norm.bias, float(norm.running_mean.double() * (norm.running_var.double() + norm.eps).rsqrt()))
    return nn.Sequential(norm, TwoLogits()).eval().requires_grad_(False)


def small_dense(seed, pixels=3, width=5):
    """A network of so few pixels and units that all corners and all signs can be enumerated."""
    torch.manual_seed(seed)
    layers = [
        nn.Flatten(),
        nn.Linear(pixels, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 3),
    ]
    return nn.Sequential(*layers).eval()


def points_in(image, eps, norm, generator, count):
    """Points (count, C, H, W) float64 of the ball of an image (C, H, W) cut with [0, 1], corners among them."""
    noise = torch.rand(count, *image.shape, generator=generator, dtype=torch.float64) * 2 - 1
    noise[::2] = noise[::2].sign()
    return _inside(image.double() + eps * noise, image.double(), eps, norm)


def _inside(points, image, eps, norm):
    offsets = points - image
    if norm == "linf":
        offsets = offsets.clamp(-eps, eps)
    else:
        lengths = offsets.flatten(1).norm(dim=1).clamp(min=1e-30)
        offsets = offsets * (eps / lengths).clamp(max=1).reshape(-1, *[1] * image.ndim) * (1 - 1e-12)
    return (image + offsets).clamp(0, 1)


def smallest_margins(graph, image, label, ball, generator, *, starts=8, steps=20):
    """Smallest margin z_label - z_j that an ascent finds in a ball (norm, eps), for every other class j, (K - 1,)."""
    norm, eps = ball
    rivals = [j for j in range(graph.classes) if j != label]
    results = []
    for rival in rivals:
        points = points_in(image, eps, norm, generator, starts)
        best = torch.tensor(torch.inf, dtype=torch.float64)
        for step in range(steps + 1):
            points = points.detach().requires_grad_()
            logits = graph.logits(points)
            margin = logits[:, label] - logits[:, rival]
            best = torch.minimum(best, margin.min().detach())
            (gradient,) = torch.autograd.grad(margin.sum(), points)
            direction = gradient.sign() if norm == "linf" else _unit(gradient)
            moved = points.detach() - eps * (0.5 - 0.4 * step / steps) * direction
            points = _inside(moved, image.double(), eps, norm)
        results.append(best)
    return torch.stack(results)


def _unit(gradient):
    lengths = gradient.flatten(1).norm(dim=1).clamp(min=1e-30)
    return gradient / lengths.reshape(-1, *[1] * (gradient.ndim - 1))


def corners(image, eps):
    """All corners (2^d, C, H, W) of an l_inf ball cut with [0, 1]."""
    low = (image.double() - eps).clamp(0, 1).flatten()
    high = (image.double() + eps).clamp(0, 1).flatten()
    points = []
    for choice in product((False, True), repeat=len(low)):
        points.append(torch.where(torch.tensor(choice), low, high))
    return torch.stack(points).reshape(-1, *image.shape)
