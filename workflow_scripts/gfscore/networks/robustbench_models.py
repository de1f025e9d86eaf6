"""Classifiers of the source `robustbench`: RobustBench's model definitions with checkpoints that are on disk.

RobustBench's `load_model` downloads, unpickles and adapts checkpoints. Here its adaptations (prefixes, renamed layers,
members of ensembles) run unchanged, but reading is left to the caller and downloads are disabled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks import leaderboard
from gfscore.networks.checkpoints import changed_by_loading
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.compatibility import import_robustbench
from gfscore.networks.outputs import classes_given

if TYPE_CHECKING:
    from torch import nn

CLASSES = {"cifar10": 10, "cifar100": 100, "imagenet": 1000}
"""Number of classes by dataset."""

CONSTANTS = {"mu", "sigma", "mean", "std", "num_batches_tracked"}
"""Last parts of the names of buffers that a definition sets itself, so that a checkpoint may lack them."""


def files_of(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Files of a checkpoint: mappings with path, url and sha256 (hex, or None), one per member of an ensemble.

    `settings` as from `leaderboard.entry`; its `sha256` is a digest, a list of digests in the order of the members, or
    None. Raises InputError for an unsupported model and for a wrong number of digests.
    """
    key = settings["dataset"], settings["threat"], settings["model"]
    paths = leaderboard.checkpoint_files(*key, folder=settings["path"])
    digests = settings.get("sha256")
    digests = digests if isinstance(digests, list) else [digests] * (1 if digests else len(paths))
    if len(digests) != len(paths):
        raise InputError(
            f"sha256 of {'/'.join(key)}: {len(digests)} digests for {len(paths)} files; list one per file, in order, "
            "or null to record them at the first download"
        )
    # ASSUME: these URLs, from the tables of the package, are still valid; none was tested here.
    urls = leaderboard.require_supported(*key).files
    return [{"path": p, "url": url, "sha256": d} for p, url, d in zip(paths, urls, digests, strict=True)]


def open_classifier(
    settings: Mapping[str, Any],
    path: Path | str,
    *,
    image_shape: tuple[int, int, int],
    classes: int | None,
    threads: int = 1,
) -> Classifier:
    """Classifier of the leaderboard with gradients; normalisation is part of RobustBench's definition.

    `settings` as from `leaderboard.entry`, `path` the first file of its checkpoint in RobustBench's folder layout;
    `image_shape` (C, H, W) and `classes` K are those of the data. Raises InputError as `load_network` does, and for
    images or classes that do not fit the network.
    """
    from gfscore.networks.checkpoints import load_checkpoint

    key = {name: settings[name] for name in ("dataset", "threat", "model")}
    where = f"RobustBench {'/'.join(key.values())}"
    known = CLASSES[key["dataset"]]
    if classes is not None and classes != known:
        raise InputError(f"{where}: made for {known} classes, but the data declare {classes}; correct models_of")
    network = load_network(Path(path).parents[2], **key, read=lambda file: load_checkpoint(settings, file))
    architecture = leaderboard.require_supported(**key).architecture
    classifier = from_network(network, architecture=architecture, image_shape=image_shape, classes=known)
    if key["dataset"] != "imagenet" and tuple(image_shape) != (3, 32, 32):
        # Some definitions accept other sizes, but with poor accuracy.
        raise InputError(f"{where}: made for images of shape (3, 32, 32), got {tuple(image_shape)}; correct models_of")
    classes_given(classifier.logits, image_shape, where=where)
    return classifier


def load_network(
    folder: Path | str, *, dataset: str, threat: str, model: str, read: Callable[[Path], Any]
) -> nn.Module:
    """Published classifier in eval mode on the CPU, a torch module from (n, 3, H, W) in [0, 1] to logits (n, K).

    `folder` holds the files of `leaderboard.checkpoint_files`; `read` returns the content of one, tensors in nested
    mappings. No network access. Raises InputError for an unsupported model, a missing file, and weights that are
    incomplete or do not fit the definition. Source: RobustBench (Croce et al. 2021), robustbench 1.1.1,
    utils.load_model.
    """
    files = leaderboard.checkpoint_files(dataset, threat, model, folder=folder)
    for file in files:
        if not file.is_file():
            raise InputError(
                f"{file}: missing, the checkpoint of {dataset}/{threat}/{model}; run `snakemake --cores 1 inputs` on a "
                "machine with internet, or place the file there by hand"
            )
    try:
        return assemble(folder, dataset=dataset, threat=threat, model=model, read=read)
    except InputError:
        raise
    # Files that do not fit the definition raise errors of many types.
    except Exception as error:
        named = ", ".join(str(file) for file in files)
        raise InputError(
            f"{named}: does not fit RobustBench's definition of {dataset}/{threat}/{model} ({_condensed(error)}); "
            "check that the file belongs to this model, or delete it to download it again"
        ) from error


def assemble(folder: Path | str, *, dataset: str, threat: str, model: str, read: Callable[[Path], Any]) -> nn.Module:
    """As `load_network`, but without checks of the files and with the errors of torch."""
    import_robustbench()
    from robustbench.utils import load_model

    only_file = Path(folder, dataset, threat, f"{model}.pt")
    name = name_in_timm(dataset, threat, model)
    if name:
        with _refusing_conversions():
            return _from_timm(name, read(only_file), CLASSES[dataset]).eval()
    with (
        _published_loading(read),
        _refusing_conversions(),
        _constants_on_the_cpu(),
        _pretrained_from(lambda: read(only_file)),
    ):
        return load_model(model, model_dir=folder, dataset=dataset, threat_model=threat).eval()


def define(*, dataset: str, threat: str, model: str) -> nn.Module:
    """RobustBench's definition of a model, a torch module with arbitrary weights."""
    import_robustbench()
    from robustbench.model_zoo import model_dicts
    from robustbench.model_zoo.enums import BenchmarkDataset, ThreatModel
    from torchvision.models import resnet50

    name = name_in_timm(dataset, threat, model)
    if name:
        import timm

        return timm.create_model(name, num_classes=CLASSES[dataset], pretrained=False)
    with _constants_on_the_cpu(), _pretrained_from(lambda: resnet50().state_dict()):
        return model_dicts[BenchmarkDataset(dataset)][ThreatModel(threat)][model]["model"]()


def name_in_timm(dataset: str, threat: str, model: str) -> str | None:
    """Name under which RobustBench registers a model with timm, None for a model that it builds itself.

    RobustBench's tables contain outdated names; its load_model forms this one.
    """
    import_robustbench()
    import timm

    name = f"{model}_{dataset}_{threat}".lower().replace("-", "_")
    return name if timm.is_model(name) else None


def _from_timm(name, checkpoint, classes):
    import timm

    # timm's conversions and strict comparison are applied to this checkpoint instead of a download.
    overlay = {"state_dict": checkpoint}
    return timm.create_model(name, num_classes=classes, pretrained=True, pretrained_cfg_overlay=overlay)


@contextmanager
def _published_loading(read):
    import torch
    from robustbench import utils

    published = utils._safe_load_state_dict

    def load_completely(network: Any, name: str, state: dict[str, Any], dataset: Any) -> Any:
        # RobustBench accepts any missing weights of an ImageNet model without normalisation constants, which would
        # leave random weights.
        absent = [key for key in network.state_dict() if key not in state and key.split(".")[-1] not in CONSTANTS]
        if absent:
            raise RuntimeError(f"{len(absent)} weights are missing, the first is {absent[0]}")
        return published(network, name, state, dataset)

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
def _refusing_conversions():
    # Refuses weights that loading would convert; RobustBench, timm and torchvision all use this method of torch.
    import torch

    published = torch.nn.Module.load_state_dict

    def load(network: Any, state: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        changed = changed_by_loading(state, network.state_dict())
        if changed:
            kind = str(state[changed[0]].dtype).removeprefix("torch.")
            raise RuntimeError(f"{len(changed)} weights are no real numbers, the first is {changed[0]} ({kind})")
        return published(network, state, *arguments, **options)

    with _replaced(torch.nn.Module, load_state_dict=load):
        yield


@contextmanager
def _pretrained_from(weights):
    # The ImageNet baseline is torchvision's ResNet-50, whose definition would download its weights.
    from torchvision.models import _api

    with _replaced(_api, load_state_dict_from_url=lambda *_, **__: weights()):
        yield


@contextmanager
def _constants_on_the_cpu():
    # One definition (BiT, in Bai2023Improving) moves two normalisation constants to a GPU when it is built, and to the
    # device of the images when it is used; without a GPU the first move is skipped.
    import torch

    if torch.cuda.is_available():
        yield
    else:
        with _replaced(torch.Tensor, cuda=lambda tensor: tensor):
            yield


@contextmanager
def _replaced(owner, **attributes):
    before = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def _condensed(error):
    # torch describes the mismatch of weights below its first line.
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else f"{text[:300]}..."
