"""Attacks on a classifier with offsets, round by round, on the images by which the offsets are chosen.

Finished batches are written to a folder, so that an interrupted job continues where it stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.attacks.declaration import NO_GRADIENTS
from gfscore.attacks.registry import ATTACKS
from gfscore.images.image_set import ImageSet
from gfscore.measures import progress
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import worst_case
from gfscore.measures.job import Batches
from gfscore.networks import inference, passes
from gfscore.networks.adjusted import with_offsets
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import seeds_of_samples
from gfscore.tables.table import LABEL, SAMPLE_ID, Column, Table

ATTACKED_POINTS = Table(
    name="attacked points",
    version=1,
    columns=(SAMPLE_ID, LABEL, Column("logits", pa.list_(pa.float32()), "logits of the worst point, without offsets")),
)
"""Batches of one round, which are kept until the offsets are chosen."""


def gradient_attacks(attack: Adversarial) -> Adversarial:
    """The attacks of a measure that follow gradients; all of them where none does.

    Attacks by logits alone take most of the passes, and hardly find a point that gradients have not led to. They are
    left out only while offsets are chosen, not when these are judged.
    """
    by_gradients = [member for member in attack.attacks if ATTACKS[member.name].gradients != NO_GRADIENTS]
    if not by_gradients:
        return attack
    return attack.model_copy(update={"attacks": by_gradients})


@dataclass(frozen=True)
class AttackEnds:
    """Where the attack of a round ended.

    Attributes
    ----------
    logits : ndarray of shape (m, K)
        Logits at the worst point of each attacked image, without the offsets.
    forwards, backwards : int
        Passes of single images through the network since the last round.
    """

    logits: NDArray[np.floating]
    forwards: int = 0
    backwards: int = 0


@dataclass
class AttackedImages:
    """Images that offsets are chosen on, and the classifier that is attacked.

    Parameters
    ----------
    classifier : Classifier
        With gradients, on its device; its passes are counted.
    images : ImageSet
        N images.
    rows : ndarray of shape (N,), int64
        Positions of the images in their dataset.
    attack : Adversarial
        Ball, and attacks of every round.
    seed : int
        Seed of the random draws, which differ from round to round.
    batch_size : int
        Images at a time.
    device : str
        Device of the classifier.
    where : path or str
        The classifier, for messages.
    folder : path
        Where finished batches are written.
    identity : mapping
        Everything else that the logits depend on; batches of another identity are not used again.
    """

    classifier: Classifier
    images: ImageSet
    rows: NDArray[np.int64]
    attack: Adversarial
    seed: int
    batch_size: int
    device: str
    where: Path | str
    folder: Path
    identity: Mapping[str, object]

    def __post_init__(self) -> None:
        """Begin to count passes."""
        self._earlier_passes = passes.counts()

    def clean_logits(self) -> NDArray[np.float32]:
        """Logits of the undisturbed images, (N, K)."""
        _, _, logits = inference.extract_logits(self.classifier, self.images, device=self.device, where=str(self.where))
        return logits

    def attack_with_offsets(self, offsets: NDArray[np.float64], rows: NDArray[np.int64], *, number: int) -> AttackEnds:
        """Attack the images of some rows, for gfscore.remedies.offsets.AttackWithOffsets."""
        print(f"round {number}: {len(rows)} of {len(self.images)} images are attacked")
        logits = np.empty((0, len(offsets)), dtype=np.float32)
        if len(rows):
            measure_batch = partial(_attack_batch, settings=self.attack, offsets=offsets)
            batches = Batches(
                images=self.images.select(rows),
                seeds=seeds_of_samples(self.seed, f"offsets, round {number}", self.rows[rows]),
                classifier=self.classifier,
                measure_batch=passes.refusing_nan(measure_batch),
                table=ATTACKED_POINTS,
                weights=self.where,
                size=self.batch_size,
            )
            identity = {**self.identity, "round": number, "offsets": offsets.tolist(), "batch_size": self.batch_size}
            frame = progress.compute_in_parts(
                range(batches.count), batches.measure, table=ATTACKED_POINTS, folder=self.folder, identity=identity
            )
            logits = np.stack(frame["logits"].to_list()).astype(np.float32)
        spent = passes.counts_since(self._earlier_passes)
        self._earlier_passes = passes.counts()
        return AttackEnds(logits, spent["forwards"], spent["backwards"])


def _attack_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    seeds: NDArray[np.uint64],
    settings: Adversarial,
    offsets: NDArray[np.float64],
) -> dict[str, list[NDArray[np.float32]]]:
    worst = worst_case(with_offsets(classifier, offsets), images, labels, settings=settings, seeds=seeds)
    logits = worst.worst_logits.cpu().numpy() - offsets.astype(np.float32)
    return {"logits": list(logits)}
