"""Models in files and folders, and networks of timm and torchvision by name: what each is, before it is opened.

timm, torchvision and huggingface_hub are imported by the models that need them: an audit without them runs without.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError, few
from gfscore.core.files import LOGIT_ENDINGS
from gfscore.core.labels import imagenet_names
from gfscore.core.settings import PlainSettings
from gfscore.networks.architecture_files import PACKAGE
from gfscore.networks.checkpoints import load_checkpoint, weights_of
from gfscore.networks.compatibility import import_timm, import_torchvision
from gfscore.networks.programs import KINDS, kind_of_program, require_usable
from gfscore.networks.sources.transformers import CONFIGURATION, WEIGHT_FILES
from gfscore.networks.timm_models import RESERVED
from gfscore.workflow.new_audit.logit_files import find_logits
from gfscore.workflow.new_audit.new_model import (
    NewModel,
    Resize,
    StatedInput,
    input_of_timm,
    input_of_transformers,
    pixels_of,
    pixels_of_graph,
    read_json_file,
)
from gfscore.workflow.new_audit.output_names import names_in_metadata, names_in_structure
from gfscore.workflow.new_audit.paths import PROGRAMS, model_paths, require_model
from gfscore.workflow.new_audit.request import Request, module_name, name_from

FORMS = "timm:NAME, torchvision:NAME, or FILE.py:FUNCTION"


def find_models(request: Request) -> list[NewModel]:
    """Models of a request, in its order; models of a folder in the order of their names.

    Parameters
    ----------
    request : Request
        Names of files, folders and networks, with the options on how weights are opened.

    Returns
    -------
    list of NewModel
        What their files say of them; no network is opened.

    Raises
    ------
    InputError
        Naming the file and the remedy, for what is no model, for weights without an architecture, and for code that
        the request does not trust.
    """
    models = []
    for name in request.models:
        for path in model_paths(name):
            models += _models_of(path, request)
    names = [model.name for model in models]
    for model in models:
        if names.count(model.name) > 1:
            raise InputError(f"{model.path}: two models would be called {model.name}; rename one of the files")
    return models


def _models_of(name: str, request: Request) -> list[NewModel]:
    require_model(name)
    path = Path(name)
    if path.is_dir():
        return [_hub(path)]
    if not path.is_file():
        return [find_named(name)]
    if path.name.endswith(".onnx"):
        return [_onnx(path)]
    if path.name.endswith(LOGIT_ENDINGS):
        return find_logits(path)
    if kind_of_program(path) is not None or path.suffix in PROGRAMS:
        return [_program(path, request)]
    return [_weights(path, request)]


# ---- files ----


def _onnx(path: Path) -> NewModel:
    # Imported late: few models need onnx.
    from gfscore.networks.onnx_content import inputs_of, read_model

    model = read_model(path)
    graph = model.with_data_embedded()
    words = "ONNX graph"
    if model.data:
        words += f", weights in {few(sorted(model.data))}"

    # Shape (C, H, W) of the images, where the graph states it: a side that is not stated is 0.
    shape = None
    inputs = inputs_of(graph)
    sizes = []
    if len(inputs) == 1:
        sizes = [int(dimension.dim_value) for dimension in inputs[0].type.tensor_type.shape.dim][1:]
    if len(sizes) == 3 and 0 not in sizes:
        first, second, third = sizes
        channels_last = first not in (1, 3) and third in (1, 3)
        shape = (third, first, second) if channels_last else (first, second, third)

    metadata = {entry.key: entry.value for entry in graph.metadata_props}
    return NewModel(
        name=name_from(path.stem),
        entry={"source": "onnx", "path": str(path)},
        words=words,
        input=StatedInput(shape, pixels_of_graph(graph)),
        labels=names_in_metadata(metadata),
    )


def _program(path: Path, request: Request) -> NewModel:
    kind = require_usable(path)
    if not request.trust_code:
        raise InputError(
            f"{path}: is {KINDS[kind]}, code that would run with your rights; if you trust it, add --trust-code (make: "
            "TRUST_CODE=1)"
        )
    entry = {"source": "program", "path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}
    return NewModel(name=name_from(path.stem), entry=entry, words=KINDS[kind])


def _weights(path: Path, request: Request) -> NewModel:
    name = name_from(path.stem)
    if request.architecture is None:
        if path.name in WEIGHT_FILES and path.with_name(CONFIGURATION).is_file():
            return _hub(path.parent)
        # What is no file of weights alone is refused as such.
        load_checkpoint({}, path)
        raise InputError(
            f"{path}: holds weights, not the network that they belong to; add --architecture (make: ARCHITECTURE=), "
            f"{FORMS}"
        )
    library, _, network = request.architecture.rpartition(":")
    if library == "timm":
        pretrained = _pretrained_of_timm(network)
        stated = StatedInput()
        if pretrained:
            stated = input_of_timm(pretrained.to_dict(), f"timm's pretrained_cfg of {network}")
            if not pretrained.fixed_input_size:
                # Weights of one's own may be for images of another size than those that timm publishes.
                stated = replace(stated, shape=None)
        entry = {"path": str(path), "source": "timm", "architecture": network}
        return NewModel(name=name, entry=entry, words=f"timm's {network}", input=stated)
    if library == "torchvision":
        entry = {"path": str(path), "source": "torch", "architecture": f"torchvision.models:{network}"}
        arguments = _arguments_of_torchvision(network, path)
        return NewModel(name=name, entry={**entry, **arguments}, words=f"torchvision's {network}")
    if not library.endswith(".py"):
        raise InputError(f"--architecture {request.architecture}: is none of {FORMS}")

    file = Path(library)
    module = module_name(file)
    entry = {"path": str(path), "source": "torch", "architecture": f"{PACKAGE}.{module}:{network}"}
    copies = {}
    target = Path(PACKAGE, f"{module}.py")
    if file.resolve() != target.resolve():
        copies[str(target)] = str(file)
    return NewModel(name=name, entry=entry, words=f"{network} in {file}", copies=copies)


def _arguments_of_torchvision(network: str, path: Path) -> PlainSettings:
    # Setting `arguments` with the number of classes, where the last layer in the file has another than by default. What
    # is wrong with the name or the file is said where the network is opened.
    models = import_torchvision().models
    if network not in models.list_models(module=models):
        return {}
    try:
        weights = weights_of(load_checkpoint({}, path), path, which="model")
    except InputError:
        return {}
    with torch.device("meta"):
        expected = models.get_model(network, weights=None).state_dict()
    counts = set()
    for name, value in expected.items():
        if value.shape[:1] != (len(imagenet_names()),):
            continue
        for stored_name, stored_value in weights.items():
            if f".{stored_name}".endswith(f".{name}") and stored_value.shape[1:] == value.shape[1:]:
                counts.add(len(stored_value))
    if len(counts) != 1 or counts == {len(imagenet_names())}:
        return {}
    return {"arguments": {"num_classes": counts.pop()}}


def _hub(folder: Path) -> NewModel:
    config = read_json_file(folder / CONFIGURATION)
    paths = [folder / name for name in WEIGHT_FILES if (folder / name).is_file()]
    if not paths:
        raise InputError(
            f"{folder}: has {CONFIGURATION} but no weights ({' '.join(WEIGHT_FILES)}); save it with save_pretrained"
        )
    path = paths[0]
    name = name_from(folder.resolve().name)
    architecture = config.get("architecture")
    pretrained = config.get("pretrained_cfg")
    if pretrained is None and "model_type" not in config:
        # timm before 0.9 wrote its settings at the top, with the names under `labels`.
        pretrained = {"label_names": config.get("labels"), **config}
    if isinstance(architecture, str) and isinstance(pretrained, dict):
        label_names = config.get("label_names") or pretrained.get("label_names")
        if label_names:
            label_names = names_in_structure({"names": label_names}, folder / CONFIGURATION)[0].names
        return NewModel(
            name=name,
            entry={
                "source": "timm",
                "path": str(path),
                "architecture": architecture,
                **_arguments_of_timm(architecture, pretrained, config.get("model_args") or {}),
            },
            words=f"timm's {architecture}",
            input=input_of_timm(pretrained, f"pretrained_cfg in {CONFIGURATION}"),
            labels=label_names,
        )
    if "model_type" not in config:
        raise InputError(
            f"{folder / CONFIGURATION}: names neither timm's architecture nor transformers' model_type; save it again"
        )

    # Names of the outputs, unless they are the library's own numbers; label2id is id2label the other way round.
    labels = None
    for key in ("id2label", "label2id"):
        if labels is None and config.get(key):
            labels = names_in_structure({key: config[key]}, folder / CONFIGURATION)[0].names
    if labels and all(re.fullmatch(r"LABEL_\d+", label) for label in labels):
        labels = None
    return NewModel(
        name=name,
        entry={"source": "transformers", "path": str(path)},
        words=f"transformers' {config['model_type']}",
        input=input_of_transformers(folder / "preprocessor_config.json"),
        labels=labels,
    )


def _arguments_of_timm(architecture: str, pretrained: PlainSettings, model_args: PlainSettings) -> PlainSettings:
    # Setting `arguments`, by which timm builds the network of a folder: model_args without what follows from the data,
    # and the size of images where the network is made for one and it is another than by default.
    arguments = {key: value for key, value in model_args.items() if key not in RESERVED}
    size = list(pretrained.get("input_size") or [])[1:]
    default = _pretrained_of_timm(architecture)
    if pretrained.get("fixed_input_size") and size and default and size != list(default.input_size)[1:]:
        arguments.setdefault("img_size", size)
    return {"arguments": arguments} if arguments else {}


def _pretrained_of_timm(network: str) -> Any:
    # timm's description of the weights that it publishes; None for another name.
    timm = import_timm()
    return timm.get_pretrained_cfg(network) if timm.is_model(network) else None


# ---- networks by name ----


def find_named(name: str) -> NewModel:
    """Network of timm or torchvision by name (resnet18, timm:resnet18, torchvision:resnet18), weights from the cache.

    Nothing is downloaded.

    Raises
    ------
    InputError
        For a name that neither library has, with the nearest ones, and for missing weights, with the command that
        downloads them.
    """
    models = import_torchvision().models
    library, _, network = name.rpartition(":")
    # timm's tags follow a point: resnet50.a1_in1k.
    if library != "torchvision" and import_timm().is_model(network.split(".")[0]):
        return _of_timm(network)
    if library != "timm" and network in models.list_models(module=models):
        return _of_torchvision(network)
    raise InputError(f"{name}: no such file, and no classifier of timm or torchvision has this name; check it")


def _of_timm(name: str) -> NewModel:
    pretrained = import_timm().get_pretrained_cfg(name, allow_unregistered=False)
    settings = pretrained.to_dict() if pretrained else {}
    path = None
    if settings.get("hf_hub_id"):
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(settings["hf_hub_id"], "model.safetensors")
        path = cached if isinstance(cached, str) else None
    if path is None and settings.get("url"):
        path = _downloaded(settings["url"])
    if path is None:
        raise InputError(
            f'{name}: its weights are not on this machine; with a network: .venv/bin/python -c "import timm; '
            f"timm.create_model('{name}', pretrained=True)\""
        )
    return NewModel(
        name=name.replace(":", "-"),
        entry={"source": "timm", "path": path, "architecture": name.split(".", maxsplit=1)[0]},
        words=f"timm's {name}, weights in {path}",
        input=input_of_timm(settings, f"timm's pretrained_cfg of {name}"),
        labels=settings.get("label_names"),
    )


def _of_torchvision(name: str) -> NewModel:
    models = import_torchvision().models
    for weights in models.get_model_weights(name):
        path = _downloaded(weights.url)
        if path is None:
            continue
        transforms = weights.transforms()
        size = transforms.crop_size[0]
        labels = weights.meta["categories"]
        # What torchvision sets where it makes a network with these weights.
        arguments: dict[str, object] = {"num_classes": len(labels)}
        if name in ("googlenet", "inception_v3"):
            arguments["transform_input"] = True
        if name.startswith("vit_"):
            arguments["image_size"] = size
        return NewModel(
            name=name,
            entry={
                "source": "torch",
                "path": path,
                "architecture": f"torchvision.models:{name}",
                "arguments": arguments,
            },
            words=f"torchvision's {name}, weights {weights}",
            input=StatedInput(
                shape=(3, size, size),
                pixels=pixels_of(transforms.mean, transforms.std, f"the transforms of {weights}"),
                resize=Resize("center_crop", size, transforms.resize_size[0], transforms.interpolation.value),
            ),
            labels=labels,
        )
    raise InputError(
        f'{name}: its weights are not on this machine; with a network: .venv/bin/python -c "import torchvision; '
        f"torchvision.models.get_model('{name}', weights='DEFAULT')\""
    )


def _downloaded(url: str) -> str | None:
    # File of torch's cache; None where it is not there.
    path = Path(torch.hub.get_dir(), "checkpoints", os.path.basename(url))  # noqa: PTH119
    return str(path) if path.is_file() else None
