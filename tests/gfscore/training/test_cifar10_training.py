"""The seven classifiers of the audit cifar10-training, made tiny: the real ones need CIFAR-10 and a GPU."""

import numpy as np
import pytest
import torch

from gfscore.images.image_set import from_arrays
from gfscore.networks.training_settings import Attack
from gfscore.training.loop import describe_training, train_classifier, training_settings
from helpers.configurations import shipped_configuration

pytestmark = pytest.mark.seconds(20)

CONFIG = shipped_configuration()
ENTRIES = {
    name: CONFIG["models"]["cifar10-training"][threat][name]
    for _, threat, name in (model.split("/") for model in CONFIG["audits"]["cifar10-training"]["models"])
}

SMALL = {
    "arguments": {"width": 16, "blocks": 1},
    "epochs": 8,
    "batch_size": 6,
    "learning_rate": 0.004,
    "device": "cpu",
}


def fewer(settings, **values):
    """The settings with smaller values for those keys that they have."""
    return settings and settings | {key: value for key, value in values.items() if key in settings}


@pytest.fixture(scope="module")
def colours():
    """48 images 3x32x32 of three classes, each brighter in one channel than the others can become."""
    rng = np.random.default_rng(0)
    labels = np.arange(48, dtype=np.int32) % 3
    images = rng.uniform(0, 0.4, (48, 3, 32, 32)).astype(np.float32)
    images[np.arange(48), labels] += 0.5
    return images, labels


def test_the_audit_has_the_seven_methods_of_the_paper():
    methods = [entry["training"]["method"] for entry in ENTRIES.values()]
    assert methods == ["ERM", "ERM_DA", "FGSM", "PGD", "TRADES", "MART", "PRL"]
    assert {entry["training"]["device"] for entry in ENTRIES.values()} == {"cuda"}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_shipped_entry_trains_a_tiny_network_on_images_of_that_size(name, colours):
    training = ENTRIES[name]["training"]
    chosen = training | SMALL | {"threat": fewer(training["threat"], steps=2)}
    chosen["coefficients"] = fewer(training["coefficients"], rho=0.5, samples=2)
    settings = training_settings(chosen)
    network = train_classifier(*colours, settings, classes=3)
    images = from_arrays(*colours, sample_id=np.arange(48), preprocessing="none")
    attack = Attack.model_validate(ENTRIES[name]["attack"] | {"steps": 2})
    described = describe_training(network, images, images, settings=settings, attack=attack)
    assert all(torch.isfinite(value).all() for value in network.parameters())
    assert described["clean_accuracy"] == described["train_accuracy"] > 0.6
    assert described["robust_accuracy_attack"] == "PGD-2, l_inf 0.0313725, test split"
    assert described["device"] == "cpu"
