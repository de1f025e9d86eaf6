"""Networks of the CIFAR-10 checkpoints of the test data, written from the facts in its models.json."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


def convnet(channels, features, hidden, *, kernels=None, padding=1, activation="relu"):
    """Strided 4x4 convolutions (3x3 ones keep the size), then linear layers, an activation between any two.

    `channels` of each convolution, `features` their flattened output, `hidden` sizes of the inner linear layers.
    """
    between = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}[activation]
    kernels = kernels or [4] * len(channels)
    layers = []
    for (before, after), kernel in zip(pairwise([3, *channels]), kernels, strict=True):
        layers += [nn.Conv2d(before, after, kernel, stride=2 if kernel == 4 else 1, padding=padding), between()]
    layers.append(nn.Flatten())
    for before, after in pairwise([features, *hidden]):
        layers += [nn.Linear(before, after), between()]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], 10))


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut without parameters (option A of He et al. 2016)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.added = stride, after - before

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        shortcut = functional.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added // 2))
        return functional.relu(y + shortcut)


class ResNet(nn.Module):
    """Residual network for 32x32 images with `blocks` blocks in each of three stages (He et al. 2016, section 4.2)."""

    def __init__(self, blocks):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, blocks, 1)
        self.layer2 = self._stage(16, 32, blocks, 2)
        self.layer3 = self._stage(32, 64, blocks, 2)
        self.linear = nn.Linear(64, 10)

    def _stage(self, before, after, blocks, stride):
        return nn.Sequential(Block(before, after, stride), *[Block(after, after, 1) for _ in range(blocks - 1)])

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))
