"""A network of the timm collection by name, with weights from a local file (source `timm`)."""

from gfscore.networks.checkpoint import with_weights
from gfscore.networks.timm_networks import build_timm


def open_classifier(settings, path, *, image_shape, classes, threads):
    """Classifier of timm's architecture `architecture`, made for C channels and K classes; nothing is downloaded.

    `settings` as for the source `torch`, the architecture being timm's name and `arguments` those of
    timm.create_model (img_size of a transformer). Raises InputError for an unknown name, with the nearest known one,
    for an argument that is not the user's to give, and for weights that do not fit.
    """
    del image_shape, threads
    return with_weights(build_timm(settings, path, classes=classes), settings, path)
