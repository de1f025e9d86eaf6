"""Attacks of pyautoattack within a ball, in the form of gfscore.attacks.ball_attacks.

Only FAB and Square come from there. Its Auto-PGD keeps fooled images to the end of a restart, and its targeted one
fails with fewer than 4 classes; foolbox 3.3.4 has neither Auto-PGD, FAB nor Square, and the projected gradient descent
of both foolbox and the adversarial-robustness-toolbox 1.20.1 tests the last iterate only and never lets an image go.
benchmarks/attacks.py compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gfscore.attacks.boundary import misclassified
from gfscore.attacks.library_networks import as_library_expects
from gfscore.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from gfscore.attacks.gradient_ascent import Ball
    from gfscore.statistics.draws import Draws

_NORM = {"linf": "Linf", "l2": "L2"}


def fab(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, steps: int, targets: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack towards each of the `targets` likeliest wrong classes in turn.

    `targets` < K. It searches the nearest boundary point, so it succeeds where that lies in the ball; it draws no
    random numbers. Source: Croce and Hein 2020 (minimally distorted adversarial examples), Algorithm 1.
    """
    import torch
    from pyautoattack.fab_pt import FABAttack_PT

    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    standing = torch.arange(len(images), device=images.device)
    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=_NORM[ball["norm"]], eps=ball["eps"], n_iter=steps, device=images.device)
        for rank in range(targets):
            if len(standing) == 0:
                break
            x, y = images[standing], labels[standing]
            # The library counts from the likeliest class, which is the true one.
            attack.target_class = rank + 2
            before = counted.images
            with torch.no_grad():
                found = attack.attack_single_run(x, y, is_targeted=True)
                difference = (found - x).flatten(1)
                length = difference.abs().amax(1) if ball["norm"] == "linf" else difference.norm(dim=1)
                fooled = (length <= ball["eps"]) & misclassified(counted(found), y)
            passes[standing] += (counted.images - before) // len(standing)
            points[standing[fooled]] = found[fooled]
            standing = standing[~fooled]
    return points, passes


def square(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, queries: int
) -> tuple[Tensor, Tensor]:
    """Square attack: random search over squares, which needs no gradients; at most `queries` + 1 passes.

    Where the squares lie, and in l_inf their colours, all images share, whatever their batch: that is seeded by
    `draws.common`. What else is random each image draws for itself.
    Raises InputError for images that are not square or, in l2, smaller than 5 pixels, on which the library fails.
    Source: Andriushchenko et al. 2020, Algorithms 1 to 3.
    """
    import torch
    from pyautoattack.square import SquareAttack

    height, width = images.shape[2:]
    if height != width or (ball["norm"] == "l2" and height < 5):
        raise InputError(
            f"attack 'square' does not work on images of {height} x {width} pixels; take it (and autoattack, which "
            "contains it) out of the attacks of this measure"
        )

    class Square(SquareAttack):
        standing, drawn = torch.arange(len(images), device=images.device), 0

        def margin_and_loss(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            # A tie at the top is an error here, but starts the library on an empty batch.
            margin, loss = super().margin_and_loss(x, y)
            self.standing = self.standing[margin > 0]
            return torch.where(margin == 0, -1e-30, margin), loss

        def random_choice(self, shape: Sequence[int]) -> Tensor:
            if len(shape) == images.ndim - 1:
                return super().random_choice(shape)
            # Signs of each image that is still attacked.
            self.drawn += 1
            return draws.stream(self.drawn)[self.standing].uniform(shape[1:]).sign()

    with as_library_expects(network, seed=draws.common) as counted:
        attack = Square(
            counted, norm=_NORM[ball["norm"]], eps=ball["eps"], n_queries=queries, resc_schedule=False,
            device=images.device,
        )  # fmt: skip
        attack.init_hyperparam(images)
        passes, points = attack.attack_single_run(images, labels)
    return points, passes.long()
