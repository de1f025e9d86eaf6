"""Generators of images conditional on the class, in files of users: opened as models of the same formats are."""

from pathlib import Path

from torch.nn import Module

from gfscore.networks.callables import build_architecture
from gfscore.networks.model_source import Settings
from gfscore.networks.programs import open_program
from gfscore.networks.torch_models import with_weights


def open_generator(settings: Settings, path: Path | str) -> Module:
    """Generator in a file: weights of an architecture, or a program of torch.

    Parameters
    ----------
    settings : mapping
        Settings of the source generator_file: `architecture` and `arguments` (None for a program), `device`, and the
        settings of a model of the same format.
    path : Path or str
        The file, whose digest must have been compared before.

    Returns
    -------
    Module
        From latents (n, ...) float32 and classes, (n,) int64 or (n, K) float32, to images, on its device.

    Raises
    ------
    InputError
        Naming the file, as models of the same formats do.
    """
    if settings["architecture"]:
        network = build_architecture(settings["architecture"], settings["arguments"])
        network = with_weights(network, settings, path)
    else:
        network = open_program(settings, path)
    return network.to(settings["device"])
