import numpy as np
import pytest
import torch
from scipy.stats import binom, norm
from torch import nn

from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from gfscore.measures.certified import Certified, Sandwich, Smoothing, provable_radius
from gfscore.measures.certified.batch import attack_certificates, pgd_of_smoothed
from gfscore.measures.certified.radii import fewest_votes
from gfscore.measures.certified.smoothing import certify, count_votes, noisy_copies, select
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.proportions import allowed_refutations
from helpers.networks import detached
from helpers.samples import draws_of, seeds_of

measure_batch = KINDS["certified"].load()

SMOOTHING = {
    "sigma": 0.5,
    "selection_samples": 20,
    "estimation_samples": 200,
    "alpha": 0.05,
    "batch_size": 4096,
    "sandwich": None,
}
DIRECTION = np.array([3.0, -1.0, 2.0, 1.0])
LENGTH = np.linalg.norm(DIRECTION)


@pytest.fixture(autouse=True)
def one_thread():
    with reproducible_arithmetic():
        yield


class HalfSpace(nn.Module):
    """Class 1 where the image lies beyond a plane; the smoothed classifier is the same, its radius the distance."""

    def __init__(self, classes=2, passes=None):
        super().__init__()
        self.direction = nn.Parameter(torch.tensor(DIRECTION, dtype=torch.float32))
        self.classes, self.passes = classes, passes

    def forward(self, x):
        if self.passes is not None:
            self.passes.append(len(x))
        score = 5 * (x.flatten(1) @ self.direction - 2.5)
        rest = torch.full((len(x), self.classes - 2), -100.0, device=x.device)
        return torch.cat([-score[:, None], score[:, None], rest], dim=1)


def points(n, *, seed=0):
    images = np.random.default_rng(seed).uniform(0, 1, (n, 1, 2, 2)).astype(np.float32)
    distance = (images.reshape(n, 4).astype(np.float64) @ DIRECTION - 2.5) / LENGTH
    return images, distance


def measured(images, labels, *, network=None, seed=0, **changes):
    classifier = from_network(network or HalfSpace())
    settings = Certified(smoothing=Smoothing(**SMOOTHING | changes))
    return measure_batch(classifier, images, labels, settings=settings, seeds=seeds_of(images, seed))


@pytest.mark.parametrize("classes", [2, 3])
def test_certificates_of_a_half_space_are_right_as_often_as_they_claim(classes):
    n = 4000
    images, distance = points(n)
    columns = measured(images, np.ones(n, dtype=int), network=HalfSpace(classes))
    certified = ~columns["abstained"]
    wrong = certified & ((columns["prediction"] != (distance > 0)) | (columns["radius"] > np.abs(distance)))
    assert wrong.sum() <= binom.ppf(0.999, n, SMOOTHING["alpha"])
    # The bound is no looser than it must be: more than a handful do err, and radii come near the distances.
    assert wrong.sum() > binom.ppf(0.001, n, 0.02)
    assert certified.mean() > 0.7
    clear = certified & (np.abs(distance) < 0.8)
    assert np.mean(columns["radius"][clear] / np.abs(distance)[clear]) > 0.6


def test_certificates_hold_at_the_boundary_itself():
    # p = 1/2: every certificate is false, and the class is chosen by other draws than those that prove it.
    n = 3000
    images = np.tile((2.5 * DIRECTION / LENGTH**2).reshape(1, 1, 2, 2), (n, 1, 1, 1)).astype(np.float32)
    columns = measured(images, np.ones(n, dtype=int))
    assert (~columns["abstained"]).sum() <= binom.ppf(0.999, n, SMOOTHING["alpha"])


def test_columns_of_certified_and_abstained_samples():
    images, _ = points(300)
    labels = np.random.default_rng(1).integers(0, 2, 300)
    columns = measured(images, labels)
    abstained = columns["abstained"]
    assert 0 < abstained.sum() < 300
    assert (columns["prediction"][abstained] == -1).all()
    assert (columns["radius"][abstained] == 0).all() and (columns["radius"][~abstained] > 0).all()
    right = columns["prediction"] == labels
    np.testing.assert_array_equal(columns["value"], np.where(right, columns["radius"], 0))
    assert columns["value"].max() <= provable_radius(Smoothing(**SMOOTHING))
    assert (columns["draws"][~abstained] == 220).all()
    assert not columns["censored"].any() and not columns["attacked"].any() and not columns["refuted"].any()
    np.testing.assert_array_equal(columns["lower_bound"] > 0.5, ~abstained)


def test_stopping_early_changes_no_outcome_and_saves_draws():
    images, distance = points(200)
    x = torch.from_numpy(images)
    needed = fewest_votes(200, alpha=0.05)
    classes = torch.from_numpy((distance > 0).astype(np.int64))
    classes[:50] = 1 - classes[:50]  # wrongly selected: these cannot be certified
    base = BatchedClassifier(from_network(HalfSpace()), batch_size=1000)
    for stop in (0, needed):
        votes, drawn = count_votes(base, x, classes, draws=200, needed=stop, sigma=0.5, noise=draws_of(x))
        if stop == 0:
            assert (drawn == 200).all()
            continue
        stopped = drawn < 200
        assert stopped[:50].float().mean() > 0.8
        # None that stopped could have been certified by the draws that it did not take.
        assert (votes[stopped] + (200 - drawn[stopped]) < needed).all()
        assert (drawn[votes >= needed] == 200).all()


def test_bound_of_a_stopped_sample_counts_missing_draws_as_votes_against():
    images, _ = points(400)
    columns = measured(images, np.ones(400, dtype=int), batch_size=500)
    stopped = columns["draws"] < 220
    assert stopped.any()
    assert (columns["lower_bound"][stopped] <= 0.5).all()


def test_small_images_share_full_batches():
    passes = []
    images, _ = points(10)
    measured(images + 1, np.ones(10, dtype=int), network=HalfSpace(passes=passes), batch_size=256)
    # 10 x 20 selection draws, then 10 x 200 in 25 per image; nothing is dropped so far from the plane.
    assert passes == [200, 250, 250, 250, 250, 250, 250, 250, 250]


def test_more_images_than_a_batch_are_passed_in_parts():
    passes = []
    images, _ = points(10)
    base = BatchedClassifier(from_network(HalfSpace(passes=passes)), batch_size=4)
    found = select(base, torch.from_numpy(images + 1), draws=2, sigma=0.1, noise=draws_of(images))
    assert passes == [4, 4, 2, 4, 4, 2]
    assert found.tolist() == [1] * 10


def test_batches_are_halved_when_memory_runs_out():
    class Narrow(HalfSpace):
        def forward(self, x):
            if len(x) > 3:
                raise torch.OutOfMemoryError("not enough memory")
            return super().forward(x)

    images, _ = points(16)
    base = BatchedClassifier(from_network(Narrow()), batch_size=16)
    logits = base.logits(torch.from_numpy(images))
    assert base.batch_size == 2
    torch.testing.assert_close(logits, HalfSpace()(torch.from_numpy(images)).detach())


def test_noise_is_gaussian_independent_and_not_clipped():
    images = torch.stack([torch.zeros(1, 2, 2), torch.ones(1, 2, 2)])
    noisy = noisy_copies(images, sigma=0.5, noise=draws_of(images).copies(5000))
    noise = (noisy.reshape(2, 5000, 4) - images.reshape(2, 1, 4)).numpy()
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert abs(noise.mean()) < 0.01
    assert noisy.min() < 0 and noisy.max() > 1
    assert np.abs(np.corrcoef(noise[0].T) - np.eye(4)).max() < 0.06
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.04


def test_classifiers_without_gradients_can_be_certified_but_not_attacked():
    network = HalfSpace()

    def run(images):
        with torch.no_grad():
            return network(torch.from_numpy(images)).numpy()

    classifier = Classifier("made", None, 2, None, run=run)
    images, _ = points(20)
    labels = np.ones(20, dtype=int)
    expected = measured(images, labels)["radius"]
    found = measure_batch(
        classifier, images, labels, settings=Certified(smoothing=Smoothing(**SMOOTHING)), seeds=seeds_of(images)
    )
    np.testing.assert_array_equal(found["radius"], expected)
    attacked = Smoothing(**SMOOTHING | {"sandwich": Sandwich(steps=2, gradient_draws=4)})
    for without in (classifier, from_network(detached(network))):
        with pytest.raises(InputError, match="write sandwich: null"):
            measure_batch(without, images, labels, settings=Certified(smoothing=attacked), seeds=seeds_of(images))


SANDWICH = {"steps": 10, "gradient_draws": 16}


def test_right_certificates_survive_the_attack():
    n = 1500
    images, _ = points(n)
    columns = measured(images, np.ones(n, dtype=int), sandwich=SANDWICH)
    np.testing.assert_array_equal(columns["attacked"], ~columns["abstained"])
    assert columns["refuted"].sum() <= allowed_refutations(n, alpha=SMOOTHING["alpha"])


def test_wrong_certificates_are_refuted():
    images, distance = points(200)
    kept = np.abs(distance) > 0.15
    images, distance = images[kept], distance[kept]
    base = BatchedClassifier(from_network(HalfSpace()), batch_size=4096)
    claimed = {
        "abstained": np.arange(len(distance)) % 10 == 0,
        "prediction": (distance > 0).astype(np.int32),
        "radius": 2 * np.abs(distance) + 0.3,  # an error of the certification
    }
    smoothing = Smoothing(**SMOOTHING | {"estimation_samples": 1000, "sandwich": SANDWICH})
    refuted = attack_certificates(base, torch.from_numpy(images), claimed, smoothing=smoothing, noise=draws_of(images))
    assert not refuted[claimed["abstained"]].any()
    assert refuted[~claimed["abstained"]].mean() > 0.95


def test_the_attack_stays_in_the_radius_and_goes_straight_to_the_plane():
    images, distance = points(30)
    base = BatchedClassifier(from_network(HalfSpace()), batch_size=100)  # less than 30 x 16: several parts
    radius = torch.linspace(0.05, 0.5, 30)
    classes = torch.from_numpy((distance > 0).astype(np.int64))
    moved = pgd_of_smoothed(
        base,
        torch.from_numpy(images),
        classes,
        radius,
        sigma=0.5,
        noise=draws_of(images),
        **SANDWICH,
    )
    step = (moved - torch.from_numpy(images)).flatten(1).numpy()
    length = np.linalg.norm(step, axis=1)
    assert (length <= radius.numpy() * (1 + 1e-5)).all()
    away = -np.sign(distance)[:, None] * DIRECTION / LENGTH
    np.testing.assert_allclose((step * away).sum(1), radius.numpy(), rtol=1e-3)


def test_the_attack_sees_gradients_where_the_network_is_sure_of_itself():
    class Sure(HalfSpace):
        def forward(self, x):
            return 20 * super().forward(x)  # logits of +-200: in float32, every softmax is 0 or 1

    images = np.full((3, 1, 2, 2), 0.9, dtype=np.float32)  # distance 0.52, noise 0.02
    base = BatchedClassifier(from_network(Sure()), batch_size=64)
    moved = pgd_of_smoothed(
        base,
        torch.from_numpy(images),
        torch.ones(3, dtype=torch.int64),
        torch.full((3,), 0.3),
        sigma=0.02,
        noise=draws_of(images),
        **SANDWICH,
    )
    step = (moved - torch.from_numpy(images)).flatten(1).numpy()
    np.testing.assert_allclose(step @ DIRECTION / LENGTH, -0.3, rtol=1e-3)


def test_a_frequency_in_place_of_its_bound_would_break_the_promise(monkeypatch):
    monkeypatch.setattr(
        "gfscore.measures.certified.smoothing.lower_shares", lambda votes, draws, *, alpha: votes / (draws + 1)
    )
    n = 2000
    images, distance = points(n)
    columns = measured(images, np.ones(n, dtype=int))
    wrong = ~columns["abstained"] & (columns["radius"] > np.abs(distance))
    assert wrong.sum() > 2 * binom.ppf(0.999, n, SMOOTHING["alpha"])


def test_gradients_of_the_network_are_left_alone():
    network = HalfSpace()
    images, _ = points(5)
    measured(images, np.ones(5, dtype=int), network=network, sandwich=SANDWICH)
    assert network.direction.grad is None


def test_radius_agrees_with_the_exact_one_when_draws_are_many():
    images = (2.5 / LENGTH**2 + 0.3 / LENGTH) * DIRECTION.reshape(1, 1, 2, 2)
    base = BatchedClassifier(from_network(HalfSpace()), batch_size=50_000)
    smoothing = Smoothing(**SMOOTHING | {"estimation_samples": 200_000, "alpha": 0.001})
    columns = certify(
        base,
        torch.from_numpy(images.astype(np.float32)),
        smoothing=smoothing,
        noise=draws_of(images),
    )
    assert 0.29 < columns["radius"][0] < 0.3
    assert columns["lower_bound"][0] == pytest.approx(norm.cdf(0.3 / 0.5), abs=0.006)


class RoundedHalfSpace(nn.Module):
    """A linear network, whose sums autocast rounds; class 1 beyond a plane through the middle of the cube."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        direction = torch.tensor(DIRECTION, dtype=torch.float32)
        self.linear.weight.data = torch.stack([-direction, direction])
        self.linear.bias.data = torch.tensor([2.5, -2.5])

    def forward(self, x):
        return self.linear(x.flatten(1))


def test_votes_in_bfloat16_are_those_of_the_rounded_network_and_their_drift_is_told():
    images, distance = points(200)
    labels = np.ones(200, dtype=int)
    exact = measured(images, labels, network=RoundedHalfSpace(), selection_samples=200)
    rounded = measured(images, labels, network=RoundedHalfSpace(), selection_samples=200, precision="bfloat16")
    assert np.isnan(exact["drift"]).all()
    # 8 bits of logits of about 1: only copies within some hundredths of the plane change sides.
    assert 0 < rounded["drift"].mean() < 0.05
    assert rounded["drift"][np.abs(distance) < 0.1].mean() > rounded["drift"][np.abs(distance) > 0.5].mean()
    assert np.abs(rounded["radius"] - exact["radius"]).max() < 0.3
    assert (rounded["lower_bound"] != exact["lower_bound"]).any()


@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_a_precision_that_the_classifier_does_not_have_is_refused(precision):
    images, _ = points(2)
    without_network = Classifier("", None, 2, None, run=lambda x: np.zeros((len(x), 2), np.float32))
    settings = Certified(smoothing=Smoothing(**SMOOTHING | {"precision": precision}))
    with pytest.raises(InputError, match="precision"):
        measure_batch(without_network, images, np.zeros(2, int), settings=settings, seeds=seeds_of(images))
    if precision == "tf32":
        with pytest.raises(InputError, match="cpu"):
            measured(images, np.zeros(2, int), network=RoundedHalfSpace(), precision=precision)
