"""Parts of a dataset: drawn with the class shares of the whole, so many of each class, every so many rows, a half."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.settings import Half, Subset
from gfscore.statistics.classes import split_samples


def subset_rows(labels: NDArray[np.integer], subset: Subset, *, where: Path | str) -> NDArray[np.int64]:
    """Rows of the part of a dataset that a setting `subset` describes.

    Parameters
    ----------
    labels : ndarray of shape (N,), int
        Classes of the samples.
    subset : Subset
        With `samples` as in draw_subset, `per_class` as in draw_of_each_class, or `every`, which takes rows 0, every,
        2 every, ...
    where : path or str
        What errors name.

    Returns
    -------
    ndarray of shape (n,), int64
        Ascending.

    Raises
    ------
    InputError
        For more samples than there are, and for fewer than classes.
    """
    if subset.every is not None:
        return np.arange(0, len(labels), subset.every)
    if subset.per_class is not None:
        return draw_of_each_class(labels, per_class=subset.per_class, seed=subset.seed)
    assert subset.samples is not None  # one of the three is set
    return draw_subset(labels, samples=subset.samples, seed=subset.seed, where=where)


def draw_subset(labels: NDArray[np.integer], *, samples: int, seed: int, where: Path | str) -> NDArray[np.int64]:
    """Rows of a stratified random subset.

    Samples are allocated to the classes in proportion to their sizes by largest remainders (ties to the lower label).
    A class that would get none gets one, at the cost of the class that is most above its share. Within a class the draw
    is uniform without replacement. The same labels and seed give the same rows.

    Parameters
    ----------
    labels : ndarray of shape (N,), int
        Classes of the samples.
    samples : int
        Size n of the subset, from the number of classes to N.
    seed : int
        Seed of the draw.
    where : path or str
        What errors name.

    Returns
    -------
    ndarray of shape (n,), int64
        Ascending.

    Raises
    ------
    InputError
        For n above N or below the number of classes.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if not len(classes) <= samples <= len(labels):
        raise InputError(
            f"{where}: subset: samples {samples} is not between {len(classes)} (one per class) and {len(labels)} "
            "(all); change it"
        )
    # By largest remainders, in integer arithmetic, so that a quota of exactly 3 does not become 2.9999.
    numbers, remainders = np.divmod(samples * counts, len(labels))
    largest = np.argsort(-remainders, kind="stable")[: samples - numbers.sum()]
    numbers[largest] += 1
    for empty in np.flatnonzero(numbers == 0):
        excess = np.where(numbers > 1, len(labels) * numbers - samples * counts, -np.inf)
        numbers[excess.argmax()] -= 1
        numbers[empty] = 1

    generator = np.random.default_rng(seed)
    drawn = []
    for label, number in zip(classes, numbers, strict=True):
        rows = generator.permutation(np.flatnonzero(labels == label))
        drawn.append(rows[:number])
    return np.sort(np.concatenate(drawn))


def draw_of_each_class(labels: NDArray[np.integer], *, per_class: int, seed: int) -> NDArray[np.int64]:
    """Rows of a random subset with n = `per_class` of each class, or all where there are fewer.

    Uniform without replacement, from a generator of the seed and the class, so that n rows are among n + 1 rows, and
    the rows of a class do not depend on the other classes.

    Parameters
    ----------
    labels : ndarray of shape (N,), int
        Classes of the samples.
    per_class : int
        Samples n of each class.
    seed : int
        Seed of the draw.

    Returns
    -------
    ndarray, int64
        Ascending.
    """
    drawn = []
    for label in np.unique(labels):
        generator = np.random.default_rng([seed, label])
        rows = generator.permutation(np.flatnonzero(labels == label))
        drawn.append(rows[:per_class])
    return np.sort(np.concatenate(drawn))


def first_rows(digests: NDArray[np.str_] | None, samples: int) -> NDArray[np.int64]:
    """First row with the same image, for each of N rows of a dataset.

    Parameters
    ----------
    digests : ndarray of shape (N,), str, or None
        Digests of the images; None for labels without images, where every row is its own first one.
    samples : int
        Number of rows N.

    Returns
    -------
    ndarray of shape (N,), int64
    """
    if digests is None:
        return np.arange(samples)
    _, first, image = np.unique(digests, return_index=True, return_inverse=True)
    return first[image]


def half_rows(
    sample_id: NDArray[np.str_],
    labels: NDArray[np.integer],
    half: Half,
    *,
    first: NDArray[np.int64],
    digest: str,
    names: Sequence[str],
    where: Path | str,
) -> NDArray[np.int64]:
    """Rows of one half of a dataset; rows of one image are in the same half, so that the halves are independent.

    Parameters
    ----------
    sample_id : ndarray of shape (N,), str
        Identifiers of the samples.
    labels : ndarray of shape (N,), int
        Their classes.
    half : {"choosing", "judging"}
        Each sample is in one of them; of every class both have the same number of images, to within one.
    first : ndarray of shape (N,), int64
        First row with the same image; see first_rows.
    digest : str
        SHA-256 (hex) of the whole, which the draw depends on: halves of other data are other ones.
    names : sequence of str
        The K class names.
    where : path or str
        What errors name.

    Returns
    -------
    ndarray of shape (n,), int64
        Ascending.

    Raises
    ------
    InputError
        For a class of one image.
    """
    drawn = np.flatnonzero(first == np.arange(len(first)))
    counts = np.bincount(labels[drawn], minlength=len(names))
    alone = [names[label] for label in np.flatnonzero(counts == 1).tolist()]
    if alone:
        raise InputError(
            f"{where}: half: {half}: class {few(alone)} has one image, and both halves need one; add images, or "
            "leave `half` out"
        )
    generator = np.random.default_rng(int(digest, 16))
    choosing = np.empty(len(first), dtype=bool)
    choosing[drawn] = split_samples(sample_id[drawn], labels[drawn], share=0.5, rng=generator)
    return np.flatnonzero(choosing[first] == (half == "choosing"))


def in_test_part(labels: NDArray[np.generic], *, share: float, seed: int) -> NDArray[np.bool_]:
    """Mask (N,) bool of the test part of a seeded split: of each class of `labels` (N,) a share, rounded."""
    generator = np.random.default_rng(seed)
    in_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        number = round(share * len(rows))
        in_test[rows[:number]] = True
    return in_test
