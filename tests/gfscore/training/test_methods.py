"""The contract of training methods, for every one that is registered."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from gfscore.networks.architectures import build_network
from gfscore.networks.trained import TrainingProgress
from gfscore.networks.training_settings import training_methods
from gfscore.training.loop import train_classifier
from gfscore.training.objectives import Setup, make_objective, threat_of
from gfscore.training.recipe import Trainer
from helpers.trainings import small_training

pytestmark = pytest.mark.seconds(10)

METHODS = training_methods()
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


def train(images, labels, settings, **options):
    return train_classifier(images, labels, settings, classes=int(labels.max()) + 1, **options)


def weights(network):
    return [value.clone() for value in network.state_dict().values()]


def equal(first, second):
    return all(torch.equal(one, other) for one, other in zip(weights(first), weights(second), strict=True))


@EVERY_METHOD
def test_a_declaration_says_what_its_settings_are(method):
    declared = METHODS[method]
    assert declared.name == method
    assert declared.settings.model_fields["method"].annotation.__args__ == (method,)
    assert declared.trains_on
    assert not declared.baseline or not METHODS[declared.baseline].baseline


@EVERY_METHOD
def test_settings_are_closed_and_described(method):
    settings = small_training(method)
    for change in ({"zzz": 1}, {"coefficients": settings.coefficients.model_dump() | {"zzz": 1}}, {"threat": {"z": 1}}):
        with pytest.raises(ValidationError):
            METHODS[method].settings.model_validate(settings.model_dump() | change)
    for name, field in METHODS[method].settings.model_fields["coefficients"].annotation.model_fields.items():
        assert field.description, name


@EVERY_METHOD
def test_the_loss_is_finite_and_has_a_gradient(method, colours):
    images, labels = (torch.from_numpy(array[:16]) for array in colours)
    network = build_network("small_convnet", in_channels=3, image_size=(8, 16), classes=3, width=4)
    settings = small_training(method)
    setup = Setup(3, threat_of(settings.threat), torch.Generator().manual_seed(0), network, epochs=4)
    loss = make_objective(settings, setup)(network, images, labels)
    loss.backward()
    assert loss.ndim == 0 and torch.isfinite(loss)
    for value in network.parameters():
        assert torch.isfinite(value.grad).all()
    assert any(value.grad.abs().sum() > 0 for value in network.parameters())


@EVERY_METHOD
def test_a_method_learns(method, colours):
    network = train(*colours, small_training(method, epochs=6))
    assert not network.training
    with torch.no_grad():
        predicted = network(torch.from_numpy(colours[0])).argmax(1).numpy()
    assert np.mean(predicted == colours[1]) > 0.9


class KilledError(Exception):
    """Stands for a signal that ends the process."""


@EVERY_METHOD
def test_a_training_that_is_interrupted_ends_in_the_weights_of_another(method, colours, tmp_path, monkeypatch):
    # In the last of three epochs, with 6 steps each where images are held out, else 8: every warm-up is over.
    killed_at = 18
    settings = small_training(method, epochs=3)
    whole = train(*colours, settings)
    step = Trainer.step
    taken = []

    def killed(trainer, *batch):
        taken.append(1)
        if len(taken) == killed_at:
            raise KilledError
        step(trainer, *batch)

    def resumed():
        return train(*colours, settings, progress=TrainingProgress(tmp_path / "epoch.pt", [method], every_s=0))

    monkeypatch.setattr(Trainer, "step", killed)
    with pytest.raises(KilledError):
        resumed()
    assert equal(resumed(), whole)
    assert len(taken) > killed_at
