"""Gradient attacks within a ball that let an image go as soon as it is fooled.

Tensors as in gfscore.attacks.gradient_ascent: images (n, C, H, W) in [0, 1], labels (n,) int64; `ball` is {"norm":
"linf" or "l2", "eps": radius}, `draws` the random numbers of these images (gfscore.statistics.draws). An attack returns
points (n, C, H, W) in the ball and in [0, 1] and the forward passes spent on each image, (n,) int64. Its caller judges
the points, so a last one may be untested. The network's mode and gradients are left as they were. For training, where
every image stays to the last step, see gfscore.attacks.gradient_ascent.
"""

import math
from typing import Any

from gfscore.attacks.goals import AWAY_THROUGH_TARGET, LESS_LIKELY, LESS_LIKELY_ON_AVERAGE, OUT_OF_FIRST_PLACE, Goal
from gfscore.attacks.gradient_ascent import Ball, per_image, project, steepest
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


MOMENTUM = 0.75
RISES = 0.75
"""Share of steps that have to raise the loss, or the step size is halved; rho of the paper."""


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
    gradient_samples: int = 1,
) -> tuple[Tensor, Tensor]:
    """Auto-PGD on the loss of a gfscore.attacks.goals.Goal, `restarts` times from random points of the sphere.

    `gradient_samples` passes are averaged for every gradient, for networks that draw random numbers themselves.
    Where nothing was found the point is the one of highest loss. Source: Croce and Hein 2020, Algorithm 1.
    """
    search = Search(images, goal)
    for restart in range(restarts):
        if len(search.standing):
            _ascend_with_momentum(
                network, images, labels, search,
                ball=ball, draws=draws.stream(restart), steps=steps, gradient_samples=gradient_samples,
            )  # fmt: skip
    return search.result


def auto_pgd_on_cross_entropy(
    network: Module, images: Tensor, labels: Tensor, *, gradient_samples: int = 1, **how: Any
) -> tuple[Tensor, Tensor]:
    """Auto-PGD on the cross-entropy, in the form of it that keeps its gradient wherever a single pass makes one."""
    goal = LESS_LIKELY if gradient_samples == 1 else LESS_LIKELY_ON_AVERAGE
    return auto_pgd(network, images, labels, goal=goal, gradient_samples=gradient_samples, **how)


def auto_pgd_on_logits_ratio(network: Module, images: Tensor, labels: Tensor, **how: Any) -> tuple[Tensor, Tensor]:
    """Auto-PGD on the difference of logits ratio; needs K >= 3."""
    return auto_pgd(network, images, labels, goal=OUT_OF_FIRST_PLACE, **how)


def auto_pgd_targeted(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, steps: int, targets: int
) -> tuple[Tensor, Tensor]:
    """Auto-PGD towards each of the `targets` likeliest wrong classes in turn, until any wrong class is predicted.

    Needs K >= 4 and `targets` < K. Source: Croce and Hein 2020, section 5.
    """
    import torch

    search = Search(images, AWAY_THROUGH_TARGET)
    logits = logits_of(network, images)
    search.spend(1)
    rivals = logits.scatter(1, labels[:, None], -math.inf).argsort(1, descending=True)
    for rank in range(targets):
        if len(search.standing):
            aims = torch.stack([labels, rivals[:, rank]], dim=1)
            how = {"ball": ball, "steps": steps, "gradient_samples": 1}
            _ascend_with_momentum(network, images, aims, search, draws=draws.stream(rank), **how)
    return search.result


def checkpoints(steps: int) -> list[int]:
    """Steps after which the step size is judged, ascending. Source: Croce and Hein 2020, section 3.2."""
    before, here, found = 0.0, 0.22, []
    while here < 1:
        # Decimals: .57 of 100 steps are 57, not what float64 makes of them.
        found.append(math.ceil(round(here * steps, 9)))
        before, here = here, here + max(here - before - 0.03, 0.06)
    return sorted(set(found))


def _ascend_with_momentum(network, images, aims, search, *, ball, draws, steps, gradient_samples):
    import torch

    state = {"x": images[search.standing], "y": aims[search.standing]}
    state["points"] = state["before"] = state["best"] = _on_sphere(state["x"], draws[search.standing], ball=ball)
    state = _look(network, state, search, gradient_samples)
    state |= {
        "best_loss": state["loss"],
        "best_gradient": state["gradient"],
        "judged_loss": state["loss"],
        "step_size": torch.full_like(state["loss"], 2 * ball["eps"]),
        "rises": torch.zeros_like(state["loss"]),
        "just_halved": torch.ones_like(state["loss"], dtype=torch.bool),
    }
    judged, judge_at = 0, checkpoints(steps)
    for step in range(1, steps + 1):
        if len(state["x"]) == 0:
            return
        _move(state, ball=ball, momentum=MOMENTUM if step > 1 else 1.0)
        state = _look(network, state | {"loss_before": state["loss"]}, search, gradient_samples)
        _compare(state)
        if step in judge_at:
            _judge(state, steps=step - judged)
            judged = step
    search.leave(state["best"])


def _look(network, state, search, samples):
    # Loss and gradient at the points, averaged over passes; whatever has been fooled is gone from the state returned.
    logits, loss, gradient = ascent(network, state["points"], state["y"], search.goal)
    for _ in range(samples - 1):
        logits, more, steeper = ascent(network, state["points"], state["y"], search.goal)
        loss, gradient = loss + more, gradient + steeper
    search.spend(samples)
    state = state | {"loss": loss / samples, "gradient": gradient / samples}
    keep = search.note(state["points"], logits, state["y"])
    return state if keep is None else {name: value[keep] for name, value in state.items()}


def _move(state, *, ball, momentum):
    x, points = state["x"], state["points"]
    step = per_image(state["step_size"], x) * steepest(state["gradient"], norm=ball["norm"])
    moved = project(points + step, x, **ball)
    if momentum < 1:
        moved = points + momentum * (moved - points) + (1 - momentum) * (points - state["before"])
        moved = project(moved, x, **ball)
    state["before"], state["points"] = points, moved


def _compare(state):
    # Count a rise, and keep the point of highest loss.
    import torch

    state["rises"] = state["rises"] + (state["loss"] > state["loss_before"])
    higher = state["loss"] > state["best_loss"]
    wide = per_image(higher, state["x"])
    state["best"] = torch.where(wide, state["points"], state["best"])
    state["best_gradient"] = torch.where(wide, state["gradient"], state["best_gradient"])
    state["best_loss"] = torch.where(higher, state["loss"], state["best_loss"])


def _judge(state, *, steps):
    # Halve the step size and return to the best point where the loss rose too seldom, or has stood still.
    import torch

    halve = (state["rises"] < RISES * steps) | (~state["just_halved"] & (state["best_loss"] <= state["judged_loss"]))
    wide = per_image(halve, state["x"])
    state["step_size"] = torch.where(halve, state["step_size"] / 2, state["step_size"])
    state["points"] = torch.where(wide, state["best"], state["points"])
    state["gradient"] = torch.where(wide, state["best_gradient"], state["gradient"])
    state["loss"] = torch.where(halve, state["best_loss"], state["loss"])
    state["just_halved"], state["judged_loss"] = halve, state["best_loss"]
    state["rises"] = torch.zeros_like(state["rises"])


def _on_sphere(images, draws, *, ball):
    # Uniform in the ball, then pushed to its edge: the longer starts of the paper's own program.
    start = random_in_ball(images, draws, **ball)
    length = start.flatten(1).norm(p={"linf": math.inf, "l2": 2}[ball["norm"]], dim=1)
    return project(images + start * per_image(ball["eps"] / length.clamp_min(1e-30), images), images, **ball)
