"""An image classifier of Hugging Face's transformers: files of weights, with config.json beside them."""

import json
import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text
from gfscore.networks.model_source import FileSettings, ModelSource, NetworkOutputs, Settings, main_file


class Transformers(NetworkOutputs, FileSettings):
    """Weights of a network of transformers; its configuration is the file config.json in the same folder."""

    source: Literal["transformers"] = "transformers"
    path: Text = Field(
        description="File of the weights, beside its config.json: model.safetensors or pytorch_model.bin, or the index "
        "of files that each hold a part of them, which has .index.json behind that name."
    )


WEIGHTS = "model.safetensors"
CONFIGURATION = "config.json"
"""Files of a folder of transformers, and of timm, that save_pretrained writes."""

INDEX = ".index.json"
"""End of the name of a file that lists in which files the weights are."""

WEIGHT_FILES = (WEIGHTS, f"{WEIGHTS}{INDEX}", "pytorch_model.bin", f"pytorch_model.bin{INDEX}")
"""Files that the weights may be in, in the order in which transformers looks for them."""

PART = re.compile(r"[\w.-]+\.(safetensors|bin)")


def files_of(settings: Settings) -> list[Settings]:
    """Weights and configuration, each enforced by its digest."""
    path = Path(settings["path"]).with_name(CONFIGURATION)
    return [main_file(settings), {"path": str(path), "url": None, "sha256": None}]


def parts_of(path: Path | str) -> list[Path]:
    """Files of weights that an index names, sorted; none for any other file, and for an index that is missing.

    Raises InputError for an index that names no files of its folder.
    """
    path = Path(path)
    if not path.name.endswith(INDEX) or not path.is_file():
        return []
    try:
        names = sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
        is_plain = bool(names) and all(PART.fullmatch(name) for name in names)
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        is_plain = False
    if not is_plain:
        raise InputError(f"{path}: names no files of weights in its folder; download it again, or save the model again")
    return [path.with_name(name) for name in names]


def external_files(path: Path | str) -> list[Settings]:
    """Files that an index names, as `files_of` lists files: with path, without url and digest."""
    return [{"path": str(file), "url": None, "sha256": None} for file in parts_of(path)]


SOURCE = ModelSource(
    name="transformers",
    settings=Transformers,
    gives="gradients",
    fetched=True,
    all_files_identify=True,
    opened_by="gfscore.networks.transformers_models",
    files_by=__name__,
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
