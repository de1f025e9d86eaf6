"""Gradient attacks within a ball that let an image go as soon as it is fooled.

Tensors as in gfscore.attacks.gradient_ascent: images (n, C, H, W) in [0, 1], labels (n,) int64; `ball` is {"norm":
"linf" or "l2", "eps": radius}, `draws` the random numbers of these images (gfscore.statistics.draws). An attack returns
points (n, C, H, W) in the ball and in [0, 1] and the forward passes spent on each image, (n,) int64. Its caller judges
the points, so a last one may be untested. The network's mode and gradients are left as they were. For training, where
every image stays to the last step, see gfscore.attacks.gradient_ascent.
"""

from gfscore.attacks.goals import LESS_LIKELY, Goal
from gfscore.attacks.gradient_ascent import Ball, project, steepest
from gfscore.attacks.search import Search, ascent, logits_of, random_in_ball
from gfscore.core.tensors import Module, Tensor
from gfscore.statistics.draws import Draws


def fgsm(network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws) -> tuple[Tensor, Tensor]:
    """One gradient step from the image to the edge of the ball. Source: Goodfellow et al. 2015, section 4."""
    search = Search(images, LESS_LIKELY)
    search.leave(_ascend(network, images, images, labels, search, ball=ball, steps=1, step_size=ball["eps"]))
    return search.result


def pgd(
    network: Module,
    images: Tensor,
    aims: Tensor,
    *,
    ball: Ball,
    draws: Draws,
    steps: int,
    step_size: float,
    restarts: int,
    goal: Goal = LESS_LIKELY,
) -> tuple[Tensor, Tensor]:
    """Projected gradient ascent from random points of the ball, `restarts` times, every iterate tested.

    `step_size` is the length of a step in the ball's norm, None for 2.5 radii over all steps. What ascends is
    cross-entropy, in a form that keeps its gradient, or what a gfscore.attacks.goals.Goal says of the `aims`. Where
    nothing was found the point is the last iterate. Source: Madry et al. 2018, section 2.1.
    """
    step_size = 2.5 * ball["eps"] / steps if step_size is None else step_size
    search = Search(images, goal)
    for restart in range(restarts):
        x = images[search.standing]
        own = draws.stream(restart)[search.standing]
        start = project(x + random_in_ball(x, own, **ball), x, **ball)
        end = _ascend(network, start, x, aims[search.standing], search, ball=ball, steps=steps, step_size=step_size)
        search.leave(end)
        if restart < restarts - 1 and len(end):
            search.spend(1)
            search.note(end, logits_of(network, end), aims[search.standing])
        if len(search.standing) == 0:
            break
    return search.result


def _ascend(network, points, images, aims, search, *, ball, steps, step_size):
    # The last iterate of all standing images, not looked at.
    for _ in range(steps):
        if len(points) == 0:
            break
        logits, _, gradient = ascent(network, points, aims, search.goal)
        search.spend(1)
        keep = search.note(points, logits, aims)
        if keep is not None:
            points, images, aims, gradient = points[keep], images[keep], aims[keep], gradient[keep]
        points = project(points + step_size * steepest(gradient, norm=ball["norm"]), images, **ball)
    return points
