"""Measures and trainings on a device of its own, a pretend one: the same results, and how often the host waits."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch

from gfscore.attacks.ball_attacks import auto_pgd, pgd
from gfscore.attacks.goals import LOG_ODDS
from gfscore.attacks.minimal_norm import deepfool, fmn, refine
from gfscore.images.image_set import from_arrays, from_pixels, unit_range
from gfscore.measures import KINDS
from gfscore.measures.certified.batch import pgd_of_smoothed
from gfscore.networks import classifier
from gfscore.networks.adjusted import with_offsets
from gfscore.networks.architectures import build_network
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import from_network
from gfscore.networks.inference import extract_logits
from gfscore.networks.training_settings import Attack, training_methods
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import _Search, prove
from gfscore.training.loop import describe_training, train_classifier
from helpers.networks import pretended
from helpers.proofs import random_network
from helpers.samples import draws_of, seeds_of
from helpers.trainings import small_training

pytestmark = pytest.mark.seconds(15)

SHAPE, CLASSES, IMAGES = (1, 8, 8), 4, 6
LINF, L2 = {"norm": "linf", "eps": 0.02}, {"norm": "l2", "eps": 0.3}


@pytest.fixture
def pixels():
    return np.random.default_rng(0).random((IMAGES, *SHAPE), dtype=np.float32)


@pytest.fixture
def network(pixels):
    """A network that is torn between the classes, so that attacks succeed, some of them early."""
    network = build_network("small_convnet", in_channels=1, image_size=SHAPE[1:], classes=CLASSES, width=4).eval()
    with torch.no_grad():
        network[-1].bias -= network(torch.from_numpy(pixels)).mean(0)
    return network


@pytest.fixture
def labels(network, pixels):
    """Labels as predicted, but for one sample."""
    found = extract_logits(network, image_set(pixels), device="cpu")[2].argmax(1)
    found[0] = (found[0] + 1) % CLASSES
    return found


MIXED = {
    "sum": lambda here, there: here + there,
    "index": lambda here, there: here[there.long()],
    "numpy": lambda here, there: there.numpy(),
    "generator of the CPU": lambda here, there: there.normal_(generator=torch.Generator()),
    "generator of the device": lambda here, there: here.normal_(generator=torch.Generator(device="cuda")),
}


@pytest.mark.parametrize("name", MIXED)
def test_the_pretend_device_refuses_what_a_gpu_refuses(name):
    with pretended(), pytest.raises((RuntimeError, TypeError), match=r"same device|numpy|generator"):
        MIXED[name](torch.zeros(3), torch.zeros(3, device="cuda"))


def test_the_pretend_device_notes_what_a_gpu_is_waited_for():
    with pretended() as waits:
        values = torch.arange(3.0).to("cuda")
        assert bool(values[0] == 0)
        assert values[values > 0].cpu().tolist() == [1, 2]
        values[values > 0] = 5
        assert (2 * values + 1).sum() == values[torch.tensor([0])] + 23
    assert [reason for reason, _ in waits] == ["copy", "number", "size", "copy", "copy", "number"]


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.2), ("l2", 0.6)])
def test_proofs_with_branches_on_a_device_are_those_of_the_cpu(norm, eps, monkeypatch):
    network = random_network(3, relu_only=True)
    images = torch.rand(4, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1).numpy()
    layers = layered(graph_of(network, (2, 4, 4)))
    options = {"norm": norm, "eps": eps, "budget": 5000}
    here = list(prove(layers, images.numpy(), labels, **options))
    search = _Search.run

    def with_device(*arguments):
        # Modes of torch are those of a thread.
        with pretended():
            return search(*arguments)

    monkeypatch.setattr(_Search, "run", with_device)
    # The pretend device holds no compressed rows.
    monkeypatch.setattr("gfscore.proofs.relaxation.MAX_DENSITY", -1)
    there = list(prove(layers, images.numpy(), labels, **options, device="cuda"))
    assert any(proof.branches for proof in here)
    for one, other in zip(here, there, strict=True):
        assert (one.proven, one.decided_by) == (other.proven, other.decided_by)
        assert one.lower == pytest.approx(other.lower, abs=1e-4)


def image_set(pixels, labels=None):
    labels = np.zeros(len(pixels), dtype=int) if labels is None else labels
    return from_arrays(pixels, labels, sample_id=np.arange(len(pixels)), preprocessing="")


def adversarial_case(name, ball, **options):
    return "adversarial", ball | {"attacks": [{"name": name, **options}]}


def minimal_case(name, norm, **options):
    attack = {"norm": norm, "largest_distance": 3.0, "bisection_steps": 3, "attacks": [{"name": name, **options}]}
    return "minimal", attack


def neighbourhood_case(**perturbation):
    test = {"kappa": 0.2, "alpha": 0.1, "budget": 60, "test": "anytime", "reference": "label", "batch_size": 64}
    return "probabilistic", test | {"perturbation": perturbation | {"clip": True}}


CERTIFY = {"sigma": 0.1, "selection_samples": 10, "estimation_samples": 60, "alpha": 0.05, "batch_size": 64}
MEASURES = {
    "fgsm": adversarial_case("fgsm", LINF),
    "pgd": adversarial_case("pgd", L2, steps=3, step_size=0.1, restarts=2),
    "apgd-ce": adversarial_case("apgd-ce", LINF, steps=5, restarts=1),
    "apgd-dlr": adversarial_case("apgd-dlr", L2, steps=5, restarts=1),
    "apgd-targeted": adversarial_case("apgd-targeted", LINF, steps=3, targets=2),
    "fab in a ball": adversarial_case("fab", LINF, steps=2, targets=1),
    "square": adversarial_case("square", LINF, queries=3),
    "targeted": ("targeted", LINF | {"steps": 3, "step_size": 0.02, "restarts": 1}),
    "deepfool": minimal_case("deepfool", "linf", steps=5),
    "fmn": minimal_case("fmn", "l2", steps=5),
    "carlini-wagner": minimal_case("carlini-wagner", "l2", steps=3, binary_search_steps=2),
    "fab": minimal_case("fab", "l2", steps=2),
    "smoothing": ("certified", {"smoothing": CERTIFY | {"sandwich": {"steps": 2, "gradient_draws": 4}}}),
    "l2 ball": neighbourhood_case(family="l2_ball", eps=0.5),
    "gaussian": neighbourhood_case(family="gaussian", sigma=0.1),
    "corruption": neighbourhood_case(family="corruption", corruptions=["gaussian_noise"], severities=[1]),
    "corruptions": ("corruption", {"corruptions": ["brightness"], "severities": [1]}),
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_on_a_device_gives_what_it_gives_on_the_cpu(name, network, pixels, labels):
    kind, settings = MEASURES[name]
    measure = partial(
        KINDS[kind].load(),
        from_network(network),
        pixels,
        labels,
        settings=KINDS[kind].parse(settings),
        seeds=seeds_of(pixels, seed=3),
    )
    here = measure()
    with pretended() as waits:
        network.to("cuda")
        there = measure()
    assert waits
    assert here.keys() == there.keys()
    for column, values in here.items():
        if np.issubdtype(values.dtype, np.number):
            # The last digit may be another, and a library's attack end a step later.
            np.testing.assert_allclose(there[column], values, rtol=0.05, err_msg=column)
        else:
            np.testing.assert_array_equal(there[column], values, err_msg=column)


@pytest.mark.parametrize("name", ["fab in a ball", "square", "carlini-wagner", "fab"])
def test_a_measure_on_the_cpu_leaves_the_gpu_of_the_machine_alone(name, network, pixels, labels, monkeypatch):
    # Whatever begins to use it fails here, as this torch has no CUDA.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    kind, settings = MEASURES[name]
    settings = KINDS[kind].parse(settings)
    KINDS[kind].load()(from_network(network), pixels, labels, settings=settings, seeds=seeds_of(pixels))
    assert not torch.cuda.is_initialized()


def test_a_training_on_the_cpu_leaves_the_gpu_of_the_machine_alone(pixels, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    train_classifier(pixels, np.arange(IMAGES) % CLASSES, small_training("ERM", epochs=1), classes=CLASSES)
    assert not torch.cuda.is_initialized()


def test_logits_from_a_device_are_those_from_the_cpu(network, pixels):
    images = image_set(pixels)
    logits = extract_logits(network, images, device="cpu", batch_size=3)[2]
    with pretended() as waits:
        found = extract_logits(network, images, device="cuda", batch_size=3)[2]
    np.testing.assert_array_equal(found, logits)
    # There and back, of two batches and of every image once more.
    assert Counter(waits)["copy", "classifier.py:logits"] == 2 * (2 + IMAGES)


def test_a_device_converts_pixels_as_they_are_stored_to_the_same_images(network, pixels, monkeypatch):
    stored = np.ascontiguousarray(np.moveaxis((255 * pixels).astype(np.uint8), 1, -1))
    images = from_pixels(stored, np.zeros(IMAGES, dtype=int), sample_id=np.arange(IMAGES))
    logits = extract_logits(network, images, device="cpu", batch_size=3)[2]
    sent = []
    convert = classifier.unit_range
    monkeypatch.setattr(classifier, "unit_range", lambda pixels: sent.append(len(pixels)) or convert(pixels))
    with pretended():
        found = extract_logits(network, images, device="cuda", batch_size=3)[2]
    np.testing.assert_array_equal(found, logits)
    assert sum(sent) == 2 * IMAGES

    every_value = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    with pretended():
        there = classifier.unit_range(torch.from_numpy(every_value).to("cuda")).cpu().numpy()
    np.testing.assert_array_equal(there, unit_range(every_value))


def test_offsets_lie_on_the_device_of_the_network(network, pixels):
    offsets = np.linspace(-1, 1, CLASSES)
    logits = with_offsets(from_network(network), offsets).logits(pixels)
    with pretended():
        found = with_offsets(from_network(network.to("cuda")), offsets).logits(pixels)
    np.testing.assert_array_equal(found, logits)


THREAT = LINF | {"step_size": 0.02, "steps": 2}


@pytest.mark.parametrize("method", training_methods())
def test_a_training_on_a_device_ends_in_the_weights_of_one_on_the_cpu(method):
    pixels = np.random.default_rng(1).random((16, *SHAPE), dtype=np.float32)
    labels = np.arange(16) % CLASSES
    changes = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "eps": 0.02}
    here = train_classifier(pixels, labels, small_training(method, **changes), classes=CLASSES)
    on_gpu = small_training(method, device="cuda", **changes)
    with pretended():
        there = train_classifier(pixels, labels, on_gpu, classes=CLASSES)
        images = image_set(pixels, labels)
        attack = Attack(**THREAT, restarts=2)
        describe_training(there, images, images, settings=on_gpu, attack=attack)
    for name, value in here.state_dict().items():
        torch.testing.assert_close(there.state_dict()[name], value)


def waits_of(attack, network, pixels, **options):
    """Waits of an attack on images that are classified as labelled, what is sent there before not counted."""
    with pretended() as waits:
        network.to("cuda")
        images = torch.from_numpy(pixels).to("cuda")
        labels = network(images).argmax(1)
        drawn = (
            {"draws": draws_of(images, device="cuda")}
            if "ball" in {**getattr(attack, "keywords", {}), **options}
            else {}
        )
        del waits[:]
        attack(network, images, labels, **options, **drawn)
        return waits


# Too small to fool anything, so that no image leaves.
TINY = {"norm": "linf", "eps": 1e-6}
IN_A_BALL = {"ball": TINY, "restarts": 1}
STEPS = {
    "pgd": (partial(pgd, **IN_A_BALL, step_size=1e-7), 1),
    "auto_pgd": (partial(auto_pgd, **IN_A_BALL, goal=LOG_ODDS), 1),
    "deepfool": (partial(deepfool, norm="l2", largest_distance=3.0, overshoot=-0.999), 1),
    "fmn": (partial(fmn, norm="l2", largest_distance=3.0), 0),
}
"""Attack, and how often at most a step of it makes the host wait: only to learn which images go on."""


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_an_attack_waits_only_to_learn_which_images_go_on(name, network, pixels):
    attack, allowed = STEPS[name]

    def waits(steps):
        return waits_of(attack, network, pixels, steps=steps)

    assert len(waits(7)) - len(waits(4)) <= 3 * allowed


def test_bisection_waits_at_its_end_alone(network, pixels):
    def bisected(network, images, labels, steps):
        refine(network, images, images.flip(0), labels, steps=steps)

    assert waits_of(bisected, network, pixels, steps=5) == 3 * [("number", "minimal_norm.py:refine")]


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.1), ("l2", 1.0)])
def test_a_look_waits_once_however_many_images_leave(norm, eps, network, pixels):
    attack = {"ball": {"norm": norm, "eps": eps}, "steps": 20, "step_size": eps / 20, "restarts": 1}
    looks = []
    hook = network.register_forward_hook(lambda _network, given, _logits: looks.append(len(given[0])))
    waits = waits_of(pgd, network, pixels, **attack)
    hook.remove()
    # The first pass is that for the labels.
    assert len(set(looks[1:])) > 2, "images leave at several steps"
    assert Counter(waits)["number", "search.py:note"] == len(looks) - 1
    assert {reason for reason, place in waits if place.startswith("search.py")} == {"number"}


def test_steps_of_the_attack_on_smoothing_do_not_wait(network, pixels):
    def waits(steps):
        with pretended() as found:
            base = BatchedClassifier(from_network(network.to("cuda")), batch_size=16)
            images = torch.from_numpy(pixels).to("cuda")
            labels, radius = network(images).argmax(1), torch.ones(IMAGES, device="cuda")
            noise = draws_of(images, device="cuda")
            del found[:]
            pgd_of_smoothed(base, images, labels, radius, steps=steps, gradient_draws=4, sigma=0.1, noise=noise)
            return found

    assert waits(3) == []


def test_draws_of_noise_wait_only_to_learn_which_images_go_on(network, pixels, labels):
    passes = []
    hook = network.register_forward_hook(lambda _network, given, _logits: passes.append(len(given[0])))
    with pretended() as waits:
        attacked = from_network(network.to("cuda"))
        del waits[:]
        settings = KINDS["certified"].parse({"smoothing": CERTIFY | {"sandwich": None}})
        KINDS["certified"].load()(attacked, pixels, labels, settings=settings, seeds=seeds_of(pixels))
        of_smoothing, counted = Counter(place for _, place in waits), len(passes)
        del waits[:], passes[:]
        kind, settings = neighbourhood_case(family="linf_ball", eps=0.3)
        KINDS[kind].load()(attacked, pixels, labels, settings=KINDS[kind].parse(settings), seeds=seeds_of(pixels))
        of_tests = Counter(place for _, place in waits)
    hook.remove()
    assert of_smoothing["smoothing.py:count_votes"] < counted
    # Whether all logits were numbers is asked once, at the end.
    assert of_smoothing.pop("passes.py:finite") == 1
    places = {"batch.py:measure_batch", "draws.py:of", "smoothing.py:certify", "smoothing.py:count_votes"}
    assert of_smoothing.keys() == places
    assert not any("perturbations" in place or "gradient_ascent" in place for place in of_tests)
    # Whether anything changed; where it did, which images go on, and the fewest changes of these.
    assert of_tests["neighbourhoods.py:run_tests"] <= 3 * len(passes)
