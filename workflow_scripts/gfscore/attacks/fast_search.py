"""Search in fast arithmetic, verdict in float32.

An attack may search in TF32 or bfloat16. What it finds counts only if the network confirms it in float32, so that a
value never rests on reduced precision: it may be weaker, never wrong.
"""

from collections.abc import Callable
from typing import Any

from gfscore.attacks.search import logits_of
from gfscore.core.tensors import Module, Tensor
from gfscore.networks.precision import BFLOAT16, FULL, search_arithmetic
from gfscore.statistics.draws import Draws

Attack = Callable[..., tuple[Tensor, Tensor]]
"""attack(network, images, aims, **settings): points (n, C, H, W), and forward passes of each image, (n,) int64."""

SHORTENED = 10
"""After a search in bfloat16, what survives is attacked in float32 with a part of the steps: one in so many."""


def confirmed_attack(attack: Attack, reached: Callable[[Tensor, Tensor], Tensor], *, precision: str) -> Attack:
    """The same attack, which searches in a given precision and whose successes are confirmed in float32.

    Parameters
    ----------
    attack : callable
        attack(network, images, aims, **settings) of gfscore.attacks.ball_attacks or gfscore.attacks.minimal_norm.
    reached : callable
        Whether logits (n, K) are a success for the aims, (n,) bool: the criterion of the measure.
    precision : str
        "float32", which returns the attack itself, "tf32" or "bfloat16".

    Returns
    -------
    callable
        With the arguments and results of the attack. An image whose success float32 does not confirm is attacked anew
        in float32, with the same random draws. After bfloat16, an image on which nothing was found is attacked in
        float32 with a tenth of the steps or queries. All passes are counted, those that confirm among them.
    """
    if precision == FULL:
        return attack

    def search(network: Module, images: Tensor, aims: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
        with search_arithmetic(network, precision) as fast_network:
            points, passes = attack(fast_network, images, aims, **settings)
            points = points.detach()
            claimed = reached(logits_of(fast_network, points), aims)
        # In another batch the fast logits may round otherwise: an image that left the search early was a success there.
        claimed = claimed | (passes < passes.max())
        confirmed = reached(logits_of(network, points), aims)
        passes = passes + 2

        def in_float32(rows: Tensor, settings: dict[str, Any]) -> Tensor:
            draws = settings.get("draws")
            if isinstance(draws, Draws):
                settings = {**settings, "draws": draws[rows]}
            ends, spent = attack(network, images[rows], aims[rows], **settings)
            passes[rows] += spent
            return ends.detach()

        refuted = (claimed & ~confirmed).nonzero().flatten()
        if len(refuted):
            points[refuted] = in_float32(refuted, settings)
        surviving = (~claimed & ~confirmed).nonzero().flatten()
        if precision == BFLOAT16 and len(surviving):
            ends = in_float32(surviving, shortened(settings))
            passes[surviving] += 1
            success = reached(logits_of(network, ends), aims[surviving])
            points[surviving[success]] = ends[success]
        return points, passes

    return search


def shortened(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an attack with a tenth of its steps or queries, at least one."""
    shorter = dict(settings)
    for name in ("steps", "queries"):
        if name in settings:
            shorter[name] = max(1, settings[name] // SHORTENED)
    return shorter
