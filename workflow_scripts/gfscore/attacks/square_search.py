"""The Square attack of pyautoattack, with random numbers that belong to the images."""

from collections.abc import Callable, Sequence
from itertools import count

import torch
from pyautoattack.square import SquareAttack
from torch import Tensor
from torch.nn import Module, functional

from gfscore.attacks.gradient_ascent import Ball
from gfscore.attacks.libraries import LIBRARY_NORMS, as_library_expects
from gfscore.statistics.draws import Draws

TILES = 5
"""Tiles along the height of an image from which Square of pyautoattack starts in l2."""

TIED_MARGIN = -1e-30
"""Margin of a tie in place of 0, so that the Square attack takes it for a misclassification."""


class SquareByImage(SquareAttack):
    """Square attack that takes ties for misclassifications, with a stream of random signs for each image.

    Parameters
    ----------
    network : callable
        From images to logits (n, K).
    images : Tensor
        (n, C, H, W), the images that are attacked.
    draws : Draws
        Random numbers of each image.
    ball : Ball
        Norm and radius.
    queries : int
        Forward passes of the search.
    """

    def __init__(
        self, network: Callable[[Tensor], Tensor], images: Tensor, *, draws: Draws, ball: Ball, queries: int
    ) -> None:
        super().__init__(
            network,
            norm=LIBRARY_NORMS[ball["norm"]],
            eps=ball["eps"],
            n_queries=queries,
            resc_schedule=False,
            device=images.device,
        )
        self.init_hyperparam(images)
        self.draws = draws
        # Indices of the images not yet fooled: the library evaluates margins of these, in this order.
        self.standing = torch.arange(len(images), device=images.device)
        self.streams = 0

    def margin_and_loss(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Margins and losses (m,) of the images still attacked."""
        # The library's search takes a tie for a misclassification, but its test before the search does not: where only
        # ties are left, it would search with an empty batch.
        margin, loss = super().margin_and_loss(x, y)
        self.standing = self.standing[margin > 0]
        return torch.where(margin == 0, TIED_MARGIN, margin), loss

    def random_choice(self, shape: Sequence[int]) -> Tensor:
        """Random signs, of all images together or of each one."""
        if len(shape) == self.ndims:
            # (C, 1, 1): colours that all images share, from torch's generator.
            return super().random_choice(shape)
        # (m, ...): signs for each of the m images still attacked.
        self.streams += 1
        return self.draws.stream(self.streams)[self.standing].uniform(shape[1:]).sign()


def square(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, queries: int
) -> tuple[Tensor, Tensor]:
    """Square attack: random search over squares, which needs no gradients; at most `queries` + 1 passes.

    The squares' sizes, places and patterns, and in l_inf their colours, are the same for all images and in every batch:
    they come from torch's generator, seeded by `draws.common`. All other signs come from a random stream of each image.
    In l2 the library fails on images of some sizes, such as 24 x 24 or fewer than 5 rows. These are padded for the
    search by rows and columns that the network does not see, on which a share of the perturbation is lost.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], correctly classified, and (n,) int64.
    ball : Ball
        Norm and radius.
    draws : Draws
        Random numbers of each image.
    queries : int
        Forward passes of the search.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), and forward passes of each image, (n,) int64.

    References
    ----------
    Andriushchenko et al. 2020, Algorithms 1 to 3.
    """
    height, width = images.shape[2:]
    rows, columns = _size_for_tiles(height, width) if ball["norm"] == "l2" else (height, width)
    padded = functional.pad(images, (0, columns - width, 0, rows - height))
    with as_library_expects(network, seed=draws.common) as counted:

        def logits(padded_points: Tensor) -> Tensor:
            return counted(padded_points[:, :, :height, :width])

        attack = SquareByImage(logits, padded, draws=draws, ball=ball, queries=queries)
        passes, points = attack.attack_single_run(padded, labels)
    return points[:, :, :height, :width], passes.long()


def _size_for_tiles(height: int, width: int) -> tuple[int, int]:
    # Smallest height, and width for it, at which the library's search in l2 does not fail.
    height = next(size for size in count(height) if _tiles_fit(size, size))
    return height, next(size for size in count(width) if _tiles_fit(height, size))


def _tiles_fit(height: int, width: int) -> bool:
    # Whether the tiles that the library starts from in l2 lie inside the image: it places as many as its height and
    # width hold, but begins at a margin. A tile of one pixel may lie outside, where the library adds nothing.
    side = height // TILES
    if side < 2:
        return side == 1
    margin = (height - TILES * side) // 2
    return all(margin + size // side * side <= size for size in (height, width))
