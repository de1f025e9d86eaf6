"""Signs that attacks failed because gradients mislead them, not because the classifier is robust."""

from dataclasses import dataclass

import numpy as np

from gfscore.attacks.settings import BLACK_BOX, WHITE_BOX
from gfscore.numbers import count, setting

BLACK_BOX_SHARE = 0.002
"""Share of samples found only without gradients that is suspicious; the threshold of AutoAttack."""

GREY = 0.5
"""From this l_inf radius on, the ball around any image holds the grey image."""


@dataclass(frozen=True)
class Attacked:
    """What one measure found of one model's N samples.

    `sample_id` (N,) unique; `labels` (N,) int; `norm`; `eps`, the radius searched (largest_distance of a minimal
    measure); `distance` (N,) float64, norm of the perturbation found, 0 for a sample that is wrong without one, NaN for
    one that survived; `attack` (N,) str or None, the attack that found it; `tried`, names of the attacks in the order
    in which they ran.
    """

    sample_id: np.ndarray
    labels: np.ndarray
    norm: str
    eps: float
    distance: np.ndarray
    attack: np.ndarray
    tried: tuple

    @property
    def survived(self):
        """Samples for which nothing was found, (N,) bool."""
        return np.isnan(np.asarray(self.distance, dtype=np.float64))


@dataclass(frozen=True)
class MaskingSign:
    """One sign of gradient masking in a measure.

    `count` of `n` samples show it; `other` names the measure that gives it away, or None; `proof` says that the attacks
    of `measure` certainly failed on these samples, else they are suspicious; `text` is a sentence.
    """

    measure: str
    other: str | None
    count: int
    n: int
    proof: bool
    text: str


def masking_warnings(measures):
    """Signs of gradient masking in the measures of one model, a mapping name -> Attacked; a list, empty for none.

    (1) An attack without gradients finds samples that gradients before it missed: suspicious from BLACK_BOX_SHARE on.
    (2) Nothing was found for a sample, though another measure found a perturbation within the radius, in the same norm:
    proof, be it that one step beat many, or a smaller ball a larger one. (3) Samples of several classes survive in
    l_inf balls that all hold the grey image, which is of one class: proof for all but the survivors of one class.
    Finding no sign proves nothing. Source: Athalye et al. 2018, section 3.1.
    """
    found = []
    for name, own in measures.items():
        found += [*_without_gradients(name, own), *_beyond_grey(name, own)]
        for other_name, other in measures.items():
            if other_name != name and other.norm == own.norm:
                found += _found_elsewhere(name, own, other_name, other)
    return found


def _without_gradients(name, own):
    first = next((place for place, attack in enumerate(own.tried) if attack in WHITE_BOX), None)
    if first is None:
        return
    late = [attack for attack in own.tried[first:] if attack in BLACK_BOX and attack not in own.tried[:first]]
    hits, n = int(np.isin(own.attack.astype(str), late).sum()), len(own.attack)
    if n and hits > BLACK_BOX_SHARE * n:
        text = (
            f"{', '.join(late)}, which uses no gradients, broke {count(hits)} of {count(n)} samples that attacks with "
            f"gradients had missed; the gradients of this classifier may be masked, and more samples may be breakable"
        )
        yield MaskingSign(name, None, hits, n, proof=False, text=text)


def _beyond_grey(name, own):
    if own.norm != "linf" or own.eps < GREY:
        return
    survivors = np.asarray(own.labels)[own.survived]
    missed = len(survivors) - int(np.bincount(survivors).max(initial=0))
    if missed:
        text = (
            f"{count(len(survivors))} samples of several classes survive at l_inf {setting(own.eps)}, where every ball "
            f"holds the grey image, which is of one class: the attacks failed on at least {count(missed)} of them"
        )
        yield MaskingSign(name, None, missed, len(own.labels), proof=True, text=text)


def _found_elsewhere(name, own, other_name, other):
    if set(own.tried) <= set(BLACK_BOX):
        # What follows no gradients fails for other reasons than masked ones.
        return
    _, here, there = np.intersect1d(own.sample_id, other.sample_id, assume_unique=True, return_indices=True)
    distance = np.asarray(other.distance, dtype=np.float64)[there]
    # NaN, nothing found, compares as false. Clean errors are no perturbations. Float32 pixels round at the edge.
    missed = int((own.survived[here] & (distance > 0) & (distance <= own.eps * (1 + 1e-4))).sum())
    if missed:
        text = (
            f"{count(missed)} of {count(len(here))} samples survive {name} though {other_name} broke them within its "
            f"radius {setting(own.eps)}: the attacks of {name} failed on them, as they do where gradients are masked"
        )
        yield MaskingSign(name, other_name, missed, len(here), proof=True, text=text)
