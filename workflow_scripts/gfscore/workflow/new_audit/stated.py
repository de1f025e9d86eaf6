"""Preprocessing that the files of a model state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.errors import InputError
from gfscore.networks.onnx_graphs import input_type
from gfscore.workflow.new_audit.found import NEUTRAL, Pixels

if TYPE_CHECKING:
    import onnx

TIMES = 255
"""Value of white in images of 8 bits."""

PASSED_OVER = {"Cast", "Transpose", "Identity"}
"""Operators that change no value."""


def read_json_file(path: Path) -> dict[str, Any]:
    """Mapping in a JSON file of a model; InputError for any other content."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download or copy it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no mapping; download or copy it again")
    return content


def pixels_of(mean: Any, std: Any, said_by: str, *, value_range: int = 1) -> Pixels | None:
    """Preprocessing with a mean and a standard deviation; None where they are no lists of numbers."""
    if mean is None or std is None or not (_numbers(mean) and _numbers(std)):
        return None
    neutral = not any(mean) and all(value == 1 for value in std)
    constants = {} if neutral else {"mean": list(map(float, mean)), "std": list(map(float, std))}
    return Pixels({**NEUTRAL, "value_range": value_range, **constants}, said_by)


def _numbers(values):
    return isinstance(values, Sequence) and 0 < len(values) < 5 and all(isinstance(v, int | float) for v in values)


def of_timm(settings: Mapping[str, Any], said_by: str) -> dict[str, Any]:
    """`shape`, `pixels` and `resize` that a pretrained_cfg of timm states, for FoundModel."""
    shape: Any = settings.get("input_size")
    given: dict[str, Any] = {"pixels": pixels_of(settings.get("mean"), settings.get("std"), said_by)}
    if _numbers(shape) and len(shape) == 3:
        given["shape"] = tuple(map(int, shape))
        share = settings.get("crop_pct") or 1.0
        given["resize"] = _cropped(given["shape"][2], round(given["shape"][2] / share), settings.get("interpolation"))
    return given


def _cropped(size, resize, interpolation):
    known = interpolation if interpolation in ("bilinear", "bicubic") else "bilinear"
    return {"method": "center_crop", "resize": max(resize, size), "size": size, "interpolation": known}


def of_transformers(path: Path) -> dict[str, Any]:
    """The same of a preprocessor_config.json of transformers; an empty mapping where there is none."""
    if not path.is_file():
        return {}
    stated = read_json_file(path)
    ones, zeros = [1.0] * 3, [0.0] * 3
    normalised = stated.get("do_normalize", True)
    mean, std = (stated.get("image_mean", zeros), stated.get("image_std", ones)) if normalised else (zeros, ones)
    factor = stated.get("rescale_factor", 1 / TIMES) if stated.get("do_rescale", True) else 1.0
    white = round(TIMES * factor) if isinstance(factor, int | float) else 0
    given: dict[str, Any] = {}
    if white in (1, TIMES):
        given["pixels"] = pixels_of(mean, std, path.name, value_range=white)
    size, crop = _size(stated.get("size")), _size(stated.get("crop_size"))
    filtered = "bicubic" if stated.get("resample") == 3 else "bilinear"
    if stated.get("do_center_crop") and crop:
        given["shape"] = (3, crop, crop)
        given["resize"] = _cropped(crop, size or crop, filtered)
    elif size:
        given["shape"] = (3, size, size)
        given["resize"] = {"method": "squash", "size": size, "interpolation": filtered}
    return given


def _size(size):
    # One number, or a mapping with equal height and width, or with the shortest edge.
    if isinstance(size, Mapping):
        known = {size[key] for key in ("height", "width", "shortest_edge") if isinstance(size.get(key), int)}
        return known.pop() if len(known) == 1 else None
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def of_graph(graph: onnx.ModelProto) -> Pixels | None:
    """Preprocessing that the first operators of an ONNX graph leave to do, None where they normalise nothing."""
    inputs = [given.name for given in graph.graph.input if given.name not in _constants(graph)]
    if len(inputs) != 1:
        return None
    if input_type(graph) == "uint8":
        return Pixels({**NEUTRAL, "value_range": TIMES}, "the input of 8 bits")
    (at,), constants = inputs, _constants(graph)
    subtracts = scale = None
    while True:
        using = [node for node in graph.graph.node if at in node.input]
        if len(using) != 1:
            break
        (node,) = using
        beside = [constants[name] for name in node.input if name != at and name in constants]
        if node.op_type in ("Sub", "Add", "Div", "Mul") and len(beside) == 1 and beside[0].size in (1, 3):
            if node.op_type in ("Sub", "Add"):
                subtracts = float(np.abs(beside[0]).max())
            else:
                size = float(np.abs(beside[0]).max())
                scale = size if node.op_type == "Div" else 1 / size if size else None
        elif node.op_type not in PASSED_OVER:
            break
        at = node.output[0]
    if subtracts is None and scale is None:
        return None
    # Means of pixels up to 255, or a division by numbers such as 255 or 58.
    white = TIMES if (subtracts or 0) > 2 or (scale or 0) > 2 else 1
    return Pixels({**NEUTRAL, "value_range": white}, "the first operators of the graph")


def _constants(graph):
    from onnx import numpy_helper

    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer if len(tensor.dims) < 5}
    for node in graph.graph.node:
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and values:
            found[node.output[0]] = numpy_helper.to_array(values[0])
    return found
