"""Preprocessing that is tried: what is chosen, what is refused, and how often by chance."""

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.preprocessing import Preprocessing, candidates
from gfscore.workflow.new_audit.preprocessing_trials import (
    ERROR,
    LabelledPixels,
    Trial,
    check_pixels,
    choose_pixels,
    surely_better,
)

RAW = Preprocessing()
named = Preprocessing.named


def trial(name, right):
    return Trial(name, RAW, np.asarray(right, dtype=bool))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", RAW),
        ("none,255", Preprocessing(value_range=255)),
        ("half,bgr", Preprocessing("bgr", mean=(0.5,) * 3, std=(0.5,) * 3)),
        ("imagenet,bgr", Preprocessing("bgr", mean=(0.406, 0.456, 0.485), std=(0.225, 0.224, 0.229))),
        ("half,255", Preprocessing(value_range=255, mean=(127.5,) * 3, std=(127.5,) * 3)),
        ("mean=1/2/3,std=4/5/6,255", Preprocessing(value_range=255, mean=(1, 2, 3), std=(4, 5, 6))),
    ],
)
def test_a_name_stands_for_settings(name, expected):
    assert named(name) == expected


def test_normalised_pixels_are_the_same_whatever_their_range():
    image = np.random.default_rng(0).random((1, 3, 2, 2), dtype=np.float32)
    one, other = (named(name).apply(image, where=name) for name in ("imagenet", "imagenet,255"))
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("name", ["imagnet", "mean=a/b/c,std=1/1/1", "bgr,nothing", ""])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=r"--preprocessing .*imagenet"):
        named(name)


def test_every_candidate_has_settings_and_no_two_are_alike():
    for channels in (1, 3):
        settings = [str(named(name, channels=channels)) for name in candidates(channels)]
        assert len(set(settings)) == len(settings)
    assert named("imagenet", channels=1).mean == (pytest.approx(0.449),)


def test_trials_show_images_as_the_network_takes_them():
    images = np.random.default_rng(0).random((40, 3, 2, 2), dtype=np.float32)
    # Right where it sees blue first and pixels up to 255.
    labels = (images[:, 2].mean(axis=(1, 2)) > 0.5).astype(np.int64)

    def run(shown):
        blue = shown[:, 0].mean(axis=(1, 2))
        return np.stack([np.full(len(shown), 127.5), np.where(shown.max() > 2, blue, 1e9 * (labels == 0))], axis=1)

    trials = LabelledPixels(run, images, labels).trials(candidates(3))
    assert trials[0].name == "none,255,bgr" and trials[0].accuracy == 1
    assert [t.accuracy for t in trials] == sorted((t.accuracy for t in trials), reverse=True)


def test_a_preprocessing_is_tried_once_however_often_it_is_asked_for():
    images, labels, shown = np.zeros((40, 3, 2, 2), dtype=np.float32), np.arange(40) % 2, []

    def run(pictures):
        shown.append(len(pictures))
        return np.eye(2)[labels]

    tried = LabelledPixels(run, images, labels)
    final, _ = tried.trials_in_turns(candidates(3), first=40)
    tried.trial("as asked", Preprocessing.named("imagenet"), where="net")
    tried.logits(final[0].preprocessing, where="net")
    assert shown == [40] * len(candidates(3))


def test_the_best_is_chosen_where_it_is_surely_better_than_all():
    rows = np.arange(200)
    best, next_best = trial("a", rows < 150), trial("b", rows < 120)
    chosen = choose_pixels([best, next_best], classes=10, where="net")
    assert chosen.preprocessing == RAW and "75.0%" in chosen.source and "60.0%" in chosen.source


def test_what_is_about_equally_good_is_left_to_the_user_with_the_option():
    rows = np.arange(200)
    trials = [trial("a", rows < 150), trial("b", rows < 148), trial("c", rows < 20)]
    with pytest.raises(
        InputError, match=r"(?s)net: .*2 ways fit.*a +75\.0%\n *b +74\.0%.*--preprocessing a .*PREPROCESSING=a"
    ):
        choose_pixels(trials, classes=10, where="net")


def test_what_is_surely_worse_on_the_first_images_is_not_tried_on_all():
    images = np.zeros((400, 1, 1, 1), dtype=np.float32)
    labels, shown = np.arange(400) % 2, []

    def run(pictures):
        shown.append(len(pictures))
        # Only pixels that are not normalised, 0, are answered rightly.
        right = pictures[0, 0, 0, 0] == 0
        part = labels[np.linspace(0, 399, len(pictures)).astype(int)]
        return np.eye(2)[part if right else 1 - part]

    left, out = LabelledPixels(run, images, labels).trials_in_turns(candidates(1), first=40)
    assert [trial.name for trial in left] == ["none", "none,255"] and [trial.name for trial in out] == ["half"]
    assert shown == [40, 40, 40, 400, 400]
    with pytest.raises(InputError, match=r"(?s)2 ways fit.*half +0\.0%"):
        choose_pixels(left, out, classes=2, where="net")


def test_no_better_than_guessing_is_refused():
    with pytest.raises(InputError, match=r"(?s)better than guessing.*--labels"):
        choose_pixels([trial("a", np.arange(200) < 25), trial("b", np.arange(200) < 20)], classes=10, where="net")


def test_a_statement_is_refused_where_another_way_is_surely_better():
    rows = np.arange(200)
    stated = trial("config.json says", rows < 100)
    check_pixels(stated, [trial("a", rows < 103), trial("b", rows < 90)], where="net")
    with pytest.raises(InputError, match=r"(?s)config\.json says gives 50\.0%.*PREPROCESSING=a"):
        check_pixels(stated, [trial("a", rows < 140)], where="net")


def test_the_way_that_is_named_is_the_one_that_is_surely_better_though_another_is_right_more_often():
    rows = np.arange(200)
    often, surely = trial("often", (rows >= 45) & (rows < 160)), trial("surely", rows < 114)
    with pytest.raises(InputError, match=r"(?s)often +57\.5%.*If surely is right, add --preprocessing surely "):
        check_pixels(trial("stated", rows < 100), [often, surely], where="net")


def test_a_wrong_choice_between_equals_is_as_rare_as_stated():
    """Two ways that are right equally often, each on samples of its own: one is surely better in at most ERROR."""
    generator, wrong, repetitions = np.random.default_rng(1), 0, 4000
    for _ in range(repetitions):
        one, other = (trial("x", generator.random(200) < 0.6) for _ in range(2))
        wrong += surely_better(one, other, tests=1)
    # One-sided at ERROR; three standard errors above.
    assert wrong / repetitions <= ERROR + 3 * np.sqrt(ERROR / repetitions)


@pytest.mark.parametrize("name", ["none,bgr,255", "imagenet", "mean=0.1/0.2/0.3,std=0.5/0.5/0.5,bgr"])
def test_settings_are_written_as_the_option_that_asks_for_them(name):
    assert named(named(name).option()) == named(name)


def test_words_name_a_known_normalisation():
    assert "imagenet" in named("imagenet").words()
    assert RAW.words() == "RGB, 0 to 1, not normalised"
