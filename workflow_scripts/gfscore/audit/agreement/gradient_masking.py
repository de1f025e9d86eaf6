"""Signs that attacks failed because gradients mislead them, not because the classifier is robust.

A failure where another attack succeeded proves that the first one failed there, not that gradients are masked: it may
have been too weak. So no attack is held against one that is stronger by design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.declaration import FIRST_CROSSING, MANY_STEPS, NOT_AT_ALL, ONE_STEP
from gfscore.attacks.registry import ATTACKS
from gfscore.core.numbers import count, setting

BLACK_BOX_SHARE = 0.002
"""Share of samples found only without gradients that is suspicious; the threshold of AutoAttack."""

NOISE_SHARE = 0.02
"""Share of samples that an attack may miss, though a weaker one finds them, where gradients are honest.

At most 1% on small networks, plain and adversarially trained, for PGD of 5 and 20 steps in l_inf and l2.
"""

OTHER_SHARE = 0.1
"""The same of two different attacks of about equal strength; at most 5% on those networks."""

MORE_PASSES = 10
"""An attack that spends so many times more forward passes on a sample than a different one is stronger by design."""

ROUNDING = 1e-6
"""How far outside a ball float32 pixels may put what lies on its edge."""

GREY = 0.5
"""From this l_inf radius on, the ball around any image holds the grey image."""


_REASONS = "too weak or misled by gradients"


@dataclass(frozen=True)
class Attacked:
    """What one measure found of one model's N samples.

    `sample_id` (N,) unique; `labels` (N,) int; `norm`; `eps`, the radius searched (largest_distance of a minimal
    measure); `distance` (N,) float64, norm of the perturbation found, 0 for a sample that is wrong without one, NaN for
    one that survived; `attack` (N,) str or None, the attack that found it; `tried`, names of the attacks in the order
    in which they ran; `passes` (N,) forward passes spent on each sample, None where unknown.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.integer]
    norm: str
    eps: float
    distance: NDArray[np.float64]
    attack: NDArray[np.object_]
    tried: tuple[str, ...]
    passes: NDArray[np.number] | None = None

    @property
    def survived(self) -> NDArray[np.bool_]:
        """Samples for which nothing was found, (N,) bool."""
        return np.isnan(np.asarray(self.distance, dtype=np.float64))

    @property
    def strength(self) -> int:
        """How far the strongest attack tried follows gradients, NOT_AT_ALL to MANY_STEPS of gfscore.attacks."""
        return max((ATTACKS[attack].follows for attack in self.tried), default=NOT_AT_ALL)


@dataclass(frozen=True)
class MaskingSign:
    """One sign of gradient masking in a measure.

    `count` of `n` samples show it; `other` names the measure that gives it away, or None; `proof` says that the attacks
    of `measure` certainly failed on these samples, whatever the reason, else that is suspected; `text` is a sentence.
    """

    measure: str
    other: str | None
    count: int
    n: int
    proof: bool
    text: str


def masking_warnings(measures: Mapping[str, Attacked]) -> list[MaskingSign]:
    """Signs of gradient masking in the measures of one model, a mapping name -> Attacked; a list, empty for none.

    (1) An attack without gradients finds samples that many steps along gradients before it missed: suspicious from
    BLACK_BOX_SHARE on. (2) Another measure found perturbations within the radius, in the same norm, by attacks that are
    weaker: one step where many failed, no gradients where they failed, a smaller ball where the same attack, with at
    least as many passes, failed in a larger one; a sign from NOISE_SHARE on. Or by different attacks of about equal
    strength; a sign from OTHER_SHARE on. (3) Samples of several classes survive in l_inf balls that
    all hold the grey image, which is of one class: all but the survivors of one class were missed; a sign from
    NOISE_SHARE on. One sample alone is never a sign, and no sign proves nothing. Source: Athalye et al. 2018,
    section 3.1; shares and passes are ours, but for BLACK_BOX_SHARE.
    """
    found = []
    for name, own in measures.items():
        found += [*_without_gradients(name, own), *_beyond_grey(name, own)]
        for other_name, other in measures.items():
            if other_name != name and other.norm == own.norm:
                found += _found_elsewhere(name, own, other_name, other)
    return found


def _telling(hits, n, share):
    # A single sample is none of these, however few there are.
    return hits > max(1, share * n)


def _without_gradients(name, own):
    # One step is beaten by any search, be its gradient right or wrong.
    follows = [ATTACKS[attack].follows for attack in own.tried]
    first = next((place for place, far in enumerate(follows) if far > ONE_STEP), None)
    if first is None:
        return
    earlier = own.tried[:first]
    late = [name for name in own.tried[first:] if ATTACKS[name].follows == NOT_AT_ALL and name not in earlier]
    hits, n = int(np.isin(own.attack.astype(str), late).sum()), len(own.attack)
    if _telling(hits, n, BLACK_BOX_SHARE):
        text = (
            f"{', '.join(late)}, which uses no gradients, broke {count(hits)} of {count(n)} samples that attacks with "
            f"gradients had missed; the gradients of this classifier may be masked, and more samples may be breakable"
        )
        yield MaskingSign(name, None, hits, n, proof=False, text=text)


def _beyond_grey(name, own):
    if own.norm != "linf" or own.eps < GREY or own.strength < FIRST_CROSSING:
        return
    survivors = np.asarray(own.labels)[own.survived]
    missed = len(survivors) - int(np.bincount(survivors).max(initial=0))
    if _telling(missed, len(own.labels), NOISE_SHARE):
        text = (
            f"{count(len(survivors))} samples of several classes survive at l_inf {setting(own.eps)}, where every ball "
            f"holds the grey image, which is of one class: the attacks failed on at least {count(missed)} of them, "
            f"{_REASONS}"
        )
        yield MaskingSign(name, None, missed, len(own.labels), proof=True, text=text)


def _found_elsewhere(name, own, other_name, other):
    share, more = _allowed(own, other)
    if share is None:
        return
    _, here, there = np.intersect1d(own.sample_id, other.sample_id, assume_unique=True, return_indices=True)
    distance = np.asarray(other.distance, dtype=np.float64)[there]
    # NaN, nothing found, compares as false. Clean errors are no perturbations.
    missed = own.survived[here] & (distance > 0) & (distance <= own.eps + ROUNDING)
    if more and own.passes is not None and other.passes is not None:
        missed &= np.asarray(other.passes)[there] <= more * np.asarray(own.passes)[here]
    missed = int(missed.sum())
    if _telling(missed, len(here), share):
        text = (
            f"{count(missed)} of {count(len(here))} samples survive {name} though {other_name} broke them within its "
            f"radius {setting(own.eps)}: the attacks of {name} failed on them, {_REASONS}"
        )
        yield MaskingSign(name, other_name, missed, len(here), proof=True, text=text)


def _allowed(own, other):
    # Share of samples that `own` may miss though `other` finds them, None for all of them; and how many times more
    # passes `other` may spend on a sample, None where they do not matter.
    if own.strength < MANY_STEPS or not other.tried:
        # What takes no gradients, or few, fails for other reasons than masked ones.
        return None, None
    if other.strength <= ONE_STEP:
        return NOISE_SHARE, None
    if set(other.tried) <= set(own.tried):
        # The same attack in the same ball or a larger one differs by its settings only.
        return (NOISE_SHARE, 1) if other.eps < own.eps - ROUNDING else (None, None)
    return OTHER_SHARE, MORE_PASSES
