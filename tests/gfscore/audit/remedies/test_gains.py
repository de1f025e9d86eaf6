import numpy as np
import pytest
from scipy.stats import binom

from gfscore import InputError
from gfscore.audit.remedies.gains import (
    PairedOutcomes,
    ReferenceClasses,
    class_gains,
    mean_change,
    rdi_change,
    strength_curve,
    worst_class_gain,
)
from gfscore.audit.settings import IntervalSettings
from gfscore.statistics.betting import lower_mean_bounds
from gfscore.statistics.proportions import lower_differences, lower_paired_differences

pytestmark = pytest.mark.seconds(40)

ALPHA = 0.05
INTERVALS = IntervalSettings()
CLASSES = 10
MODELS = 500


def paired(before, after, labels, classes=CLASSES):
    return PairedOutcomes.decided(before, after, labels, classes=classes)


def of_counts(before, after, n):
    """Outcomes of classes whose first `before[k]` of `n` samples succeed before, and the first `after[k]` after."""
    classes = len(before)
    place = np.tile(np.arange(n), classes)
    labels = np.repeat(np.arange(classes), n)
    return paired(place < np.take(before, labels), place < np.take(after, labels), labels, classes)


def drawn(rng, before, gain, loss, n):
    """Outcomes of `n` samples of each class: failures turn to successes with chance `gain`, successes with `loss`."""
    labels = np.repeat(np.arange(len(before)), n)
    first = rng.random(len(labels)) < np.asarray(before)[labels]
    turns = rng.random(len(labels)) < np.where(first, np.asarray(loss)[labels], np.asarray(gain)[labels])
    return paired(first, first ^ turns, labels, len(before))


def most_errors(rate, trials=MODELS):
    """Errors of a statement at its nominal rate: that rate and three standard errors."""
    return trials * rate + 3 * np.sqrt(trials * rate * (1 - rate))


def test_gains_of_wrongly_labelled_samples_are_none():
    # No class changes; a share of the labels is wrong, and these samples turn from failures to successes.
    rates = np.array([0.2, 0.1, 0.0])
    n = 1000
    place = np.tile(np.arange(n) / n, 3)
    labels = np.repeat([0, 1, 2], n)
    wrong = place < rates[labels]
    right_successes = place - rates[labels] < np.take([0.4, 0.7, 0.9], labels) * (1 - rates[labels])
    reference = ReferenceClasses(before=np.array([0.4, 0.7, 0.9]), after=np.array([0.4, 0.7, 0.9]))
    first, second = right_successes & ~wrong, right_successes | wrong
    for before, after in ((first, second), (second, first)):
        for declared in (None, rates):
            outcomes = PairedOutcomes.decided(before, after, labels, classes=3, label_error_rates=declared)
            changes = class_gains(outcomes, alpha=ALPHA)
            low = [*changes.low[:2], worst_class_gain(outcomes, reference, alpha=ALPHA).low]
            high = [*changes.high[:2], worst_class_gain(outcomes, reference, alpha=ALPHA).high]
            low.append(mean_change(outcomes, weights=[1, 1, 1], alpha=ALPHA).low)
            high.append(mean_change(outcomes, weights=[1, 1, 1], alpha=ALPHA).high)
            surely = (np.array(low) > 0) | (np.array(high) < 0)
            assert surely.tolist() == [declared is None] * 4

            curve = list(strength_curve({1.0: outcomes}, weights=None, intervals=INTERVALS, alpha=ALPHA).itertuples())
            if declared is not None:
                assert all(point.worst_low <= 0.4 <= point.worst_high for point in curve)
                assert all(point.mean_low <= 2 / 3 <= point.mean_high for point in curve)


# ---- by hand ----


def test_gain_of_the_worst_class_by_hand():
    outcomes = of_counts([2, 10, 16], [12, 8, 16], n=20)
    reference = ReferenceClasses(before=np.array([0.1, 0.5, 0.8]), after=np.array([0.6, 0.4, 0.8]))
    gain = worst_class_gain(outcomes, reference, alpha=ALPHA)
    assert (gain.before, gain.after) == (0.1, 0.4)
    assert gain.difference == pytest.approx(0.3)

    # Class 0 was the worst: its paired gain. The others: that, or their distance from class 0.
    half = ALPHA / 4
    bounds = [
        lower_paired_differences(10, 0, 20, alpha=ALPHA / 2),
        max(lower_paired_differences(0, 2, 20, alpha=half), *lower_differences([8], [20], 2, 20, alpha=half)),
        max(lower_paired_differences(0, 0, 20, alpha=half), *lower_differences([16], [20], 2, 20, alpha=half)),
    ]
    assert gain.low == pytest.approx(min(bounds))
    # The upper bound takes class 1, the worst after: its paired gain, or its distance to each class before.
    bounds = [
        min(-lower_paired_differences(0, 10, 20, alpha=half), *-lower_differences([2], [20], 8, 20, alpha=half)),
        -lower_paired_differences(2, 0, 20, alpha=ALPHA / 2),
        min(-lower_paired_differences(0, 0, 20, alpha=half), *-lower_differences([16], [20], 8, 20, alpha=half)),
    ]
    assert gain.high == pytest.approx(max(bounds))
    assert gain.low < gain.difference < gain.high


def betting(gains, losses, n, alpha):
    differences = np.concatenate([np.ones(gains), -np.ones(losses), np.zeros(n - gains - losses)])
    return lower_mean_bounds(differences[:, None], bound=1.0, alpha=alpha)[0]


def beta_lower(successes, n, alpha):
    """Share at which `successes` or more are as improbable as alpha, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if binom.sf(successes - 1, n, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def beta_upper(successes, n, alpha):
    return 1 - beta_lower(n - successes, n, alpha)


def test_another_class_may_be_the_worst_after():
    # The class that was the worst gains .5, but another one falls as low as it was: the worst class gains nothing.
    outcomes = of_counts([100, 900], [600, 100], n=1000)
    reference = ReferenceClasses(before=outcomes.before, after=outcomes.after)
    gain = worst_class_gain(outcomes, reference, alpha=ALPHA)
    assert gain.difference == 0
    assert gain.low < 0 < gain.high
    changes = class_gains(outcomes, alpha=ALPHA)
    assert (changes.low > 0).tolist() == [True, False] and (changes.high < 0).tolist() == [False, True]


def test_changes_of_rdi_and_mean_by_hand():
    outcomes = of_counts([20, 50, 90], [40, 50, 80], n=100)
    reference = ReferenceClasses(before=outcomes.before, after=outcomes.after)
    rdi = rdi_change(outcomes, reference, alpha=ALPHA)
    assert (rdi.before, rdi.after) == pytest.approx((0.7, 0.4))
    assert -0.6 < rdi.low < -0.3 < rdi.high < 0

    mean = mean_change(outcomes, weights=None, alpha=ALPHA)
    assert mean.difference == pytest.approx(0.1 / 3)
    differences = outcomes.after_low - outcomes.before_low
    assert mean.low == pytest.approx(lower_mean_bounds(differences[:, None], bound=1.0, alpha=ALPHA / 2)[0])
    weighted = mean_change(outcomes, weights=[0, 0, 5], alpha=ALPHA)
    assert weighted.difference == pytest.approx(-0.1)
    assert weighted.low == pytest.approx(betting(0, 10, 100, ALPHA / 2))
    assert weighted.high < 0


def test_outcomes_are_successes_or_failures():
    with pytest.raises(InputError, match="0 or 1"):
        paired([0.5, 1], [1, 1], [0, 1], 2)


def test_weights_that_are_none_are_refused():
    outcomes = of_counts([1, 2], [2, 1], n=4)
    for weights in ([1], [1, -1], [0, 0], [1, float("nan")]):
        with pytest.raises(InputError, match="class_weights"):
            mean_change(outcomes, weights=weights, alpha=ALPHA)


def test_a_class_without_samples_decides_nothing():
    outcomes = of_counts([10, 20], [40, 40], n=50)
    wider = PairedOutcomes.decided(outcomes.before_low, outcomes.after_low, outcomes.labels, classes=3)
    reference = ReferenceClasses(before=np.array([0.2, 0.4, 0.6]), after=np.array([0.8, 0.8, 0.9]))
    gain = worst_class_gain(wider, reference, alpha=ALPHA)
    assert gain.difference == pytest.approx(0.6) and gain.low < 0
    changes = class_gains(wider, alpha=ALPHA)
    assert (changes.low[2], changes.high[2]) == (-1, 1) and np.isnan(changes["change"][2])
    mean = mean_change(wider, weights=None, alpha=ALPHA)
    assert (mean.low, mean.high) == (-1, 1)


def test_undecided_outcomes_widen_every_interval():
    outcomes = of_counts([10, 30], [30, 30], n=50)
    open_after = outcomes.after_low.copy()
    open_after[:5] = 0
    undecided = PairedOutcomes(
        before_low=outcomes.before_low,
        before_high=outcomes.before_high,
        after_low=open_after,
        after_high=outcomes.after_high,
        labels=outcomes.labels,
        classes=2,
    )
    reference = ReferenceClasses(before=outcomes.before, after=outcomes.after)
    for change in (
        lambda paired: worst_class_gain(paired, reference, alpha=ALPHA),
        lambda paired: rdi_change(paired, reference, alpha=ALPHA),
        lambda paired: mean_change(paired, weights=None, alpha=ALPHA),
    ):
        narrow = change(outcomes)
        wide = change(undecided)
        assert wide.low <= narrow.low and wide.high >= narrow.high and wide.high - wide.low > narrow.high - narrow.low


def test_the_curve_starts_at_the_original_model():
    half = of_counts([20, 90], [30, 85], n=100)
    whole = of_counts([20, 90], [50, 60], n=100)
    points = list(strength_curve({1.0: whole, 0.5: half}, weights=None, intervals=INTERVALS, alpha=ALPHA).itertuples())
    assert [point.strength for point in points] == [0, 0.5, 1]
    assert [point.worst for point in points] == [0.2, 0.3, 0.5]
    assert [point.mean for point in points] == pytest.approx([0.55, 0.575, 0.55])
    # The worst class gains half of .2, and the mean .025 of .55.
    assert [point.rho for point in points] == pytest.approx([0, 0.5 + 0.025 / 0.55, 1.5])
    # All six intervals hold together: each end of the worst class before fails with probability ALPHA / 12.
    assert points[0].worst_low == pytest.approx(beta_lower(20, 100, ALPHA / 12), abs=1e-6)
    assert points[0].worst_high == pytest.approx(beta_upper(20, 100, ALPHA / 12 / 2), abs=1e-6)
    for point in points:
        assert point.mean_low < point.mean < point.mean_high


# ---- simulated models ----


def reference_of(rng, before, after, n):
    """Class values on another half of the samples."""
    return ReferenceClasses(before=rng.binomial(n, before) / n, after=rng.binomial(n, after) / n)


@pytest.mark.parametrize("n", [50, 300])
def test_models_without_a_gain_rarely_seem_helped(n):
    rng = np.random.default_rng(n)
    helped = 0
    sure_classes = 0
    for _ in range(MODELS):
        # Exchangeable: before and after have the same chances, and every class the same.
        success = np.full(CLASSES, rng.uniform(0.1, 0.9))
        turning = rng.uniform(0.02, 0.5)
        gain = turning * np.minimum(1, success / (1 - success))
        outcomes = drawn(rng, success, gain, gain * (1 - success) / success, n)
        helped += worst_class_gain(outcomes, reference_of(rng, success, success, n), alpha=ALPHA).low > 0
        changes = class_gains(outcomes, alpha=ALPHA)
        sure_classes += bool(((changes.low > 0) | (changes.high < 0)).any())
    assert helped <= most_errors(ALPHA)
    assert sure_classes <= most_errors(ALPHA)


@pytest.mark.parametrize("n", [50, 300])
def test_offsets_chosen_on_the_other_half_do_not_help_a_fair_classifier(n):
    rng = np.random.default_rng(n)
    helped = 0
    labels = np.repeat(np.arange(CLASSES), n)
    for _ in range(MODELS):
        # Classes are exchangeable, so that any offsets lower the worst class; those that fit the noise of the choosing
        # half raise it there.
        halves = rng.normal(size=(2, len(labels), CLASSES))
        halves[:, np.arange(len(labels)), labels] += 2
        choosing, judging = halves
        offsets = offsets_against_noise(choosing, labels)
        before, after = (right(judging, labels, b) for b in (0, offsets))
        reference = ReferenceClasses(
            before=class_means_of(choosing, labels, 0), after=class_means_of(choosing, labels, offsets)
        )
        assert reference.after.min() >= reference.before.min()
        helped += worst_class_gain(paired(before, after, labels), reference, alpha=ALPHA).low > 0
    assert helped <= most_errors(ALPHA)


def right(logits, labels, offsets):
    return (logits + offsets).argmax(axis=1) == labels


def class_means_of(logits, labels, offsets):
    return np.bincount(labels, weights=right(logits, labels, offsets)) / np.bincount(labels)


def offsets_against_noise(logits, labels):
    """The best of a few steps against the spread of the class values."""
    best = offsets = np.zeros(CLASSES)
    values = class_means_of(logits, labels, offsets)
    worst = values.min()
    for _ in range(3):
        offsets = offsets + values.mean() - values
        values = class_means_of(logits, labels, offsets)
        if values.min() > worst:
            worst = values.min()
            best = offsets
    return best


@pytest.mark.parametrize(("n", "models", "weighted"), [(50, MODELS, False), (60, 150, True), (300, 150, False)])
def test_intervals_cover_the_true_changes(n, models, weighted):
    rng = np.random.default_rng(n)
    missed = dict.fromkeys(("classes", "worst", "rdi", "mean", "curve"), 0)
    for _ in range(models):
        before = rng.uniform(0.1, 0.9, CLASSES)
        gain = rng.uniform(0, 0.3, CLASSES)
        loss = rng.uniform(0, 0.3, CLASSES)
        after = before * (1 - loss) + (1 - before) * gain
        weights = rng.uniform(0.2, 1, CLASSES) if weighted else np.ones(CLASSES)
        shares = weights / weights.sum()
        outcomes = drawn(rng, before, gain, loss, n)
        reference = reference_of(rng, before, after, n)

        changes = class_gains(outcomes, alpha=ALPHA)
        missed["classes"] += not np.all((changes.low <= after - before) & (after - before <= changes.high))
        worst = worst_class_gain(outcomes, reference, alpha=ALPHA)
        missed["worst"] += not worst.low <= after.min() - before.min() <= worst.high
        rdi = rdi_change(outcomes, reference, alpha=ALPHA)
        missed["rdi"] += not rdi.low <= np.ptp(after) - np.ptp(before) <= rdi.high
        mean = mean_change(outcomes, weights=weights, alpha=ALPHA)
        missed["mean"] += not mean.low <= shares @ (after - before) <= mean.high
        covered = True
        curve = list(strength_curve({1.0: outcomes}, weights=weights, intervals=INTERVALS, alpha=ALPHA).itertuples())
        for point, truth in zip(curve, (before, after), strict=True):
            covered &= point.mean_low <= shares @ truth <= point.mean_high
            covered &= point.worst_low <= truth.min() <= point.worst_high
        missed["curve"] += not covered
    assert max(missed.values()) <= most_errors(ALPHA, models), missed


def test_a_true_gain_is_shown_with_enough_samples():
    rng = np.random.default_rng(1)
    before = np.array([0.15, *np.full(CLASSES - 1, 0.6)])
    gain = np.array([0.25, *np.full(CLASSES - 1, 0.02)])
    loss = np.array([0.02, *np.full(CLASSES - 1, 0.1)])
    shown = 0
    for _ in range(50):
        outcomes = drawn(rng, before, gain, loss, 300)
        shown += worst_class_gain(outcomes, ReferenceClasses(before, before), alpha=ALPHA).low > 0
    assert shown >= 45
