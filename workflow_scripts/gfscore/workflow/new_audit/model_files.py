"""Models in files and folders: what each is, by its name and its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError, few
from gfscore.core.names import require_utf8
from gfscore.networks.architecture_files import PACKAGE
from gfscore.networks.model_source import CHECKPOINTS
from gfscore.networks.onnx_files import data_files
from gfscore.tables.logit_files import FORMATS
from gfscore.workflow.new_audit.logit_files import find_logits
from gfscore.workflow.new_audit.output_names import names_in_metadata, names_in_structure
from gfscore.workflow.new_audit.pixels import of_graph, of_timm, of_transformers, read_json_file
from gfscore.workflow.new_audit.request import FoundModel, Request, module_name, name_from

if TYPE_CHECKING:
    import onnx
import os
from difflib import get_close_matches

from gfscore.workflow.new_audit.pixels import pixels_of

PROGRAMS = (".pt2", ".torchscript")
ENDINGS = (*CHECKPOINTS, *PROGRAMS, ".onnx")
HUB = "config.json"
WEIGHTS = "model.safetensors"
FORMS = "timm:NAME, torchvision:NAME, or FILE.py:FUNCTION"


def find_models(request: Request) -> list[FoundModel]:
    """Models of a request, in its order, those of a folder in the order of their names.

    Raises InputError, naming the file and the remedy, for what is no model, for weights without an architecture, and
    for code that the request does not trust.
    """
    found = [model for given in request.models for path in _expanded(given) for model in _found(path, request)]
    names = [model.name for model in found]
    for model in found:
        if names.count(model.name) > 1:
            raise InputError(f"{model.entry['path']}: two models would be called {model.name}; rename one of the files")
    return found


def _expanded(given: str) -> Iterator[str]:
    path = Path(given)
    if not path.is_dir() or (path / HUB).is_file():
        yield given
        return
    # Weights of an ONNX file may have any name, also one that other models have.
    weights = {file for graph in path.glob("*.onnx") for file in data_files(graph)}
    models = [file for file in path.iterdir() if file.name.endswith((*ENDINGS, ".npz")) and file not in weights]
    files = sorted(str(file) for file in models)
    hubs = sorted(str(inside) for inside in path.iterdir() if (inside / HUB).is_file())
    if not files and not hubs:
        raise InputError(
            f"{path}: a folder without models; a model is a file ({' '.join(ENDINGS)}), a folder with {HUB}, or a file "
            f"of logits ({' '.join(FORMATS)})"
        )
    yield from [*files, *hubs]


def _found(given: str, request: Request) -> list[FoundModel]:
    require_utf8(given, where="model")
    path = Path(given)
    if path.is_dir():
        return [_hub(path)]
    if not path.is_file():
        if path.suffix in ENDINGS or "/" in given.partition(":")[0]:
            raise InputError(f"{given}: there is no such file; check the path")
        return [find_named(given)]
    if path.name.endswith(".onnx"):
        return [_onnx(path)]
    if path.name.endswith(FORMATS):
        return find_logits(path)
    if path.name.endswith((*CHECKPOINTS, *PROGRAMS)):
        return [_program(path, request) or _weights(path, request)]
    raise InputError(f"{path}: no kind of model ends in {path.suffix or 'nothing'}; known are {' '.join(ENDINGS)}")


# ---- one file each ----


def _onnx(path):
    from gfscore.networks.onnx_content import inputs_of, read_model

    model = read_model(path)
    graph = model.whole_graph()
    words = f"ONNX graph, weights in {few(sorted(model.data))}" if model.data else "ONNX graph"
    return FoundModel(
        name=name_from(path.stem),
        entry={"source": "onnx", "path": str(path)},
        words=words,
        shape=_input_shape(inputs_of(graph)),
        pixels=of_graph(graph),
        labels=names_in_metadata({entry.key: entry.value for entry in graph.metadata_props}),
    )


def _input_shape(inputs: Sequence[onnx.ValueInfoProto]) -> tuple[int, int, int] | None:
    """Shape (C, H, W) of the images that a graph takes; None where it does not state it."""
    if len(inputs) != 1:
        return None
    sides = [int(side.dim_value) for side in inputs[0].type.tensor_type.shape.dim][1:]
    # A side that is not stated is 0.
    if len(sides) != 3 or 0 in sides:
        return None
    first, second, third = sides
    channels_last = first not in (1, 3) and third in (1, 3)
    return (third, first, second) if channels_last else (first, second, third)


def _program(path, request):
    from gfscore.networks.programs import KINDS, kind_of_program, require_usable

    if kind_of_program(path) is None and path.suffix not in PROGRAMS:
        return None
    kind = require_usable(path)
    if not request.trust_code:
        raise InputError(
            f"{path}: is {KINDS[kind]}, code that would run with your rights; if you trust it, add --trust-code (make: "
            "TRUST_CODE=1)"
        )
    entry = {"source": "program", "path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}
    return FoundModel(name=name_from(path.stem), entry=entry, words=KINDS[kind])


def _weights(path, request):
    beside = path.with_name(HUB)
    if request.architecture is None and beside.is_file() and path.name == WEIGHTS:
        return _hub(path.parent)
    if request.architecture is None:
        raise InputError(
            f"{path}: holds weights, not the network that they belong to; add --architecture (make: ARCHITECTURE=), "
            f"{FORMS}"
        )
    library, _, own = request.architecture.rpartition(":")
    named: dict[str, Any] = {"name": name_from(path.stem)}
    entry: dict[str, Any] = {"path": str(path)}
    if library == "timm":
        from gfscore.networks.compatibility import import_torchvision

        import_torchvision()
        import timm

        config: Any = timm.get_pretrained_cfg(own) if timm.is_model(own) else None
        stated = of_timm(config.to_dict(), f"timm's pretrained_cfg of {own}") if config else {}
        return FoundModel(
            **named, entry=entry | {"source": "timm", "architecture": own}, words=f"timm's {own}", **stated
        )
    if library == "torchvision":
        entry |= {"source": "torch", "architecture": f"torchvision.models:{own}"}
        return FoundModel(**named, entry=entry, words=f"torchvision's {own}")
    if not library.endswith(".py"):
        raise InputError(f"--architecture {request.architecture}: is none of {FORMS}")
    file = Path(library)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; correct --architecture {request.architecture}")
    module = module_name(file)
    target = f"{PACKAGE}/{module}.py"
    inside = file.resolve().parent == Path(PACKAGE).resolve()
    entry |= {"source": "torch", "architecture": f"{PACKAGE}.{module}:{own}"}
    copies = {} if inside else {target: str(file)}
    return FoundModel(**named, entry=entry, words=f"{own} in {file}", copies=copies)


def _hub(folder):
    about = read_json_file(folder / HUB)
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"{folder}: has {HUB} but no {WEIGHTS}; save the model with safetensors, in one file")
    name, config = name_from(folder.resolve().name), about.get("pretrained_cfg")
    if isinstance(about.get("architecture"), str) and isinstance(config, dict):
        entry = {"source": "timm", "path": str(path), "architecture": about["architecture"]}
        labels = about.get("label_names") or config.get("label_names")
        stated = of_timm(config, f"pretrained_cfg in {HUB}")
        return FoundModel(name=name, entry=entry, words=f"timm's {about['architecture']}", labels=labels, **stated)
    if "model_type" not in about:
        raise InputError(
            f"{folder / HUB}: names neither timm's architecture nor transformers' model_type; save it again"
        )
    return FoundModel(
        name=name,
        entry={"source": "transformers", "path": str(path)},
        words=f"transformers' {about['model_type']}",
        labels=_labels(about, folder / HUB),
        **of_transformers(folder / "preprocessor_config.json"),
    )


def _labels(about: Mapping[str, Any], where: Path) -> Sequence[str] | None:
    """Names of the outputs in a config.json, None where there are none but the library's own numbers."""
    # transformers names outputs by id2label; label2id is the same the other way round.
    key = next((key for key in ("id2label", "label2id") if about.get(key)), None)
    if key is None:
        return None
    names = names_in_structure({key: about[key]}, where)[0].names
    return None if all(re.fullmatch(r"LABEL_\d+", name) for name in names) else names


def find_named(name: str) -> FoundModel:
    """Model of timm's or torchvision's name (resnet18, timm:resnet18, torchvision:resnet18), weights from the cache.

    Nothing is downloaded. Raises InputError for a name that neither knows, with the nearest, and for missing weights,
    with the command that downloads them.
    """
    from gfscore.networks.compatibility import import_torchvision

    library, _, own = name.rpartition(":")
    models = import_torchvision().models
    import timm

    listed = {"timm": timm.list_models(), "torchvision": models.list_models(module=models)}
    if library not in (*listed, ""):
        raise InputError(f"{name}: neither a file nor a network; networks are timm:NAME and torchvision:NAME")
    # timm's tags follow a point: resnet50.a1_in1k.
    plain = own.split(".")[0]
    if library != "torchvision" and plain in listed["timm"]:
        return _of_timm(own)
    if library != "timm" and own in listed["torchvision"]:
        return _of_torchvision(own)
    near = get_close_matches(own, {*listed["timm"], *listed["torchvision"]}, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "check the path"
    raise InputError(f"{name}: no such file, and no network of timm or torchvision has this name; {hint}")


def _of_timm(name):
    import timm

    config: Any = timm.get_pretrained_cfg(name, allow_unregistered=False)
    settings = config.to_dict() if config else {}
    path, place = None, settings.get("hf_hub_id")
    if place:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(place, "model.safetensors")
        path = found if isinstance(found, str) else None
    if path is None and settings.get("url"):
        path = _downloaded(settings["url"])
    if path is None:
        raise InputError(
            f'{name}: its weights are not on this machine; with a network: .venv/bin/python -c "import timm; '
            f"timm.create_model('{name}', pretrained=True)\""
        )
    labels = settings.get("label_names")
    entry = {"source": "timm", "path": path, "architecture": name.split(".")[0]}
    words = f"timm's {name}, weights in {path}"
    stated = of_timm(settings, f"timm's pretrained_cfg of {name}")
    return FoundModel(name=name.replace(":", "-"), entry=entry, words=words, labels=labels, **stated)


def _of_torchvision(name):
    from gfscore.networks.compatibility import import_torchvision

    models = import_torchvision().models
    known = list(models.get_model_weights(name))
    weights = next((one for one in known if _downloaded(one.url)), None)
    if weights is None:
        raise InputError(
            f'{name}: its weights are not on this machine; with a network: .venv/bin/python -c "import torchvision; '
            f"torchvision.models.get_model('{name}', weights='DEFAULT')\""
        )
    transforms: Any = weights.transforms()
    size = transforms.crop_size[0]
    resize = {"method": "center_crop", "resize": transforms.resize_size[0], "size": size}
    labels = weights.meta["categories"]
    entry = {
        "source": "torch", "path": _downloaded(weights.url), "architecture": f"torchvision.models:{name}",
        "arguments": {"num_classes": len(labels)},
    }  # fmt: skip
    return FoundModel(
        name=name,
        entry=entry,
        words=f"torchvision's {name}, weights {weights}",
        shape=(3, size, size),
        pixels=pixels_of(transforms.mean, transforms.std, f"the transforms of {weights}"),
        resize=resize,
        labels=labels,
    )


def _downloaded(url):
    import torch

    path = Path(torch.hub.get_dir(), "checkpoints", os.path.basename(url))  # noqa: PTH119
    return str(path) if path.is_file() else None
