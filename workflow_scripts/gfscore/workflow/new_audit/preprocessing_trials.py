"""Preprocessing of pixels that is tried on labelled images: which way surely fits, and whether what is stated does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.new_model import StatedPixels
from gfscore.workflow.new_audit.preprocessing import Preprocessing

ERROR = 0.01
"""Probability that a choice is wrong by chance."""

MOST_SHOWN = 8
"""Lines of a table of trials."""

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From images (n, C, H, W) as the network takes them to logits, whose columns are in the order of the labels."""


@dataclass(frozen=True)
class Trial:
    """A preprocessing that was tried on n images.

    Parameters
    ----------
    name : str
        As tables show it.
    preprocessing : Preprocessing
    right : ndarray
        Which of the images are classified correctly, (n,) bool.
    """

    name: str
    preprocessing: Preprocessing
    right: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Share of the images that are classified correctly."""
        return float(self.right.mean())


@dataclass(frozen=True)
class LabelledPixels:
    """Labelled images, and the network that ways to prepare their pixels are tried with.

    Parameters
    ----------
    run : callable
        From images as the network takes them to logits.
    images : ndarray
        (n, C, H, W) with pixels in [0, 1].
    labels : ndarray
        (n,) int.
    """

    run: Run
    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def at(self, rows: NDArray[np.integer]) -> LabelledPixels:
        """Some of the images, by their rows."""
        return LabelledPixels(self.run, self.images[rows], self.labels[rows])

    def logits(self, preprocessing: Preprocessing, *, where: str) -> NDArray[np.float32]:
        """Logits (n, K) of the prepared images; `where` is the file that errors name."""
        return self.run(preprocessing.apply(self.images, where=where))

    def trial(self, name: str, preprocessing: Preprocessing, *, where: str) -> Trial:
        """Trial of one preprocessing."""
        answers = self.logits(preprocessing, where=where).argmax(axis=1)
        return Trial(name, preprocessing, answers == self.labels)

    def trials(self, names: Sequence[str]) -> list[Trial]:
        """Trials of candidates by their names, values of --preprocessing; the best first."""
        trials = []
        for name in names:
            preprocessing = Preprocessing.named(name, channels=self.images.shape[1])
            trials.append(self.trial(name, preprocessing, where=name))
        return sorted(trials, key=lambda trial: -trial.accuracy)

    def trials_in_turns(self, names: Sequence[str], *, first: int) -> tuple[list[Trial], list[Trial]]:
        """Trials of candidates on some images, and of the promising ones on all: for networks that take long.

        Parameters
        ----------
        names : sequence of str
            Values of --preprocessing.
        first : int
            Number of images of the first turn, spread over all.

        Returns
        -------
        final : list of Trial
            On all images, of the candidates that are not surely worse than the best of the first turn.
        discarded : list of Trial
            On the first images, of the others.
        """
        rows = np.linspace(0, len(self.labels) - 1, min(first, len(self.labels))).astype(int)
        best, *worse = self.at(rows).trials(names)
        final = [best]
        discarded = []
        for trial in worse:
            if clearly_better(best, trial, tests=2 * len(worse)):
                discarded.append(trial)
            else:
                final.append(trial)
        if len(rows) < len(self.labels) and len(final) > 1:
            final = self.trials([trial.name for trial in final])
        return final, discarded


def choose_pixels(final: Sequence[Trial], discarded: Sequence[Trial] = (), *, classes: int, where: str) -> StatedPixels:
    """Preprocessing of the best of all trials, if it is surely better than chance and than every other.

    An exact test of McNemar against each other trial, corrected for their number (Bonferroni), and for two turns.

    Parameters
    ----------
    final : sequence of Trial
        The best first.
    discarded : sequence of Trial
        Those of the first turn.
    classes : int
        Number of classes among the labels.
    where : str
        File that errors name.

    Raises
    ------
    InputError
        With the table of accuracies and the option to write otherwise.
    """
    best, *rivals = final
    listing = table([*final, *discarded])
    by_chance = binomial_tail(int(best.right.sum()), len(best.right), 1 / classes)
    if best.accuracy <= 1 / classes or by_chance > ERROR:
        raise InputError(
            f"{where}: no preprocessing makes the model better than guessing:\n{listing}\nEither the labels "
            "are in another order than the outputs (add --labels, make: LABELS=), these are not its data, or its "
            "preprocessing is another; write it as --preprocessing mean=M/M/M,std=S/S/S (make: PREPROCESSING=)"
        )
    ways = 1 + len(rivals) + len(discarded)
    close = 0
    for rival in rivals:
        if not clearly_better(best, rival, tests=2 * (ways - 1)):
            close += 1
    if close:
        raise InputError(
            f"{where}: nothing states how pixels are prepared, and {close + 1} ways fit about equally well:\n"
            f"{listing}\nAdd the right one: --preprocessing {best.name} (make: PREPROCESSING={best.name})"
        )
    next_best = max(trial.accuracy for trial in [*rivals, *discarded])
    words = f"best of {ways} ways on {len(best.right)} images ({best.accuracy:.1%}, next {next_best:.1%})"
    return StatedPixels(best.preprocessing, words)


def check_pixels(stated: Trial, trials: Sequence[Trial], *, where: str) -> None:
    """Raise InputError, with the table, if another preprocessing than the one that is stated is surely better.

    Parameters
    ----------
    stated : Trial
        Of the preprocessing that the files of the model state.
    trials : sequence of Trial
        Of all candidates, on the same images.
    where : str
        File that errors name.
    """
    better = surely_better(stated, trials)
    if better:
        raise InputError(
            f"{where}: the preprocessing {stated.name} gives {stated.accuracy:.1%}, but another way surely more:\n"
            f"{table([*trials, stated])}\nIf the first is right, add --preprocessing {better[0].name} (make: "
            f"PREPROCESSING={better[0].name}); to keep what is stated, {stated.preprocessing.option()}"
        )


def surely_better(reference: Trial, trials: Sequence[Trial]) -> list[Trial]:
    """Trials that are right more often than a reference beyond chance, in their order."""
    return [trial for trial in trials if clearly_better(trial, reference, tests=len(trials))]


def clearly_better(first: Trial, second: Trial, *, tests: int) -> bool:
    """Whether a trial is right more often than another beyond chance, by an exact test of McNemar at ERROR / tests.

    Parameters
    ----------
    first, second : Trial
        On the same n images.
    tests : int
        Number of tests that the error is divided by (Bonferroni).

    References
    ----------
    McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 1947.
    """
    gains = int((first.right & ~second.right).sum())
    losses = int((~first.right & second.right).sum())
    return gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR / tests


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """Probability of so many successes or more."""
    return float(binom.sf(successes - 1, trials, share))


def table(trials: Sequence[Trial]) -> str:
    """Accuracies of trials, a line each, the best first."""
    ordered = sorted(trials, key=lambda trial: -trial.accuracy)
    lines = [f"  {trial.name:<20} {trial.accuracy:6.1%}" for trial in ordered[:MOST_SHOWN]]
    return "\n".join(lines)
