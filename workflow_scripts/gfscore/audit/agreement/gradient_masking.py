"""Signs of gradient masking: attacks that fail because of misleading gradients, not because of robustness.

If another attack succeeds where one failed, the first may have been misled by gradients, or too weak. Therefore no
attack is compared with one that is stronger by design.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.declaration import FIRST_CROSSING, MANY_STEPS, NOT_AT_ALL, ONE_STEP
from gfscore.attacks.registry import ATTACKS
from gfscore.core.numbers import count, setting

BLACK_BOX_SHARE = 0.002
"""Suspicious share of samples broken only by attacks without gradients; the threshold of AutoAttack."""

NOISE_SHARE = 0.02
"""Share of samples broken by a weaker attack that a stronger one may miss without gradient masking.

At most 1% on small networks, plain and adversarially trained, for PGD of 5 and 20 steps in l_inf and l2.
"""

OTHER_SHARE = 0.1
"""Likewise for two different attacks of about equal strength; at most 5% on those networks."""

MORE_PASSES = 10
"""Ratio of forward passes per sample above which an attack is stronger by design than a different one."""

ROUNDING = 1e-6
"""Rounding error of a perturbation's norm by float32 pixels."""

GREY = 0.5
"""l_inf radius from which on the ball around any image contains the grey image."""

_REASONS = "too weak or misled by gradients"


@dataclass(frozen=True)
class Attacked:
    """Results of one measure's attacks on one model's N samples.

    `sample_id` (N,) unique; `labels` (N,) int; `norm`; `eps`, the radius searched (largest_distance of a measure of
    kind minimal); `distance` (N,) float64, norm of the adversarial perturbation, 0 for a sample misclassified without
    one, NaN for one that withstood all attacks; `attack` (N,) str or None, the successful attack; `tried`, names of the
    attacks in their order; `passes` (N,) forward passes per sample, or None.
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
        """Samples that withstood all attacks, (N,) bool."""
        return np.isnan(np.asarray(self.distance, dtype=np.float64))

    @property
    def strength(self) -> int:
        """How far the strongest attack tried follows gradients, NOT_AT_ALL to MANY_STEPS of gfscore.attacks."""
        return max((ATTACKS[attack].follows for attack in self.tried), default=NOT_AT_ALL)


@dataclass(frozen=True)
class MaskingSign:
    """One sign of gradient masking in a measure.

    `count` of `n` samples show it; `other` is the measure whose attacks succeeded, or None; `proof`: whether the
    attacks of `measure` certainly failed on these samples, for whatever reason; `text` is a sentence.
    """

    measure: str
    other: str | None
    count: int
    n: int
    proof: bool
    text: str


def masking_warnings(measures: Mapping[str, Attacked]) -> list[MaskingSign]:
    """Signs of gradient masking in the measures of one model, a mapping name -> Attacked.

    (1) An attack without gradients breaks samples that attacks with many gradient steps before it missed, more than
    BLACK_BOX_SHARE. (2) Another measure breaks samples within the radius, in the same norm, by weaker attacks: one step
    where many failed, no gradients where gradients failed, or the same attack in a smaller ball with no more passes;
    more than NOISE_SHARE. Or by different attacks of about equal strength; more than OTHER_SHARE. (3) Samples of
    several classes withstand attacks in l_inf balls that all contain the grey image, which has one class, so all but
    those of one class were missed; more than NOISE_SHARE. A single sample is never a sign, and the absence of signs
    proves nothing. Source: Athalye et al. 2018, section 3.1; the shares and passes, except BLACK_BOX_SHARE, are ours.
    """
    signs = []
    for name, attacked in measures.items():
        signs += [*_without_gradients(name, attacked), *_beyond_grey(name, attacked)]
        for other_name, other in measures.items():
            if other_name != name and other.norm == attacked.norm:
                signs += _found_elsewhere(name, attacked, other_name, other)
    return signs


def _significant(hits, n, share):
    # A single sample is never significant.
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
    if _significant(hits, n, BLACK_BOX_SHARE):
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
    if _significant(missed, len(own.labels), NOISE_SHARE):
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
    # Comparisons with NaN (nothing found) are false; distance 0 is an error without perturbation.
    missed = own.survived[here] & (distance > 0) & (distance <= own.eps + ROUNDING)
    if more and own.passes is not None and other.passes is not None:
        missed &= np.asarray(other.passes)[there] <= more * np.asarray(own.passes)[here]
    missed = int(missed.sum())
    if _significant(missed, len(here), share):
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
        # The same attack in a ball that is not smaller differs by its settings only.
        return (NOISE_SHARE, 1) if other.eps < own.eps - ROUNDING else (None, None)
    return OTHER_SHARE, MORE_PASSES
