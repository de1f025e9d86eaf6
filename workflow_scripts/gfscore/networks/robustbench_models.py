"""Classifiers of the source `robustbench`: RobustBench's model definitions with checkpoints that are on disk.

RobustBench's `load_model` downloads checkpoints, unpickles them, and adapts them to the definitions (prefixes, renamed
layers, members of ensembles). Here it runs unchanged, but reads by a function of the caller and downloads nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.core.names import shortened
from gfscore.networks import leaderboard
from gfscore.networks.checkpoints import Content, load_checkpoint
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.compatibility import import_robustbench, import_timm
from gfscore.networks.model_source import Settings
from gfscore.networks.outputs import class_count

CLASSES = {"cifar10": 10, "cifar100": 100, "imagenet": 1000}
"""Number of classes by dataset."""

CONSTANTS = {"mu", "sigma", "mean", "std", "num_batches_tracked"}
"""Endings of the names of buffers that a definition sets itself, so that a checkpoint may lack them."""

Reader = Callable[[Path], Content]
"""From the file of a checkpoint to its content: tensors in nested mappings."""


def open_classifier(
    settings: Settings,
    path: Path | str,
    *,
    image_shape: tuple[int, int, int],
    classes: int | None,
    threads: int = 1,
) -> Classifier:
    """Classifier of the leaderboard with gradients; normalisation is part of RobustBench's definition.

    Parameters
    ----------
    settings : mapping
        Entry of the model; see `leaderboard.entry`.
    path : Path or str
        The first file of its checkpoint in RobustBench's folder layout.
    image_shape : tuple of int
        Shape (C, H, W) of the data.
    classes : int or None
        Number of classes K of the data.
    threads
        Not used.

    Raises
    ------
    InputError
        See `load_network`; also for images or classes that do not fit the network.
    """
    dataset, threat, model = settings["dataset"], settings["threat"], settings["model"]
    where = f"RobustBench {dataset}/{threat}/{model}"
    expected = CLASSES[dataset]
    if classes is not None and classes != expected:
        raise InputError(f"{where}: made for {expected} classes, but the data declare {classes}; correct models_of")

    def read(file: Path) -> Content:
        return load_checkpoint(settings, file)

    network = load_network(Path(path).parents[2], dataset=dataset, threat=threat, model=model, read=read)
    architecture = leaderboard.require_supported(dataset, threat, model).architecture
    classifier = from_network(network, architecture=architecture, image_shape=image_shape, classes=expected)
    if dataset != "imagenet" and tuple(image_shape) != (3, 32, 32):
        # Some definitions accept other sizes, but with poor accuracy.
        raise InputError(f"{where}: made for images of shape (3, 32, 32), got {tuple(image_shape)}; correct models_of")
    class_count(classifier.logits, image_shape, where=where)
    return classifier


def load_network(folder: Path | str, *, dataset: str, threat: str, model: str, read: Reader) -> nn.Module:
    """Published classifier in eval mode on the CPU, without network access.

    Parameters
    ----------
    folder : Path or str
        Holds the files of `leaderboard.checkpoint_files`.
    dataset, threat, model : str
        See `leaderboard.require_supported`.
    read : callable
        From one of these files to its content.

    Returns
    -------
    torch.nn.Module
        From images (n, 3, H, W) in [0, 1] to logits (n, K).

    Raises
    ------
    InputError
        For an unsupported model, a missing file, and weights that are incomplete or do not fit the definition.

    References
    ----------
    RobustBench (Croce et al. 2021), robustbench 1.1.1, utils.load_model.
    """
    files = leaderboard.checkpoint_files(dataset, threat, model, folder=folder)
    for file in files:
        if not file.is_file():
            raise InputError(
                f"{file}: missing, the checkpoint of {dataset}/{threat}/{model}; run `make audit ARGS=inputs` on a "
                "machine with internet, or place the file there by hand"
            )
    try:
        return load_unchecked(folder, dataset=dataset, threat=threat, model=model, read=read)
    except InputError:
        raise
    # Files that do not fit the definition raise errors of many types.
    except Exception as error:
        paths = ", ".join(map(str, files))
        # torch describes the mismatch of weights below its first line.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"{paths}: does not fit RobustBench's definition of {dataset}/{threat}/{model} ({shortened(reason, 300)}); "
            "check that the file belongs to this model, or delete it to download it again"
        ) from error


def load_unchecked(folder: Path | str, *, dataset: str, threat: str, model: str, read: Reader) -> nn.Module:
    """Network of RobustBench, with unchecked files and the errors of torch and RobustBench; see `load_network`."""
    import_robustbench()
    # Only now, since RobustBench needs mending before it can be imported.
    from robustbench.utils import load_model

    # Of all models but ensembles.
    only_file = Path(folder, dataset, threat, f"{model}.pt")
    timm_name = name_in_timm(dataset, threat, model)
    if timm_name:
        # timm's conversions and strict comparison are applied to this checkpoint instead of a download.
        network = import_timm().create_model(
            timm_name,
            num_classes=CLASSES[dataset],
            pretrained=True,
            pretrained_cfg_overlay={"state_dict": read(only_file)},
        )
        return network.eval()
    with (
        _checkpoints_read_by(read),
        _constants_on_the_cpu(),
        _torchvision_weights_from(lambda: read(only_file)),
    ):
        return load_model(model, model_dir=folder, dataset=dataset, threat_model=threat).eval()


def define(*, dataset: str, threat: str, model: str) -> nn.Module:
    """RobustBench's definition of a model, a torch module with arbitrary weights."""
    import_robustbench()
    # Only now, as in `load_unchecked`.
    from robustbench.model_zoo import model_dicts
    from robustbench.model_zoo.enums import BenchmarkDataset, ThreatModel
    from torchvision.models import resnet50

    timm_name = name_in_timm(dataset, threat, model)
    if timm_name:
        return import_timm().create_model(timm_name, num_classes=CLASSES[dataset], pretrained=False)
    models = model_dicts[BenchmarkDataset(dataset)][ThreatModel(threat)]
    with _constants_on_the_cpu(), _torchvision_weights_from(lambda: resnet50().state_dict()):
        return models[model]["model"]()


def name_in_timm(dataset: str, threat: str, model: str) -> str | None:
    """Name under which RobustBench registers a model with timm, None for a model that it builds itself.

    It is formed as in RobustBench's load_model, since the tables of RobustBench contain outdated names.
    """
    import_robustbench()
    name = f"{model}_{dataset}_{threat}".lower().replace("-", "_")
    return name if import_timm().is_model(name) else None


# Replacements in the libraries while they load


@contextmanager
def _checkpoints_read_by(read: Reader) -> Iterator[None]:
    # load_model reads by the caller's function, downloads nothing, and accepts no missing weights.
    from robustbench import utils

    robustbench_load_state_dict = utils._safe_load_state_dict

    def load_completely(network: nn.Module, name: str, state: dict[str, Any], dataset: object) -> nn.Module:
        # RobustBench accepts any missing weights of an ImageNet model without normalisation constants, which would
        # leave random weights.
        missing = []
        for key in network.state_dict():
            if key not in state and key.rpartition(".")[2] not in CONSTANTS:
                missing.append(key)
        if missing:
            raise RuntimeError(f"{len(missing)} weights are missing, the first is {missing[0]}")
        return robustbench_load_state_dict(network, name, state, dataset)

    with _replaced(
        utils,
        # The two attributes of torch that load_model of this release uses.
        torch=SimpleNamespace(load=lambda path, **_: read(Path(path)), device=torch.device),
        # The reader reports missing files.
        download_gdrive_new=lambda *_: None,
        _safe_load_state_dict=load_completely,
    ):
        yield


@contextmanager
def _torchvision_weights_from(weights: Callable[[], Content]) -> Iterator[None]:
    # The ImageNet baseline is torchvision's ResNet-50, whose definition would download its weights.
    from torchvision.models import _api

    with _replaced(_api, load_state_dict_from_url=lambda *_, **__: weights()):
        yield


@contextmanager
def _constants_on_the_cpu() -> Iterator[None]:
    # One definition (BiT, in Bai2023Improving) moves two normalisation constants to a GPU when it is built, and to the
    # device of the images when it is used; without a GPU the first move is skipped.
    if torch.cuda.is_available():
        yield
    else:
        with _replaced(torch.Tensor, cuda=lambda tensor: tensor):
            yield


@contextmanager
def _replaced(owner: object, **attributes: object) -> Iterator[None]:
    originals = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in originals.items():
            setattr(owner, name, value)
