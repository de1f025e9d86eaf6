import numpy as np
import pytest

from gfscore.statistics.classes import choosing_samples, split_samples
from made import logits_and_labels


def halved(labels, seed):
    return split_samples(np.arange(len(labels)), labels, share=0.5, rng=np.random.default_rng(seed))


def test_halves_are_stratified_and_random():
    _, labels = logits_and_labels(7, n=301)
    mask = halved(labels, 0)
    assert abs(mask.sum() - (~mask).sum()) <= 1
    per_class = np.bincount(labels[mask], minlength=5) - np.bincount(labels[~mask], minlength=5)
    assert (np.abs(per_class) <= 1).all()
    assert (mask != halved(labels, 1)).any()
    np.testing.assert_array_equal(mask, halved(labels, 0))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.75, 0.9])
def test_every_class_gives_its_share(share):
    _, labels = logits_and_labels(9, n=413)
    mask = split_samples(np.arange(413), labels, share=share, rng=np.random.default_rng(2))
    assert abs(mask.sum() - share * 413) <= 1
    assert (np.abs(np.bincount(labels[mask], minlength=5) - share * np.bincount(labels)) <= 1).all()


def test_every_sample_is_as_likely_in_either_half():
    _, labels = logits_and_labels(8, n=40)
    share = np.mean([halved(labels, seed) for seed in range(600)], axis=0)
    # Two halves of one sample differ from a half by chance alone: sd .02.
    assert (np.abs(share - 0.5) < 0.1).all()


def test_models_whose_rows_stand_in_another_order_are_parted_alike():
    _, labels = logits_and_labels(3)
    names = np.array([f"sample-{index}" for index in range(len(labels))])
    order = np.random.default_rng(0).permutation(len(labels))
    split = {"share": 0.5, "seed": 4}
    straight = names[choosing_samples(names, labels, split)]
    shuffled = names[order][choosing_samples(names[order], labels[order], split)]
    assert set(straight) == set(shuffled)
