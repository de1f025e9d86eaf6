"""Trials of preprocessing on labelled images: which candidate fits best, and whether one beats what files state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.new_model import StatedPixels
from gfscore.workflow.new_audit.preprocessing import Preprocessing

ERROR = 0.01
"""Largest probability that a choice is wrong by chance."""

MOST_SHOWN = 8
"""Largest number of trials in a table."""

LogitsOf = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From prepared images (n, C, H, W) to logits, whose columns are in the order of the labels."""


@dataclass(frozen=True)
class Trial:
    """A preprocessing that was tried on n images.

    Parameters
    ----------
    name : str
        Name in tables.
    preprocessing : Preprocessing
    correct : ndarray
        Which of the images are classified correctly, (n,) bool.
    """

    name: str
    preprocessing: Preprocessing
    correct: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Share of the images that are classified correctly."""
        return float(self.correct.mean())


@dataclass(frozen=True)
class LabelledPixels:
    """Labelled images, and the network on which preprocessing of their pixels is tried.

    Parameters
    ----------
    logits_of : callable
        From prepared images to logits.
    images : ndarray
        (n, C, H, W) with pixels in [0, 1].
    labels : ndarray
        (n,) int.
    """

    logits_of: LogitsOf
    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    _logits: dict[Preprocessing, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False)

    def subset(self, rows: NDArray[np.integer]) -> LabelledPixels:
        """Some of the images, by their rows, ascending."""
        if len(rows) == len(self.labels):
            return self
        return LabelledPixels(self.logits_of, self.images[rows], self.labels[rows])

    def logits(self, preprocessing: Preprocessing, *, where: str) -> NDArray[np.float32]:
        """Logits (n, K) of the prepared images, computed once; `where` is the file that errors name."""
        if preprocessing not in self._logits:
            self._logits[preprocessing] = self.logits_of(preprocessing.apply(self.images, where=where))
        return self._logits[preprocessing]

    def trial(self, name: str, preprocessing: Preprocessing, *, where: str) -> Trial:
        """Trial of one preprocessing."""
        predicted = self.logits(preprocessing, where=where).argmax(axis=1)
        return Trial(name, preprocessing, predicted == self.labels)

    def trials(self, names: Sequence[str]) -> list[Trial]:
        """Trials of candidates, the best first; their names are values of --preprocessing."""
        trials = []
        for name in names:
            preprocessing = Preprocessing.named(name, channels=self.images.shape[1])
            trials.append(self.trial(name, preprocessing, where=name))
        return sorted(trials, key=lambda trial: -trial.accuracy)

    def trials_in_turns(self, names: Sequence[str], *, first: int) -> tuple[list[Trial], list[Trial]]:
        """Trials of candidates in two turns, for slow networks: on some images, then of the promising ones on all.

        Parameters
        ----------
        names : sequence of str
            Values of --preprocessing.
        first : int
            Number of images of the first turn, spread over all.

        Returns
        -------
        final : list of Trial
            Candidates that are not surely worse than the best of the first turn: on all images, or those of the first
            turn where one is left.
        discarded : list of Trial
            The other candidates, on the images of the first turn.
        """
        rows = np.linspace(0, len(self.labels) - 1, min(first, len(self.labels))).astype(int)
        best, *rivals = self.subset(rows).trials(names)
        final = [best]
        discarded = []
        for trial in rivals:
            if surely_better(best, trial, tests=2 * len(rivals)):
                discarded.append(trial)
            else:
                final.append(trial)
        if len(rows) < len(self.labels) and len(final) > 1:
            final = self.trials([trial.name for trial in final])
        return final, discarded


def choose_pixels(final: Sequence[Trial], discarded: Sequence[Trial] = (), *, classes: int, where: str) -> StatedPixels:
    """Preprocessing of the best of all trials, if it is surely better than guessing and than every other.

    Each other trial gets an exact test of McNemar, at ERROR divided by their number (Bonferroni) and by two turns.

    Parameters
    ----------
    final : sequence of Trial
        Trials of the last turn, the best first.
    discarded : sequence of Trial
        Trials that the first turn showed to be surely worse.
    classes : int
        Number of classes among the labels.
    where : str
        File that errors name.

    Raises
    ------
    InputError
        With the accuracies and the option that settles the choice, where none is surely better.
    """
    best, *rivals = final
    listing = accuracy_table([*final, *discarded])
    n = len(best.correct)
    p_value_of_guessing = binomial_tail(int(best.correct.sum()), n, 1 / classes)
    if best.accuracy <= 1 / classes or p_value_of_guessing > ERROR:
        raise InputError(
            f"{where}: no preprocessing makes the model better than guessing:\n{listing}\nEither the labels "
            "are in another order than the outputs (add --labels, make: LABELS=), these are not its data, or its "
            "preprocessing is another; write it as --preprocessing mean=M/M/M,std=S/S/S (make: PREPROCESSING=)"
        )
    others = len(rivals) + len(discarded)
    equals = 0
    for rival in rivals:
        if not surely_better(best, rival, tests=2 * others):
            equals += 1
    if equals:
        raise InputError(
            f"{where}: nothing states how pixels are prepared, and {equals + 1} ways fit about equally well:\n"
            f"{listing}\nAdd the right one: --preprocessing {best.name} (make: PREPROCESSING={best.name})"
        )
    next_best = max(trial.accuracy for trial in [*rivals, *discarded])
    words = f"best of {1 + others} ways on {n} images ({best.accuracy:.1%}, next {next_best:.1%})"
    return StatedPixels(best.preprocessing, words)


def check_pixels(stated: Trial, trials: Sequence[Trial], *, where: str) -> None:
    """Raise InputError, with the accuracies, if another preprocessing than the stated one is surely better.

    Parameters
    ----------
    stated : Trial
        Trial of the preprocessing that the files of the model state.
    trials : sequence of Trial
        Trials of all candidates on the same images.
    where : str
        File that errors name.
    """
    better = better_trials(stated, trials)
    if better:
        name = better[0].name
        raise InputError(
            f"{where}: the preprocessing {stated.name} gives {stated.accuracy:.1%}, but another way surely more:\n"
            f"{accuracy_table([*trials, stated])}\nIf {name} is right, add --preprocessing {name} (make: "
            f"PREPROCESSING={name}); to keep what is stated, {stated.preprocessing.option()}"
        )


def better_trials(reference: Trial, trials: Sequence[Trial]) -> list[Trial]:
    """Trials that are surely better than a reference, in their order."""
    return [trial for trial in trials if surely_better(trial, reference, tests=len(trials))]


def surely_better(first: Trial, second: Trial, *, tests: int) -> bool:
    """Whether a trial is correct more often than another beyond chance: an exact test of McNemar at ERROR / tests.

    Parameters
    ----------
    first, second : Trial
        Trials on the same n images.
    tests : int
        Number of tests that ERROR is divided by (Bonferroni).

    References
    ----------
    McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 1947.
    """
    gains = int((first.correct & ~second.correct).sum())
    losses = int((~first.correct & second.correct).sum())
    return gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR / tests


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """Probability of at least so many successes, each of probability `share`."""
    return float(binom.sf(successes - 1, trials, share))


def accuracy_table(trials: Sequence[Trial]) -> str:
    """Accuracies of the best trials, a line each, the best first."""
    best = sorted(trials, key=lambda trial: -trial.accuracy)[:MOST_SHOWN]
    width = max(len(trial.name) for trial in best)
    lines = [f"  {trial.name:<{width}} {trial.accuracy:6.1%}" for trial in best]
    return "\n".join(lines)
