"""Gradient attacks within a ball that stop for an image as soon as it is fooled.

Tensors as in gfscore.attacks.gradient_ascent: images (n, C, H, W) in [0, 1], labels (n,) int64; `ball` is {"norm":
"linf" or "l2", "eps": radius}, `draws` the random numbers of these images (gfscore.statistics.draws). An attack returns
points (n, C, H, W) in the ball and in [0, 1], and the forward passes spent on each image, (n,) int64. Its caller judges
the points, so the last one may be untested. The network's mode and gradients are left as they were. For training, where
every image stays to the last step, see gfscore.attacks.batch_pgd.
"""

import math
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.goals import LOG_ODDS, LOGITS_RATIO, TARGETED_LOGITS_RATIO, Goal
from gfscore.attacks.gradient_ascent import SHORTEST, Ball, other_logits, per_image, project, steepest
from gfscore.attacks.search import Search, ascent, logits_of, random_in_ball
from gfscore.statistics.draws import Draws

PATH_LENGTH = 2.5
"""Length of all steps of PGD together, in radii of the ball, where no step size is set (Madry et al. 2018)."""

MOMENTUM = 0.75
"""Weight of the new step of Auto-PGD; alpha of the paper."""

RISING_SHARE = 0.75
"""Auto-PGD halves its step size where a smaller share of the steps raised the loss; rho of the paper."""


def fgsm(network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws) -> tuple[Tensor, Tensor]:
    """One gradient step from the image to the edge of the ball.

    References
    ----------
    Goodfellow et al. 2015, section 4.
    """
    search = Search(images, LOG_ODDS)
    logits, _, gradient = ascent(network, images, labels, search.goal)
    search.spend(1)
    keep = search.note(images, logits, labels)
    if keep is not None:
        images, gradient = images[keep], gradient[keep]

    step = ball["eps"] * steepest(gradient, norm=ball["norm"])
    search.record_positions(project(images + step, images, **ball))
    return search.result


def pgd(
    network: Module,
    images: Tensor,
    aims: Tensor,
    *,
    ball: Ball,
    draws: Draws,
    steps: int,
    step_size: float | None,
    restarts: int,
    goal: Goal = LOG_ODDS,
) -> tuple[Tensor, Tensor]:
    """Projected gradient ascent from random points of the ball, every iterate tested.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, aims : Tensor
        (n, C, H, W) in [0, 1], and the aims of the goal: labels (n,), or labels and targets (n, 2).
    ball : Ball
        Norm and radius.
    draws : Draws
        Random numbers of the images.
    steps : int
        Gradient steps of each restart.
    step_size : float or None
        Length of a step in the ball's norm; None for 2.5 radii over all steps.
    restarts : int
        Random starts; an image that is fooled makes no further one.
    goal : Goal
        Loss that ascends; cross-entropy, in a form that keeps its gradient, unless given.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), the last iterate where the attack failed; forward passes (n,) int64.

    References
    ----------
    Madry et al. 2018, section 2.1.
    """
    if step_size is None:
        step_size = PATH_LENGTH * ball["eps"] / steps
    search = Search(images, goal)
    for restart in range(restarts):
        if len(search.standing) == 0:
            break
        x, y = images[search.standing], aims[search.standing]
        start = random_in_ball(x, draws.stream(restart)[search.standing], **ball)
        points = project(x + start, x, **ball)

        for _ in range(steps):
            if len(points) == 0:
                break
            logits, _, gradient = ascent(network, points, y, goal)
            search.spend(1)
            keep = search.note(points, logits, y)
            if keep is not None:
                points, x, y, gradient = points[keep], x[keep], y[keep], gradient[keep]
            step = step_size * steepest(gradient, norm=ball["norm"])
            points = project(points + step, x, **ball)

        search.record_positions(points)
        if restart < restarts - 1 and len(points):
            search.spend(1)
            search.note(points, logits_of(network, points), y)
    return search.result


def auto_pgd(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    ball: Ball,
    draws: Draws,
    steps: int,
    restarts: int,
    goal: Goal,
) -> tuple[Tensor, Tensor]:
    """Auto-PGD: gradient ascent with momentum whose step size follows the progress of each image.

    Parameters
    ----------
    network, images, labels, ball, draws, steps
        See `pgd`.
    restarts : int
        Random starts, on the sphere.
    goal : Goal
        Loss that ascends.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), the point of highest loss where the attack failed; forward passes (n,) int64.

    References
    ----------
    Croce and Hein 2020, Algorithm 1.
    """
    search = Search(images, goal)
    for restart in range(restarts):
        if len(search.standing) == 0:
            break
        _run_auto_pgd(network, images, labels, search, ball=ball, draws=draws.stream(restart), steps=steps)
    return search.result


auto_pgd_on_cross_entropy = partial(auto_pgd, goal=LOG_ODDS)
"""Auto-PGD on the cross-entropy, in the form of it that keeps its gradient."""

auto_pgd_on_logits_ratio = partial(auto_pgd, goal=LOGITS_RATIO)
"""Auto-PGD on the difference of logits ratio; needs K >= 3."""


def auto_pgd_targeted(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    ball: Ball,
    draws: Draws,
    steps: int,
    targets: int,
) -> tuple[Tensor, Tensor]:
    """Auto-PGD towards each of the `targets` likeliest wrong classes in turn, until any wrong class is predicted.

    Needs K >= 4 and `targets` < K.

    References
    ----------
    Croce and Hein 2020, section 5.
    """
    search = Search(images, TARGETED_LOGITS_RATIO)
    logits = logits_of(network, images)
    search.spend(1)
    rivals = other_logits(logits, labels).argsort(1, descending=True)
    for rank in range(targets):
        if len(search.standing) == 0:
            break
        aims = torch.stack([labels, rivals[:, rank]], dim=1)
        _run_auto_pgd(network, images, aims, search, ball=ball, draws=draws.stream(rank), steps=steps)
    return search.result


def checkpoints(steps: int) -> list[int]:
    """Steps after which Auto-PGD judges the step size, ascending.

    References
    ----------
    Croce and Hein 2020, section 3.2.
    """
    previous, share = 0.0, 0.22
    checkpoint_steps = set()
    while share < 1:
        # Decimals: .57 of 100 steps are 57, not what float64 makes of them.
        checkpoint_steps.add(math.ceil(round(share * steps, 9)))
        period = max(share - previous - 0.03, 0.06)
        previous, share = share, share + period
    return sorted(checkpoint_steps)


def _run_auto_pgd(
    network: Module,
    images: Tensor,
    aims: Tensor,
    search: Search,
    *,
    ball: Ball,
    draws: Draws,
    steps: int,
) -> None:
    # One run of Auto-PGD on the standing images.
    x, y = images[search.standing], aims[search.standing]
    # Uniform in the ball, then pushed to its edge: the longer starts of the paper's own program.
    start = random_in_ball(x, draws[search.standing], **ball)
    order = {"linf": math.inf, "l2": 2}[ball["norm"]]
    length = start.flatten(1).norm(p=order, dim=1)
    stretch = per_image(ball["eps"] / length.clamp_min(SHORTEST), x)
    start = project(x + start * stretch, x, **ball)

    state = _AutoPgdState.begin(x, y, start, radius=ball["eps"])
    state = state.evaluate(network, search)
    state.best_loss = state.checkpoint_loss = state.loss
    state.best_gradient = state.gradient

    checkpoint_steps = checkpoints(steps)
    last_checkpoint = 0
    for step in range(1, steps + 1):
        if len(state.images) == 0:
            return
        state.move(ball, momentum=MOMENTUM if step > 1 else 1.0)
        state = state.evaluate(network, search)
        state.update_best()
        if step in checkpoint_steps:
            state.adapt_step_size(steps=step - last_checkpoint)
            last_checkpoint = step
    search.record_positions(state.best_points)


@dataclass
class _AutoPgdState:
    # One run of Auto-PGD; every field has a row for each image that is not fooled yet. `checkpoint_loss` is the highest
    # loss at the last checkpoint, `rises` counts the steps since then that raised the loss, and `just_halved` says
    # whether that checkpoint halved the step size.
    images: Tensor
    aims: Tensor
    points: Tensor
    previous_points: Tensor
    loss: Tensor
    previous_loss: Tensor
    gradient: Tensor
    best_points: Tensor
    best_loss: Tensor
    best_gradient: Tensor
    checkpoint_loss: Tensor
    step_size: Tensor
    rises: Tensor
    just_halved: Tensor

    @classmethod
    def begin(cls, images: Tensor, aims: Tensor, start: Tensor, *, radius: float) -> "_AutoPgdState":
        # Losses and gradients are placeholders until the first evaluation.
        zeros = torch.zeros(len(images), device=images.device)
        return cls(
            images=images,
            aims=aims,
            points=start,
            previous_points=start,
            loss=zeros,
            previous_loss=zeros,
            gradient=start,
            best_points=start,
            best_loss=zeros,
            best_gradient=start,
            checkpoint_loss=zeros,
            step_size=torch.full_like(zeros, 2 * radius),
            rises=zeros,
            just_halved=torch.ones_like(zeros, dtype=torch.bool),
        )

    def evaluate(self, network: Module, search: Search) -> "_AutoPgdState":
        # Loss and gradient at the points; the state returned is without the images that are fooled there.
        self.previous_loss = self.loss
        logits, self.loss, self.gradient = ascent(network, self.points, self.aims, search.goal)
        search.spend(1)
        keep = search.note(self.points, logits, self.aims)
        if keep is None:
            return self
        return _AutoPgdState(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    def move(self, ball: Ball, *, momentum: float) -> None:
        step = per_image(self.step_size, self.images) * steepest(self.gradient, norm=ball["norm"])
        moved = project(self.points + step, self.images, **ball)
        if momentum < 1:
            previous_step = self.points - self.previous_points
            moved = self.points + momentum * (moved - self.points) + (1 - momentum) * previous_step
            moved = project(moved, self.images, **ball)
        self.previous_points = self.points
        self.points = moved

    def update_best(self) -> None:
        # Count a rise, and keep the point of highest loss.
        self.rises = self.rises + (self.loss > self.previous_loss)
        higher = self.loss > self.best_loss
        mask = per_image(higher, self.images)
        self.best_points = torch.where(mask, self.points, self.best_points)
        self.best_gradient = torch.where(mask, self.gradient, self.best_gradient)
        self.best_loss = torch.where(higher, self.loss, self.best_loss)

    def adapt_step_size(self, *, steps: int) -> None:
        # Halve the step size and return to the best point where the loss rose too seldom, or the highest loss did not
        # rise since the last checkpoint at an unchanged step size.
        too_few_rises = self.rises < RISING_SHARE * steps
        stagnated = ~self.just_halved & (self.best_loss <= self.checkpoint_loss)
        halve = too_few_rises | stagnated
        mask = per_image(halve, self.images)
        self.step_size = torch.where(halve, self.step_size / 2, self.step_size)
        self.points = torch.where(mask, self.best_points, self.points)
        self.gradient = torch.where(mask, self.best_gradient, self.gradient)
        self.loss = torch.where(halve, self.best_loss, self.loss)
        self.just_halved = halve
        self.checkpoint_loss = self.best_loss
        self.rises = torch.zeros_like(self.rises)
