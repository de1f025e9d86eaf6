"""Trainings: what they learn, that they repeat, and how their networks are described."""

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.attacks.batch_pgd import survivors
from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images
from gfscore.networks.training_settings import Attack
from gfscore.training import loop
from gfscore.training.loop import describe_training, train_classifier, training_settings
from helpers.trainings import small_training

NAMES = [str(digit) for digit in range(10)]


def train(images, labels, method, **changes):
    return train_classifier(images, labels, small_training(method, **changes), classes=int(labels.max()) + 1)


def digits(split):
    return open_images({"source": "digits", "split": split, "test_share": 0.5, "seed": 0}, classes=NAMES)


def test_another_seed_gives_other_weights(colours):
    first, second = (train(*colours, "ERM", epochs=1, seed=seed) for seed in (1, 2))
    assert not torch.equal(first[0].weight, second[0].weight)


def test_the_seed_also_determines_order_and_perturbations(colours, monkeypatch):
    build = loop.build_network
    monkeypatch.setattr(loop, "build_network", lambda name, *, seed, **rest: build(name, seed=0, **rest))
    first, second = (train(*colours, "PGD", epochs=1, seed=seed) for seed in (1, 2))
    assert not torch.equal(first[0].weight, second[0].weight)


def test_training_leaves_torch_as_it_was(colours):
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    train(*colours, "PGD", epochs=1)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.rand(1), expected)


def test_adversarial_training_resists_what_fools_plain_training():
    train_set, test_set = digits("train"), digits("test")
    attack = {"norm": "linf", "eps": 0.15, "step_size": 0.03, "steps": 10, "restarts": 1, "seed": 0}
    robust = {}
    for method in ("ERM", "PGD"):
        settings = small_training(method, arguments={"width": 8}, epochs=8, batch_size=64)
        network = train_classifier(*load_all(train_set), settings, classes=10)
        described = describe_training(network, train_set, test_set, settings=settings, attack=Attack(**attack))
        survived = survivors(network, test_set.full_batches(256), test_set.labels, **attack)
        assert described["robust_accuracy"] == survived.mean()
        counts = np.bincount(test_set.labels)
        assert np.dot(described["robust_accuracy_per_class"], counts) / counts.sum() == pytest.approx(survived.mean())
        assert described["clean_accuracy"] > 0.85
        assert described["robust_accuracy_attack"] == "PGD-10, l_inf 0.15, test split"
        robust[method] = described["robust_accuracy"]
    assert robust["PGD"] > robust["ERM"] + 0.15


class Small(nn.Module):
    """A network that has memory for so many images at a time, and remembers the sizes that it took."""

    def __init__(self, network, most, message="CUDA out of memory"):
        super().__init__()
        self.network, self.most, self.message, self.sizes = network, most, message, []

    def forward(self, images):
        if len(images) > self.most:
            raise torch.OutOfMemoryError(self.message) if "memory" in self.message else RuntimeError(self.message)
        self.sizes.append(len(images))
        return self.network(images)


def test_a_trained_network_is_attacked_by_as_many_images_as_fit_into_memory(capsys):
    images = digits("test")
    settings = small_training("ERM", epochs=3, batch_size=64)
    network = train_classifier(*load_all(images), settings, classes=10)
    attack = Attack(eps=0.05, step_size=0.02, steps=3)
    whole, small = Small(network, 1000), Small(network, 40)
    expected, found = (
        describe_training(one, images, images, settings=settings, attack=attack) for one in (whole, small)
    )
    assert found == expected and 0 < found["robust_accuracy"] < found["clean_accuracy"]
    # 256, 128 and 64 are too many.
    assert capsys.readouterr().out.count("out of memory: attacked") == 3
    assert max(whole.sizes) == 256
    assert all(value.requires_grad for value in small.parameters())


@pytest.mark.parametrize(
    ("most", "message", "error", "halvings"),
    [(4, "wrong shape", RuntimeError, 0), (0, "CUDA out of memory", torch.OutOfMemoryError, 8)],
)
def test_what_is_no_lack_of_memory_or_cannot_be_halved_stays_an_error(most, message, error, halvings, capsys):
    images, failing = digits("test").select(np.arange(20)), Small(nn.Flatten(), most, message)
    attack = Attack(eps=0.05, step_size=0.02, steps=1)
    with pytest.raises(error, match=message):
        describe_training(failing, images, images, settings=small_training("ERM"), attack=attack)
    assert capsys.readouterr().out.count("out of memory: attacked") == halvings


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "PDG"},
        {"coefficients": {"beta": 1, "gamma": 2}},
        {"threat": {"norm": "linf", "eps": 0.1, "seed": 1}},
        {"threat": None},
        {"architecture": "resnet"},
    ],
)
def test_settings_that_no_method_has_are_refused(changes):
    with pytest.raises(ValueError, match="validation error"):
        training_settings(small_training("TRADES").model_dump() | changes)


def test_bad_arguments_are_named(colours):
    with pytest.raises(InputError, match="no argument 'widht'; it knows width, pool"):
        train(*colours, "ERM", arguments={"widht": 3})


def test_a_last_batch_of_one_image_is_no_batch_of_its_own():
    assert [loop._batch_sizes(images, 4) for images in (1, 4, 9, 10)] == [[1], [4], [4, 5], [4, 4, 2]]
    assert loop._batch_sizes(3, 1) == [1, 1, 1]
    images = np.random.default_rng(0).random((9, 3, 32, 32)).astype(np.float32)
    # Its last feature map is a single pixel, of which batch normalisation takes no single image.
    network = train(
        images, np.arange(9) % 2, "ERM", architecture="timm/mobilenetv2_050", arguments={}, epochs=1, batch_size=4
    )
    assert network(torch.from_numpy(images[:1])).isfinite().all()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_missing_gpu_is_an_error_and_not_a_slow_training(colours):
    with pytest.raises(InputError, match=r"finds no CUDA device; run this .* device: cpu"):
        train(*colours, "ERM", device="cuda")
    with pytest.raises(InputError, match="finds no CUDA device"):
        describe_training(nn.Linear(1, 1), None, None, settings=small_training("ERM", device="cuda"), attack=Attack())


def test_prl_needs_a_tail_of_at_least_one_sample(colours):
    with pytest.raises(InputError, match="rho \\* samples >= 1"):
        train(*colours, "PRL", coefficients={"rho": 0.1, "samples": 5})
