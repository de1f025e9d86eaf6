"""Small trainings by any method, with the defaults of its declaration."""

from gfscore.networks.sources.trained import Trained
from gfscore.networks.training_settings import training_methods
from gfscore.training.loop import training_settings

QUICK = {"architecture": "small_convnet", "arguments": {"width": 4, "pool": 2}, "epochs": 2, "batch_size": 16}
QUICK |= {"learning_rate": 0.01, "weight_decay": 1e-4, "device": "cpu"}


def small_training(method, *, eps=0.15, coefficients=None, **changes):
    """Settings of a small training; perturbations of radius `eps`, of three steps where the method takes several.

    Where images are held out, a quarter of them, since the defaults are shares of thousands.
    """
    settings = training_methods()[method].settings.model_fields
    coefficients = dict(coefficients or {})
    if "held_out" in settings["coefficients"].annotation.model_fields:
        coefficients = {"held_out": 0.25} | coefficients
    training = QUICK | {"method": method, "coefficients": coefficients} | changes
    if "steps" in getattr(settings["threat"].annotation, "model_fields", {}):
        training = {"threat": {"steps": 3, "step_size": eps / 3}} | training
    entry = {"train_on": "train", "training": training, "attack": {"eps": eps}}
    return training_settings(Trained.model_validate(entry).training.model_dump())
