"""Networks of timm and torchvision by name, with weights that were downloaded before."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.found import FoundModel
from gfscore.workflow.new_audit.stated import of_timm, pixels_of


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
