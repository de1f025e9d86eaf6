"""Signs of gradient masking: attacks that fail because of misleading gradients, not because of robustness.

If another attack succeeds where one failed, the first may have been misled by gradients, or too weak. Therefore no
attack is compared with one that is stronger by design. Table `masking_signs`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.attacks.declaration import FIRST_CROSSING, MANY_STEPS, NO_GRADIENTS, ONE_STEP
from gfscore.attacks.registry import ATTACKS, expand
from gfscore.audit.values import AuditValues
from gfscore.core.numbers import count, setting
from gfscore.measures import NamedMeasure
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.minimal import Minimal
from gfscore.statistics.tolerances import NORM_TOLERANCE
from gfscore.tables.parquet_tables import typed_frame
from gfscore.tables.table import MEASURED, Column, Table

MASKING_SIGNS = Table(
    name="masking_signs",
    version=1,
    columns=(
        *MEASURED,
        Column("other", pa.string(), "measure whose attacks succeeded; null: this measure itself"),
        Column("count", pa.int64(), "samples that show the sign"),
        Column("n", pa.int64(), "samples compared"),
        Column("proof", pa.bool_(), "the attacks certainly failed on these samples; else this is suspected"),
        Column("text", pa.string(), "the sign in words"),
    ),
)

BLACK_BOX_SHARE = 0.002
"""Suspicious share of samples broken only by attacks without gradients; the threshold of AutoAttack."""

NOISE_SHARE = 0.02
"""Share of samples broken by a weaker attack that a stronger one may miss without gradient masking.

At most 1% on small networks, plain and adversarially trained, for PGD of 5 and 20 steps in l_inf and l2.
"""

EQUAL_ATTACK_SHARE = 0.1
"""Share of samples broken by one attack that a different one of about equal strength may miss; at most 5% there."""

MORE_PASSES = 10
"""Ratio of forward passes per sample above which an attack is stronger by design than a different one."""

GREY = 0.5
"""l_inf radius from which on the ball around any image contains the grey image."""

REASONS = "too weak or misled by gradients"


@dataclass(frozen=True)
class Attacked:
    """Results of one measure's attacks on one model's N samples.

    Parameters
    ----------
    sample_id : array of str, shape (N,)
        Unique names.
    labels : array of int, shape (N,)
    norm : str
    eps : float
        Radius searched.
    distance : array of float64, shape (N,)
        Norm of the adversarial perturbation, 0 for a sample misclassified without one, NaN for one that withstood all
        attacks.
    attack : array of str or None, shape (N,)
        The successful attack.
    tried : tuple of str
        Names of the attacks in their order.
    passes : array, shape (N,), optional
        Forward passes per sample.
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
        """What the strongest attack tried makes of gradients, NO_GRADIENTS to MANY_STEPS of gfscore.attacks."""
        return max((ATTACKS[attack].gradients for attack in self.tried), default=NO_GRADIENTS)


@dataclass(frozen=True)
class MaskingSign:
    """One sign of gradient masking in a measure.

    Parameters
    ----------
    measure : str
        Measure whose attacks failed.
    other : str or None
        Measure whose attacks succeeded; None for the measure itself.
    count, n : int
        Samples that show the sign, of those compared.
    proof : bool
        Whether the attacks of the measure certainly failed on these samples, for whatever reason.
    text : str
        The sign in words.
    """

    measure: str
    other: str | None
    count: int
    n: int
    proof: bool
    text: str


def masking_table(audit_values: AuditValues, classes: int) -> pd.DataFrame:
    """Table `masking_signs` of the attacks of an audit with K classes."""
    rows = []
    for model in audit_values.included:
        attacked = {}
        for measure in audit_values.subject.of_kind("adversarial", "minimal"):
            attacked[measure.name] = attacked_samples(audit_values.table(model, measure.name), measure, classes)
        for sign in masking_warnings(attacked):
            rows.append({**model.columns(), **asdict(sign)})
    return typed_frame(MASKING_SIGNS, rows)


def attacked_samples(samples: pd.DataFrame, measure: NamedMeasure, classes: int) -> Attacked:
    """Results of a measure of kind adversarial or minimal from its samples table, for data of K classes."""
    settings = measure.settings
    if isinstance(settings, Adversarial):
        eps = settings.eps
        distance = samples["distance"].to_numpy(np.float64)
        tried = tuple(attack["name"] for attack in expand(settings.attacks, classes))
    elif isinstance(settings, Minimal):
        eps = settings.largest_distance
        distance = np.where(samples["censored"], np.nan, samples["value"])
        tried = tuple(attack.name for attack in settings.attacks)
    else:
        raise TypeError(f"{measure.name} attacks no image")
    return Attacked(
        sample_id=samples["sample_id"].to_numpy(),
        labels=samples["label"].to_numpy(),
        norm=settings.norm,
        eps=eps,
        distance=distance,
        attack=samples["attack"].to_numpy(),
        tried=tried,
        passes=samples["steps"].to_numpy(),
    )


def masking_warnings(measures: Mapping[str, Attacked]) -> list[MaskingSign]:
    """Signs of gradient masking in the measures of one model.

    A single sample is never a sign, and the absence of signs proves nothing.

    1. An attack without gradients breaks samples that attacks with many gradient steps before it missed, more than
       BLACK_BOX_SHARE.
    2. Another measure breaks samples within the radius, in the same norm, by weaker attacks: one step where many
       failed, no gradients where gradients failed, or the same attack in a smaller ball with no more passes; more than
       NOISE_SHARE. Or by different attacks of about equal strength; more than EQUAL_ATTACK_SHARE.
    3. In l_inf with eps of at least 0.5 every ball contains the grey image, so at most one class can truly survive:
       survivors of all others were missed; more than NOISE_SHARE.

    Parameters
    ----------
    measures : mapping
        Attacked by the name of the measure.

    References
    ----------
    Athalye et al. 2018, section 3.1; the shares and passes, except BLACK_BOX_SHARE, are ours.
    """
    signs: list[MaskingSign] = []
    for name, attacked in measures.items():
        signs += _without_gradients(name, attacked)
        signs += _beyond_grey(name, attacked)
        for other_name, other in measures.items():
            if other_name != name and other.norm == attacked.norm:
                signs += _broken_by_another(name, attacked, other_name, other)
    return signs


def _significant(hits: int, n: int, share: float) -> bool:
    # A single sample is never significant.
    return hits > max(1, share * n)


def _without_gradients(name: str, attacked: Attacked) -> Iterator[MaskingSign]:
    # Attacks of a single step do not count: any search finds more than they do, masked gradients or not.
    gradients_used = False
    before = []
    black_box = []
    for attack in attacked.tried:
        gradients_used = gradients_used or ATTACKS[attack].gradients > ONE_STEP
        if not gradients_used:
            before.append(attack)
        elif ATTACKS[attack].gradients == NO_GRADIENTS and attack not in before:
            black_box.append(attack)
    if not gradients_used:
        return
    hits = int(np.isin(attacked.attack.astype(str), black_box).sum())
    n = len(attacked.attack)
    if _significant(hits, n, BLACK_BOX_SHARE):
        text = (
            f"{', '.join(black_box)}, which uses no gradients, broke {count(hits)} of {count(n)} samples that "
            "attacks with gradients had missed; the gradients of this classifier may be masked, and more samples may "
            "be breakable"
        )
        yield MaskingSign(name, None, hits, n, proof=False, text=text)


def _beyond_grey(name: str, attacked: Attacked) -> Iterator[MaskingSign]:
    if attacked.norm != "linf" or attacked.eps < GREY or attacked.strength < FIRST_CROSSING:
        return
    survivors = np.asarray(attacked.labels)[attacked.survived]
    n = len(attacked.labels)
    missed = len(survivors) - int(np.bincount(survivors).max(initial=0))
    if _significant(missed, n, NOISE_SHARE):
        text = (
            f"{count(len(survivors))} samples of several classes survive at l_inf {setting(attacked.eps)}, where every "
            f"ball holds the grey image, which is of one class: the attacks failed on at least {count(missed)} of "
            f"them, {REASONS}"
        )
        yield MaskingSign(name, None, missed, n, proof=True, text=text)


def _broken_by_another(name: str, attacked: Attacked, other_name: str, other: Attacked) -> Iterator[MaskingSign]:
    # Masked gradients cannot mislead an attack that hardly uses them.
    if attacked.strength < MANY_STEPS or not other.tried:
        return
    # Share of samples that `attacked` may miss though `other` breaks them, and how many times more passes `other` may
    # spend on a sample, None where they do not matter.
    share = EQUAL_ATTACK_SHARE
    passes_ratio: int | None = MORE_PASSES
    if other.strength <= ONE_STEP:
        share = NOISE_SHARE
        passes_ratio = None
    elif set(other.tried) <= set(attacked.tried):
        # The same attack in a ball that is not smaller differs by its settings only.
        if other.eps >= attacked.eps - NORM_TOLERANCE:
            return
        share = NOISE_SHARE
        passes_ratio = 1

    _, rows, other_rows = np.intersect1d(attacked.sample_id, other.sample_id, assume_unique=True, return_indices=True)
    distance = np.asarray(other.distance, dtype=np.float64)[other_rows]
    # Comparisons with NaN (nothing found) are false; distance 0 is an error without perturbation.
    missed = attacked.survived[rows] & (distance > 0) & (distance <= attacked.eps + NORM_TOLERANCE)
    if passes_ratio is not None and attacked.passes is not None and other.passes is not None:
        missed &= np.asarray(other.passes)[other_rows] <= passes_ratio * np.asarray(attacked.passes)[rows]

    hits = int(missed.sum())
    if _significant(hits, len(rows), share):
        text = (
            f"{count(hits)} of {count(len(rows))} samples survive {name} though {other_name} broke them within its "
            f"radius {setting(attacked.eps)}: the attacks of {name} failed on them, {REASONS}"
        )
        yield MaskingSign(name, other_name, hits, len(rows), proof=True, text=text)
