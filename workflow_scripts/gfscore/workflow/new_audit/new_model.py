"""A model of a new audit as its files describe it: its settings, and what they state of its input and outputs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from gfscore.core.errors import InputError
from gfscore.core.settings import WHITE, PlainSettings
from gfscore.images.dataset_source import INTERPOLATIONS
from gfscore.images.dataset_source import Preprocessing as Preparation
from gfscore.images.decoding import prepare
from gfscore.networks.model_source import Settings
from gfscore.networks.onnx_graphs import constant_of, input_type
from gfscore.networks.outputs import first_line
from gfscore.workflow.new_audit.preprocessing import Numbers, Preprocessing

if TYPE_CHECKING:
    import onnx

VALUE_KEEPING = {"Cast", "Transpose", "Identity"}
"""Operators that change no value."""

TIMM_SHARE = 0.875
"""Share of the resized image that timm crops, where its pretrained_cfg does not state it."""

SHARES = {"ConvNext": 224 / 256, "Levit": 224 / 256}
"""The same of transformers' processors that resize beyond the size that they state, by name."""

LEAST_SQUASHED = 384
"""Size from which ConvNeXt's processor squashes images in place of cropping them."""

PROCESSOR_ENDING = "ImageProcessor(Pil)?$"
"""End of the name of a processor of transformers."""

DEVIATION = 0.05
"""Mean difference from the pixels of a library, in standard deviations, above which they are others; a crop that begins
one pixel beside, since transformers rounds its border down and torchvision to even, makes less."""

OTHER_CROP = "; images that are not square are cropped otherwise than by its library, which squashes or pads them first"
"""Note on what no preprocessing of a dataset stands for."""


@dataclass(frozen=True)
class StatedPixels:
    """Preprocessing of pixels, and in words where it is from."""

    preprocessing: Preprocessing
    source: str


@dataclass(frozen=True)
class Resize:
    """How images are brought to a square.

    Parameters
    ----------
    method : {"center_crop", "squash"}
    size : int
        Side of the square in pixels.
    resize : int, optional
        Shorter side before the crop.
    interpolation : str, optional
        One of INTERPOLATIONS.
    """

    method: str
    size: int
    resize: int | None = None
    interpolation: str | None = None

    def entry(self) -> dict[str, str | int]:
        """Setting `preprocessing` of a dataset."""
        names = ("method", "resize", "size", "interpolation")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class StatedInput:
    """Input of a network; None for what no file states.

    Parameters
    ----------
    shape : tuple of int, optional
        (C, H, W).
    pixels : StatedPixels, optional
    resize : Resize, optional
    note : str
        How `resize` departs from what its library does, in words; empty where it does not.
    """

    shape: tuple[int, int, int] | None = None
    pixels: StatedPixels | None = None
    resize: Resize | None = None
    note: str = ""


@dataclass(frozen=True)
class NewModel:
    """A model as its files describe it, before it is opened.

    Parameters
    ----------
    name : str
        Name in the audit.
    entry : mapping
        Settings of its source, as the file of the audit holds them, without its preprocessing.
    words : str
        What kind of model it is.
    input : StatedInput
        What its files state of its input.
    labels : sequence of str, optional
        Names of its outputs; None where no file states them.
    copies : mapping
        Files to copy, by their new paths.
    """

    name: str
    entry: Settings
    words: str
    input: StatedInput = StatedInput()
    labels: Sequence[str] | None = None
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """File or folder of the model, which errors name."""
        return str(self.entry["path"])

    @property
    def has_logits_only(self) -> bool:
        """Whether it is a file of logits, which no image can be shown to."""
        return bool(self.entry["source"] == "logits")


def read_json_file(path: Path) -> PlainSettings:
    """Mapping in a JSON file of a model; InputError for any other content."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download or copy it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no mapping; download or copy it again")
    return content


def pixels_of(mean: object, std: object, source: str, *, value_range: int = 1) -> StatedPixels | None:
    """Preprocessing with a mean and a standard deviation; None where they are no lists of numbers.

    Parameters
    ----------
    mean, std : object
        What a file holds; of use are lists of one number for each channel.
    source : str
        Where it stands, in words.
    value_range : {1, 255}
        Value of white that these refer to.
    """
    means, deviations = _numbers(mean), _numbers(std)
    if not means or not deviations:
        return None
    if not any(means) and all(deviation == 1 for deviation in deviations):
        return StatedPixels(Preprocessing(value_range=value_range), source)
    return StatedPixels(Preprocessing(value_range=value_range, mean=means, std=deviations), source)


def _numbers(values: object) -> Numbers:
    # Up to four numbers, as many as there may be channels; empty for anything else.
    if not isinstance(values, Sequence) or len(values) > 4:
        return ()
    if not all(isinstance(value, int | float) for value in values):
        return ()
    return tuple(map(float, values))


# ---- libraries ----


def input_of_timm(pretrained: PlainSettings, source: str) -> StatedInput:
    """Input that a pretrained_cfg of timm states; `source` names it in words."""
    pixels = pixels_of(pretrained.get("mean"), pretrained.get("std"), source)
    sizes = _numbers(pretrained.get("input_size"))
    if len(sizes) != 3:
        return StatedInput(pixels=pixels)
    channels, height, side = map(int, sizes)
    resize = math.floor(side / (pretrained.get("crop_pct") or TIMM_SHARE))
    interpolation = pretrained.get("interpolation", "bicubic")
    shape = (channels, height, side)
    if pretrained.get("crop_mode", "center") == "center":
        return StatedInput(shape, pixels, _center_crop(side, resize, interpolation))
    if pretrained["crop_mode"] == "squash" and resize == side:
        return StatedInput(shape, pixels, Resize("squash", side, interpolation=_method(interpolation)))
    return StatedInput(shape, pixels, _center_crop(side, resize, interpolation), OTHER_CROP)


def input_of_transformers(path: Path) -> StatedInput:
    """Input that a preprocessor_config.json of transformers states, if the file and the library are there.

    It is followed where it leads to the pixels that the library's own processor makes of a square picture.
    """
    if not path.is_file():
        return StatedInput()
    read_json_file(path)
    # Imported late, since an audit of logits needs none of these.
    from gfscore.networks.compatibility import import_torchvision

    try:
        import_torchvision()
        import transformers
    except ImportError:
        return StatedInput()

    transformers.utils.logging.set_verbosity_error()
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            path.parent, local_files_only=True, trust_remote_code=False
        )
        stated = _stated_by_processor(processor.to_dict(), path.name)
        deviations = []
        for width in (320, 480):
            picture = _picture(width, 320)
            # First, since sides that a dataset may not have would fill the memory.
            pixels = _pixels_as_stated(stated, picture)
            expected = processor(picture, return_tensors="np")["pixel_values"][0]
            deviations.append(_deviation(pixels, expected))
    # Configurations of others may fail in any way.
    except Exception as error:
        return StatedInput(note=f"; its {path.name} is not followed ({first_line(error)})")
    of_square, of_oblong = deviations
    if of_square > DEVIATION:
        name = type(processor).__name__
        return StatedInput(note=f"; its {path.name} is not followed, as no settings do what {name} does with images")
    return replace(stated, note=OTHER_CROP if of_oblong > DEVIATION else "")


def _stated_by_processor(config: PlainSettings, source: str) -> StatedInput:
    pixels = _pixels_of_processor(config, source)
    size = _square_side(config.get("size")) if config.get("do_resize", True) else None
    crop = _square_side(config.get("crop_size")) if config.get("do_center_crop") else None
    interpolation = Image.Resampling(config.get("resample", Image.Resampling.BILINEAR)).name.lower()

    processor = re.sub(PROCESSOR_ENDING, "", str(config.get("image_processor_type")))
    if processor == "Perceiver" and crop:
        # It crops first, the share size / crop_size of the shorter side.
        size, crop = crop, size
    share = config.get("crop_pct") or SHARES.get(processor)
    resize = size
    if size and isinstance(share, int | float) and (crop or size < LEAST_SQUASHED):
        resize = int(size / share)
        crop = crop or size
    if crop:
        return StatedInput((3, crop, crop), pixels, _center_crop(crop, resize or crop, interpolation))
    if size:
        return StatedInput((3, size, size), pixels, Resize("squash", size, interpolation=interpolation))
    return StatedInput(pixels=pixels)


def _pixels_of_processor(config: PlainSettings, source: str) -> StatedPixels | None:
    mean: object = [0.0] * 3
    std: object = [1.0] * 3
    # Processors that may flip the channels (MobileViT) do not normalise, and store mean and deviation all the same.
    if config.get("do_normalize", "do_flip_channel_order" not in config):
        mean = config.get("image_mean", mean)
        std = config.get("image_std", std)
        if config.get("include_top"):
            # EfficientNet's divides by the deviation once more.
            std = [number**2 for number in _numbers(std)]
    factor = config.get("rescale_factor", 1 / WHITE) if config.get("do_rescale", True) else 1.0
    white = WHITE * factor if isinstance(factor, int | float) else 0
    if min(abs(white - 1), abs(white / WHITE - 1)) > 1e-3 or config.get("rescale_offset"):
        return None
    pixels = pixels_of(mean, std, source, value_range=round(white))
    if pixels is None or not config.get("do_flip_channel_order"):
        return pixels
    return replace(pixels, preprocessing=replace(pixels.preprocessing, channel_order="bgr"))


def _picture(width: int, height: int) -> Image.Image:
    # Smooth, and another in each channel.
    rows, columns = np.mgrid[:height, :width]
    waves = np.stack([np.sin(columns / 40), np.cos(rows / 50), np.sin((rows + columns) / 60)], axis=-1)
    return Image.fromarray(np.rint(127.5 * (1 + waves)).astype(np.uint8))


def _pixels_as_stated(stated: StatedInput, picture: Image.Image) -> NDArray[np.float32] | None:
    # Pixels (3, H, W) of a picture; None where their preprocessing is not stated, but tried on the data. Without a size
    # images are taken as they are stored.
    method = stated.resize.entry() if stated.resize else {"method": "none"}
    settings = TypeAdapter[Preparation](Preparation).validate_python(method)
    if stated.pixels is None:
        return None
    encoded = BytesIO()
    picture.save(encoded, format="BMP")
    stored = prepare(encoded.getvalue(), settings, name="picture")
    images = stored.transpose(2, 0, 1)[np.newaxis].astype(np.float32) / np.float32(WHITE)
    return stated.pixels.preprocessing.apply(images, where="picture")[0]


def _deviation(pixels: NDArray[np.float32] | None, expected: NDArray[np.floating]) -> float:
    # Mean difference from the pixels of the library, in standard deviations; infinite for another shape.
    if pixels is None:
        return 0.0
    if pixels.shape != expected.shape:
        return math.inf
    return float(np.abs(pixels - expected).mean() / expected.std())


def _center_crop(size: int, resize: int, interpolation: object) -> Resize:
    return Resize("center_crop", size, max(resize, size), _method(interpolation))


def _method(interpolation: object) -> str:
    return str(interpolation) if interpolation in INTERPOLATIONS else "bilinear"


def _square_side(size: object) -> int | None:
    # One number, or a mapping with equal height and width, or with the shortest edge.
    if isinstance(size, Mapping):
        sides = set()
        for key in ("height", "width", "shortest_edge"):
            if isinstance(size.get(key), int):
                sides.add(size[key])
        return sides.pop() if len(sides) == 1 else None
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    return None


# ---- graphs ----


def pixels_of_graph(model: onnx.ModelProto) -> StatedPixels | None:
    """Preprocessing that the first operators of an ONNX graph leave to do, None where they normalise nothing."""
    # onnx is imported by graphs alone.
    from onnx import numpy_helper

    constants = {}
    for tensor in model.graph.initializer:
        if len(tensor.dims) < 5:
            constants[tensor.name] = numpy_helper.to_array(tensor)
    for node in model.graph.node:
        constant = constant_of(node)
        if constant is not None:
            constants[node.output[0]] = numpy_helper.to_array(constant)

    inputs = [value.name for value in model.graph.input if value.name not in constants]
    if len(inputs) != 1:
        return None
    if input_type(model) == "uint8":
        return StatedPixels(Preprocessing(value_range=WHITE), "the input of 8 bits")

    arithmetic = _first_arithmetic(model, inputs[0], constants)
    if arithmetic is None:
        return None
    # Means of pixels up to 255, or a division by numbers such as 255 or 58.
    white = WHITE if max(arithmetic) > 2 else 1
    return StatedPixels(Preprocessing(value_range=white), "the first operators of the graph")


def _first_arithmetic(
    model: onnx.ModelProto, value: str, constants: Mapping[str, NDArray[np.generic]]
) -> tuple[float, float] | None:
    # What the first operators subtract from pixels as they come in, and then divide them by, in size; None without any.
    offset, divisor = 0.0, 1.0
    is_found = False
    while True:
        users = [node for node in model.graph.node if value in node.input]
        if len(users) != 1:
            break
        (node,) = users
        operands = [constants[name] for name in node.input if name != value and name in constants]
        is_arithmetic = node.op_type in ("Sub", "Add", "Div", "Mul") and len(operands) == 1
        if is_arithmetic and operands[0].size in (1, 3):
            size = float(np.abs(operands[0]).max())
            is_found = True
            if node.op_type in ("Sub", "Add"):
                # After a division by 255, a mean of 0.485 is one of 124.
                offset = max(offset, size * divisor)
            elif node.op_type == "Div":
                divisor *= size
            elif size:
                divisor /= size
        elif node.op_type not in VALUE_KEEPING:
            break
        value = node.output[0]
    return (offset, divisor) if is_found else None
