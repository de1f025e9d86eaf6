import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy.stats import binom, norm
from torch import nn

from gfscore.attacks.perturbations import Perturbation, gaussian, of_attack
from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from gfscore.measures.probabilistic.exact_binomial import ExactBinomialTest
from gfscore.measures.probabilistic.neighbourhoods import predict, run_tests
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import from_network
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.margins import predictions
from gfscore.statistics.sequential_tests import boundaries, characteristics
from helpers.samples import draws_of, seeds_of

measure_batch = KINDS["probabilistic"].load()

SIGMA = 0.2
SETTINGS = {
    "kappa": 0.1,
    "alpha": 0.05,
    "test": "anytime",
    "budget": 400,
    "perturbation": {"family": "gaussian", "sigma": SIGMA, "clip": False},
    "reference": "prediction",
    "batch_size": 2048,
}
NOISE = gaussian(sigma=SIGMA, clip=False)


@pytest.fixture(autouse=True)
def one_thread():
    with reproducible_arithmetic():
        yield


class Threshold(nn.Module):
    """Class 1 where the mean of the image is above 1/2, of K classes."""

    def __init__(self, classes=2, passes=None):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.classes, self.passes = classes, passes

    def forward(self, x):
        if self.passes is not None:
            self.passes.append(len(x))
        score = self.scale * (x.flatten(1).mean(1) - 0.5)
        rest = torch.full((len(x), self.classes - 2), -10.0)
        return torch.cat([-score[:, None], score[:, None], rest], dim=1)


def images_at(values):
    """Images of 2 x 2 equal pixels; under the Gaussian family their mean has standard deviation SIGMA / 2."""
    return np.tile(np.asarray(values, dtype=np.float32).reshape(-1, 1, 1, 1), (1, 1, 2, 2))


def measured(values, labels=None, *, network=None, seed=0, kappa=None, **changes):
    images = images_at(values)
    labels = np.ones(len(images), dtype=np.int64) if labels is None else np.asarray(labels)
    settings = KINDS["probabilistic"].parse(SETTINGS | changes)
    if kappa is not None:
        # The ends of the range, which no configuration has.
        settings = settings.model_copy(update={"kappa": kappa})
    classifier = from_network(network or Threshold())
    return measure_batch(classifier, images, labels, settings=settings, seeds=seeds_of(images, seed))


def at_probability(p):
    """Grey value whose neighbours are of the other class with probability p < 1/2."""
    return 0.5 - SIGMA / 2 * norm.ppf(p)


@pytest.mark.parametrize("p", [0.03, 0.1, 0.2])
def test_outcomes_have_the_exact_frequencies(p):
    n = 3000
    columns = measured(np.full(n, at_probability(p)))
    exact = characteristics(boundaries(kappa=0.1, alpha=0.05, budget=400), p)
    for state in ("robust", "not_robust", "undecided"):
        share = getattr(exact, state)
        # One in ten thousand on either side.
        low, high = binom.ppf([1e-4, 1 - 1e-4], n, share)
        assert low <= (columns["state"] == state).sum() <= high


def test_outcomes_do_not_depend_on_how_many_are_drawn_at_once():
    n = 2000
    one = measured(np.full(n, at_probability(0.1)), batch_size=n)  # one draw a pass while all are undecided
    many = measured(np.full(n, at_probability(0.1)), batch_size=100 * n)
    for state in ("robust", "not_robust"):
        counts = [(columns["state"] == state).sum() for columns in (one, many)]
        # Five standard deviations of the difference of two counts around 100.
        assert abs(counts[0] - counts[1]) < 70
    assert one["draws"].mean() == pytest.approx(many["draws"].mean(), rel=0.05)


def test_counts_are_those_of_the_decision():
    columns = measured(np.linspace(0.4, 0.9, 200))
    limits = boundaries(kappa=0.1, alpha=0.05, budget=400)
    codes = limits.decide(columns["changes"], columns["draws"])
    np.testing.assert_array_equal(np.array(["undecided", "robust", "not_robust"])[codes], columns["state"])
    assert (columns["draws"][columns["state"] == "undecided"] == 400).all()
    # One draw earlier nothing was decided: the last draw of a robust image was no change, of the others one.
    decided = columns["state"] != "undecided"
    changed = columns["state"] == "not_robust"
    before = limits.decide((columns["changes"] - changed)[decided], (columns["draws"] - 1)[decided])
    assert (before == 0).all()
    assert set(columns["state"]) == {"robust", "not_robust", "undecided"}


def test_columns_follow_from_the_state():
    columns = measured(np.linspace(0.4, 0.9, 100))
    np.testing.assert_array_equal(columns["value"], columns["state"] == "robust")
    np.testing.assert_array_equal(columns["censored"], columns["state"] == "undecided")
    assert columns["prediction"].dtype == np.int32
    np.testing.assert_array_equal(columns["prediction"], np.linspace(0.4, 0.9, 100) > 0.5)


def test_decided_images_leave_the_batch():
    passes = []
    measured([0.95, 0.1], [1, 1], network=Threshold(passes=passes), batch_size=2, reference="label")
    # The images themselves; both until the second is decided by its changes; then the first fills the batch alone and
    # needs 36 clean draws in all.
    draws = measured([0.1], [1], reference="label")["draws"][0]
    assert draws < 10
    alone = -(-(36 - draws) // 2)
    assert passes == [2] + [2] * draws + [2] * alone


def test_references_differ_for_a_stable_error():
    stable = measured([0.95, 0.05], [0, 0], reference="prediction")
    assert stable["state"].tolist() == ["robust", "robust"]
    right = measured([0.95, 0.05], [0, 0], reference="label")
    assert right["state"].tolist() == ["not_robust", "robust"]
    assert right["prediction"].tolist() == [1, 0]


@pytest.mark.parametrize("classes", [2, 3])
def test_every_sample_wrong_and_few_classes(classes):
    columns = measured([0.9, 0.8, 0.1], [0, 0, 1], network=Threshold(classes), reference="label")
    assert columns["state"].tolist() == ["not_robust"] * 3
    assert (columns["value"] == 0).all()


def test_copies_of_corruptions_are_never_left_unclipped():
    corrupted = {"family": "corruption", "corruptions": ["fog"]}
    settings = KINDS["probabilistic"].settings
    assert settings.model_validate({"perturbation": corrupted}).perturbation.clip
    with pytest.raises(ValidationError, match="Input should be True"):
        settings.model_validate({"perturbation": corrupted | {"clip": False}})


def test_presets_and_tests_are_chosen_by_name():
    clean = {"perturbation": {"family": "linf_ball", "eps": 0.01, "clip": True}, "kappa": "SIL2", "budget": 3000}
    assert measured([0.9], **clean)["draws"].tolist() == [377]
    assert measured([0.9], **clean, test="repeated_exact")["draws"].tolist() == [299]


def test_a_test_that_errs_too_often_is_refused_before_anything_is_drawn():
    with pytest.raises(
        InputError, match=r"test repeated_exact at kappa 0\.1, alpha 0\.2 and budget 3000 decides wrongly"
    ):
        measured([0.9], kappa=0.1, alpha=0.2, budget=3000, test="repeated_exact")


def test_a_budget_that_decides_nothing_is_refused():
    with pytest.raises(InputError, match=r"budget 35 is too small: .* needs 36 draws"):
        measured([0.9], budget=35)
    assert measured([0.95], budget=36)["state"].tolist() == ["robust"]


def test_unknown_reference_is_named():
    attack = ExactBinomialTest(Threshold(), perturbation=NOISE, kappa=0.1, budget=400, reference="labels")
    with pytest.raises(InputError, match="did you mean 'label'"):
        attack(torch.from_numpy(images_at([0.9])), torch.tensor([1]))


def test_predictions_break_ties_as_tables_do():
    logits = np.array([[1, 1, 0], [1, 1, 1], [0, 2, 2], [3, 1, 2], [0, 5, 5]], dtype=np.float32)
    labels = np.array([0, 2, 0, 0, 1])
    np.testing.assert_array_equal(
        predict(torch.from_numpy(logits), torch.from_numpy(labels)), predictions(logits, labels)
    )


def test_kappa_one_needs_no_draw_and_at_kappa_zero_one_change_decides():
    for kappa, values, states, counts in (
        (1, [0.9, 0.5], ["robust", "robust"], {"draws": [0, 0]}),
        (0, [0.95, 0.5], ["undecided", "not_robust"], {"changes": [0, 1]}),
    ):
        columns = measured(values, kappa=kappa)
        assert columns["state"].tolist() == states
        assert {name: columns[name].tolist() for name in counts} == counts


def test_an_empty_budget_leaves_everything_undecided():
    base = BatchedClassifier(from_network(Threshold()), batch_size=8)
    outcome, _ = run_tests(
        base,
        torch.from_numpy(images_at([0.9])),
        torch.tensor([1]),
        boundaries=boundaries(kappa=0.1, alpha=0.05, budget=0),
        perturbation=NOISE,
        reference="label",
        draws=draws_of(1),
    )
    assert outcome.states().tolist() == ["undecided"]
    assert outcome.draws.tolist() == [0]


def binomial_test(network=None, **changes):
    arguments = {name: SETTINGS[name] for name in ("kappa", "budget", "reference")} | {"perturbation": NOISE}
    return ExactBinomialTest(network or Threshold(), **arguments | changes)


def test_the_object_is_called_like_an_attack():
    network = Threshold().train()
    attack = binomial_test(network)
    images, labels = torch.from_numpy(images_at([0.95, 0.5, 0.05])), torch.tensor([1, 1, 0])
    found = attack(images, labels)
    assert attack.model is network and network.training
    assert attack.states.tolist() == ["robust", "not_robust", "robust"]
    assert found.shape == images.shape and not found.requires_grad
    torch.testing.assert_close(found[[0, 2]], images[[0, 2]], rtol=0, atol=0)
    # On the boundary a tie counts against the label, so the prediction is 0; its neighbour is of the other class.
    assert network(found)[1].argmax() == 1


def test_agreement_on_the_returned_images_is_the_share_of_robust_inputs():
    network = Threshold()
    values = np.concatenate([np.full(60, 0.95), np.full(40, 0.52), np.full(20, 0.05)])
    images = torch.from_numpy(images_at(values))
    labels = torch.from_numpy((values > 0.5).astype(np.int64))
    attack = binomial_test(network, reference="label")
    agreeing = (network(attack(images, labels)).argmax(1) == labels).numpy()
    np.testing.assert_array_equal(agreeing, attack.states == "robust")
    assert agreeing.sum() == 80


def test_successive_calls_draw_on_and_the_seed_repeats_them():
    images, labels = torch.from_numpy(images_at(np.full(30, 0.6))), torch.ones(30, dtype=torch.int64)
    attack = binomial_test()
    first = (attack(images, labels), attack.draws)
    second = (attack(images, labels), attack.draws)
    assert (first[1] != second[1]).any()
    again = binomial_test()
    torch.testing.assert_close(again(images, labels), first[0], rtol=0, atol=0)


def test_an_attack_object_serves_as_perturbation():
    class Noise:
        def __call__(self, images, labels):
            return images + SIGMA * torch.randn_like(images)

    attack = binomial_test(perturbation=of_attack(Noise()))
    attack(torch.from_numpy(images_at([0.95, 0.5])), torch.tensor([1, 1]))
    assert attack.states.tolist() == ["robust", "not_robust"]


class Overflowing(nn.Module):
    def forward(self, x):
        dark = (x.flatten(1).amin(1) < 0)[:, None]
        return torch.where(dark, float("nan"), torch.nn.functional.pad(x.flatten(1)[:, :1], (0, 1)))


def test_logits_that_are_no_numbers_are_refused():
    x, y = torch.full((3, 1, 2, 2), 0.1), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(InputError, match="NaN or infinite"):
        ExactBinomialTest(Overflowing(), perturbation=NOISE, kappa=0.1, budget=100)(x, y)


def test_a_model_that_changes_its_images_is_refused():
    class InPlace(nn.Module):
        def forward(self, images):
            mean = images.sub_(0.5).mean(dim=(1, 2, 3))
            return torch.stack([-mean, mean], dim=1)

    images = torch.full((2, 1, 4, 4), 0.6)
    with pytest.raises(InputError, match="model InPlace: modifies its input images in place"):
        ExactBinomialTest(InPlace(), perturbation=NOISE, kappa=0.1, budget=100)(images, torch.tensor([1, 1]))
    assert (images == 0.6).all()


def test_every_module_gets_its_own_mode_back_after_an_error_too():
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4), nn.Linear(4, 2)).train()
    model[1].eval()
    images, labels = torch.rand(2, 1, 2, 2), torch.zeros(2, dtype=torch.int64)
    ExactBinomialTest(model, perturbation=NOISE, kappa=0.1, budget=100)(images, labels)
    assert [module.training for module in model.modules()] == [True, True, False, True]
    failing = Perturbation(lambda images, labels, draws: images[:1, :, :1], "failing")
    with pytest.raises(InputError, match="failing"):
        binomial_test(model, perturbation=failing)(images, labels)
    assert [module.training for module in model.modules()] == [True, True, False, True]
