"""Class offsets, chosen in rounds of attack and adjustment.

Adding a number to each logit moves the boundaries between classes: weak classes gain robust accuracy at the cost of
strong ones. Every attack sees the offsets of its round, since one that does not know them proves nothing. Between two
attacks offsets are adjusted on the logits of all points that attacks have found so far, which takes no pass.

What is reported of the offsets must come from other images than those that they were chosen on.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.images.image_set import ImageSet
from gfscore.measures.adversarial import Adversarial
from gfscore.networks import passes
from gfscore.networks.classifier import Classifier
from gfscore.networks.offset_files import OffsetFile, OffsetRound
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.remedies.attacked_images import AttackedImages, AttackEnds, gradient_attacks
from gfscore.remedies.objectives import Merit, ascent_direction, merit_of
from gfscore.remedies.seen_points import SeenPoints
from gfscore.statistics.classes import normalised_weights

ADJUSTMENTS = 30
"""Steps on the points found so far between two attacks."""

FIRST_STEP = 1.0
"""Length of the first steps, in median margins of the logits per unit of robust accuracy."""

SHORTEST_STEP = 2.0**-6
"""Steps are not halved further than this."""


class AttackWithOffsets(Protocol):
    """Attack on some of the images that offsets are chosen on."""

    def __call__(self, offsets: NDArray[np.float64], rows: NDArray[np.int64], *, number: int) -> AttackEnds:
        """Where the attack of a round ended.

        Parameters
        ----------
        offsets : ndarray of shape (K,)
            Which the attacked network adds to its logits.
        rows : ndarray of shape (m,), int64
            Images that are attacked, ascending.
        number : int
            Number of the round.
        """


@dataclass(frozen=True, kw_only=True)
class RoundAttack:
    """The attack of one round on the classifier with some offsets.

    Attributes
    ----------
    offsets : ndarray of shape (K,)
        In the unit of the logits; they sum to 0.
    step : float
        Length of the steps that led here, in median margins per unit of robust accuracy; NaN for the first round.
    attacked : int
        Images attacked: those that no point found before misclassifies under these offsets.
    forwards, backwards : int
        Passes through the network, counted by image.
    """

    offsets: NDArray[np.float64]
    step: float
    attacked: int
    forwards: int
    backwards: int


@dataclass(frozen=True, kw_only=True)
class Round(RoundAttack):
    """One round, judged on the points that the attacks of all rounds have found.

    Attributes
    ----------
    values : ndarray of shape (K,)
        Robust accuracy of each class on the choosing images: no attack of any round has found a point that is
        misclassified under these offsets. An upper bound, tightest where the round itself attacked.
    clean_accuracy : ndarray of shape (K,)
        Accuracy of each class on the undisturbed images.
    mean : float
        Mean of the values by the class weights.
    merit : Merit
        How well the values serve the objective.
    """

    values: NDArray[np.float64]
    clean_accuracy: NDArray[np.float64]
    mean: float
    merit: Merit


@dataclass(frozen=True)
class ChosenOffsets:
    """Offsets and how they were chosen.

    Attributes
    ----------
    trail : tuple of Round
        All rounds; the first is without offsets.
    chosen : int
        Number of the round that was chosen.
    """

    trail: tuple[Round, ...]
    chosen: int

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Chosen offsets (K,), which sum to 0."""
        return self.trail[self.chosen].offsets

    @property
    def reached(self) -> bool:
        """Whether every class reached the floor; true without one."""
        return self.trail[self.chosen].merit.reached

    @property
    def forwards(self) -> int:
        """Forward passes of all rounds."""
        return sum(round_.forwards for round_ in self.trail)

    def words(self, settings: OffsetSettings) -> list[str]:
        """Lines for a log: the rounds, and the offsets chosen."""
        lines = []
        for number, round_ in enumerate(self.trail):
            lines.append(
                f"round {number}: worst class {round_.values.min():.3f}, best {round_.values.max():.3f}, mean "
                f"{round_.mean:.3f}; {round_.attacked} images attacked, {round_.forwards} forward passes"
            )
        if not self.reached:
            lines.append(
                f"no round has every class one standard error above the floor {settings.floor}: the nearest is taken"
            )
        lines.append(f"chosen: round {self.chosen}, of norm {np.linalg.norm(self.offsets):.3g}")
        return lines

    def file(
        self, *, settings: OffsetSettings, measure: str, classes: Sequence[str], identity: Mapping[str, str]
    ) -> OffsetFile:
        """Content of a file of offsets.

        Parameters
        ----------
        settings : OffsetSettings
            How they were chosen.
        measure : str
            Name of the measure whose attacks they were chosen under.
        classes : sequence of str
            The K class names.
        identity : mapping
            Data, network and software.
        """
        made_from = dict(identity)
        model = {key: made_from.pop(key) for key in ("dataset", "threat", "model")}
        trail = []
        for round_ in self.trail:
            trail.append(
                OffsetRound(
                    offsets=round_.offsets.tolist(),
                    values=round_.values.tolist(),
                    clean_accuracy=round_.clean_accuracy.tolist(),
                    mean=round_.mean,
                    objective=round_.merit.value,
                    standard_error=round_.merit.standard_error,
                    reached=round_.merit.reached,
                    step=None if np.isnan(round_.step) else round_.step,
                    attacked=round_.attacked,
                    forwards=round_.forwards,
                    backwards=round_.backwards,
                )
            )
        return OffsetFile(
            model=model,
            measure=measure,
            settings=settings,
            classes=list(classes),
            offsets=self.offsets.tolist(),
            chosen=self.chosen,
            reached=self.reached,
            trail=trail,
            made_from=made_from,
        )


def choose_offsets(
    classifier: Classifier,
    images: ImageSet,
    *,
    settings: OffsetSettings,
    attack: Adversarial,
    batch_size: int = 64,
    device: str = "cpu",
    rows: NDArray[np.int64] | None = None,
    where: Path | str = "the classifier",
    folder: Path | str | None = None,
    identity: Mapping[str, object] | None = None,
) -> ChosenOffsets:
    """Choose class offsets of a classifier on labelled images, under attacks that see them.

    Parameters
    ----------
    classifier : Classifier
        With gradients, on its device.
    images : ImageSet
        N labelled images, every class among them. What is reported of the offsets must come from others.
    settings : OffsetSettings
        Objective, number of rounds, seed.
    attack : Adversarial
        Ball and attacks of the measure that is to rise. Of these the rounds use `gradient_attacks`.
    batch_size : int
        Images at a time; a batch that does not fit into memory is halved.
    device : str
        Device of the classifier.
    rows : ndarray of shape (N,), int64, optional
        Positions of the images in their dataset, which seed their random draws; by default 0..N-1.
    where : path or str
        The classifier, for messages.
    folder : path, optional
        Where finished batches are kept, so that a killed choice goes on; the caller removes it. None keeps nothing.
    identity : mapping, optional
        All else that decides the numbers: what is kept under another identity is not used.

    Returns
    -------
    ChosenOffsets
        The same for any batch size and order of batches, but for rounding.

    Raises
    ------
    InputError
        For a classifier without gradients, for a class without images, for a label that is no class of the classifier,
        and for another number of class weights than classes.
    """
    keeping = TemporaryDirectory() if folder is None else nullcontext(str(folder))
    with (
        keeping as batches,
        reproducible_arithmetic(threads=classifier.threads),
        passes.counted(classifier) as counted_classifier,
    ):
        attacked = AttackedImages(
            classifier=counted_classifier,
            images=images,
            rows=np.arange(len(images)) if rows is None else rows,
            attack=gradient_attacks(attack),
            seed=settings.seed,
            batch_size=batch_size,
            device=device,
            where=where,
            folder=Path(batches),
            identity=dict(identity or {}),
        )
        logits = attacked.clean_logits()
        classes = logits.shape[1]
        counts = np.bincount(images.labels, minlength=classes)
        if len(counts) > classes:
            raise InputError(
                f"{where}: {classes} logits, but an image has label {len(counts) - 1}; choose offsets on images of the "
                "classifier's own classes"
            )
        absent = np.flatnonzero(counts == 0)
        if len(absent):
            raise InputError(
                f"{where}: offsets are chosen for {classes} classes, on images of {classes - len(absent)} (none of: "
                f"{', '.join(map(str, absent[:5]))}); add images of every class to those that choose"
            )
        weights = settings.class_weights
        if weights is not None and len(weights) != classes:
            raise InputError(f"class_weights: {len(weights)} weights for {classes} classes; give one for each")
        seen = SeenPoints(logits, images.labels.astype(np.int64))
        return search_offsets(attacked.attack_with_offsets, seen, settings=settings)


def search_offsets(attack: AttackWithOffsets, seen: SeenPoints, *, settings: OffsetSettings) -> ChosenOffsets:
    """Search offsets in rounds of attack and adjustment.

    A round attacks the images that no point found so far misclassifies under its offsets. Whether a round is better
    than another is judged on the points of all rounds. After a worse one the search returns to the best and halves its
    step. It ends after the rounds of the settings, when the points found so far promise no gain beyond one standard
    error, and when a floor is reached.

    Parameters
    ----------
    attack : callable
        The attack of a round.
    seen : SeenPoints
        The undisturbed images; the ends of all attacks are added.
    settings : OffsetSettings
        Objective and rounds.

    Returns
    -------
    ChosenOffsets
        Of the rounds whose merit is within one standard error of the best, the one with the smallest norm.
    """
    proposal: NDArray[np.float64] | None = np.zeros(seen.classes)
    step = FIRST_STEP
    attacks: list[RoundAttack] = []
    rounds: list[Round] = []
    while proposal is not None:
        rows = np.flatnonzero(seen.standing(proposal))
        ends = attack(proposal, rows, number=len(attacks))
        seen.add(rows, ends.logits)
        attacks.append(
            RoundAttack(
                offsets=proposal,
                step=step if attacks else np.nan,
                attacked=len(rows),
                forwards=ends.forwards,
                backwards=ends.backwards,
            )
        )
        # The new points change the values of earlier rounds too.
        rounds = [_judged(earlier, seen, settings) for earlier in attacks]
        best = _best(rounds)
        floor_is_reached = settings.floor is not None and best.merit.reached
        if len(rounds) == settings.rounds or floor_is_reached:
            break
        if best is not rounds[-1]:
            step /= 2
        # Accuracies on the points found so far are upper bounds, so proposals fall short of the floor. Each further
        # round aims one more standard error above it. Only the objective floor uses the margin.
        margin = 1.0 + len(rounds)
        proposal, step = propose(seen, best.offsets, step=step, settings=settings, margin=margin)

    norms = [np.inf] * len(rounds)
    for number, round_ in enumerate(rounds):
        if round_.merit.as_good_as(best.merit):
            norms[number] = float(np.linalg.norm(round_.offsets))
    return ChosenOffsets(tuple(rounds), int(np.argmin(norms)))


def propose(
    seen: SeenPoints, start: NDArray[np.float64], *, step: float, settings: OffsetSettings, margin: float
) -> tuple[NDArray[np.float64] | None, float]:
    """Offsets (K,) that serve the objective better on the points found so far, and the length of the steps to them.

    They are the best of ADJUSTMENTS steps from `start` in `ascent_direction`. Steps are halved until the gain is more
    than one standard error, since with less the round at `start` would be chosen anyway. None where the gain of the
    shortest steps is no more.
    """
    scale = seen.typical_margin()
    values_at_start = seen.values(start)
    merit_at_start = _merit(values_at_start, seen, settings, margin=margin)
    while step >= SHORTEST_STEP:
        offsets, values = start, values_at_start
        best, best_merit = start, merit_at_start
        for _ in range(ADJUSTMENTS):
            moved = offsets + step * scale * ascent_direction(values, seen.counts, settings, margin=margin)
            offsets = moved - moved.mean()
            values = seen.values(offsets)
            merit = _merit(values, seen, settings, margin=margin)
            if merit.better_than(best_merit):
                best, best_merit = offsets, merit
        if not merit_at_start.as_good_as(best_merit):
            return best, step
        step /= 2
    return None, step


def _merit(values: NDArray[np.float64], seen: SeenPoints, settings: OffsetSettings, *, margin: float = 1.0) -> Merit:
    # The mean without offsets is taken on the same points, which become more from round to round.
    lost = seen.values_without_offsets - values
    loss = float(normalised_weights(settings.class_weights, seen.classes) @ lost)
    return merit_of(values, seen.counts, settings, margin=margin, loss=loss)


def _judged(attack: RoundAttack, seen: SeenPoints, settings: OffsetSettings) -> Round:
    values = seen.values(attack.offsets)
    return Round(
        **vars(attack),
        values=values,
        clean_accuracy=seen.clean_accuracy(attack.offsets),
        mean=float(normalised_weights(settings.class_weights, seen.classes) @ values),
        merit=_merit(values, seen, settings),
    )


def _best(rounds: Sequence[Round]) -> Round:
    # The earliest of equals.
    best = rounds[0]
    for round_ in rounds[1:]:
        if round_.merit.better_than(best.merit):
            best = round_
    return best
