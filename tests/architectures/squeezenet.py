"""SqueezeNet v1.0 under the names of the ImageNet checkpoint of the test data."""

import torch
from torch import nn
from torch.nn import functional

WIDTHS = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
"""Squeeze and expand channels of each fire module (Iandola et al. 2016, table 1)."""


class SqueezeNet(nn.Module):
    """Fire modules 2 to 9 between two convolutions, every convolution in one list `c`."""

    def __init__(self, classes=1000):
        super().__init__()
        convolutions, channels = [nn.Conv2d(3, 96, 7, stride=2)], 96
        for squeeze, expand in WIDTHS:
            convolutions += [
                nn.Conv2d(channels, squeeze, 1),
                nn.Conv2d(squeeze, expand, 1),
                nn.Conv2d(squeeze, expand, 3, padding=1),
            ]
            channels = 2 * expand
        self.c = nn.ModuleList([*convolutions, nn.Conv2d(channels, classes, 1)])

    def forward(self, x):
        x = functional.relu(self.c[0](x))
        for fire in range(len(WIDTHS)):
            if fire in (0, 3, 7):
                x = functional.max_pool2d(x, 3, stride=2, ceil_mode=True)
            squeeze, left, right = self.c[1 + 3 * fire : 4 + 3 * fire]
            x = functional.relu(squeeze(x))
            x = torch.cat([functional.relu(left(x)), functional.relu(right(x))], dim=1)
        return functional.relu(self.c[-1](x)).mean(dim=(2, 3))
