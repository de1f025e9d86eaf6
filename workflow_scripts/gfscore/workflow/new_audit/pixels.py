"""Preprocessing of pixels: what the files of a model state, else candidates that are tried on labelled images."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from gfscore.core.errors import InputError
from gfscore.networks.onnx_graphs import input_type
from gfscore.networks.preprocessing import preprocess
from gfscore.workflow.new_audit.request import NEUTRAL, Pixels

if TYPE_CHECKING:
    import onnx

NORMALISATIONS: Mapping[str, tuple[list[float], list[float]] | None] = {
    "none": None,
    "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "cifar10": ([0.4914, 0.4822, 0.4465], [0.2471, 0.2435, 0.2616]),
    "half": ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
    "caffe": ([0.485, 0.456, 0.406], [1 / 255, 1 / 255, 1 / 255]),
}
"""Mean and standard deviation by the name that --preprocessing takes, of red, green and blue in [0, 1]."""

WHITE = 255
"""Value of white in images of 8 bits."""

ERROR = 0.01
"""Probability that a choice is wrong by chance."""

MOST_SHOWN = 8
"""Lines of a table of trials."""

VALUE_KEEPING = {"Cast", "Transpose", "Identity"}
"""Operators that change no value."""

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From images (n, C, H, W) as the network takes them to logits, whose columns are in the order of the labels."""


# ---- what --preprocessing takes ----


def settings_of(option: str, *, channels: int = 3) -> dict[str, Any]:
    """Settings of the preprocessing that a text stands for, such as "imagenet,bgr,255".

    Parameters
    ----------
    option : str
        A name of NORMALISATIONS, and bgr and 255 where they apply; or mean=0.4/0.4/0.4,std=0.2/0.2/0.2 in place of the
        name, in the network's order and range.
    channels : int
        Of the images; of one channel, mean and standard deviation are the mean of three.

    Returns
    -------
    dict
        The keys of NEUTRAL.

    Raises
    ------
    InputError
        For any other text, and for a mean beyond white.
    """
    words = option.split(",")
    order = "rgb"
    white = 1
    mean: list[float] | None = None
    std: list[float] | None = None
    for word in words:
        key, _, values = word.strip().partition("=")
        numbers = _numbers_of(values)
        if word in ("rgb", "bgr"):
            order = word
        elif word in ("1", str(WHITE)):
            white = int(word)
        elif word in NORMALISATIONS:
            mean, std = NORMALISATIONS[word] or (None, None)
            if mean and std and "bgr" in words:
                mean, std = mean[::-1], std[::-1]
        elif key == "mean" and numbers:
            mean = numbers
        elif key == "std" and numbers:
            std = numbers
        else:
            raise InputError(
                f"--preprocessing {option}: give {', '.join(NORMALISATIONS)}, or mean=M/M/M,std=S/S/S, and where they "
                "apply bgr and 255: imagenet,bgr"
            )

    if channels == 1 and mean and len(mean) > 1:
        mean = [float(np.mean(mean))]
        std = [float(np.mean(std))] if std else None
    if mean and max(mean) > white:
        raise InputError(
            f"--preprocessing {option}: a mean of {max(mean):g} is one of pixels up to {WHITE}; add ,{WHITE} where the "
            f"network takes these, else divide mean and std by {WHITE}"
        )
    scale = white if all(value <= 1 for value in mean or ()) else 1
    return {
        "channel_order": order,
        "value_range": white,
        "mean": mean and [value * scale for value in mean],
        "std": std and [value * scale for value in std],
    }


def _numbers_of(text: str) -> list[float]:
    # Numbers between slashes; none for any other text.
    try:
        return [float(number) for number in text.split("/")]
    except ValueError:
        return []


def option_of(settings: Mapping[str, Any]) -> str:
    """Value of --preprocessing that stands for these settings."""
    for name in candidates(3):
        if settings_of(name) == dict(settings):
            return name
    words = []
    for key in ("mean", "std"):
        if settings[key] is not None:
            words.append(f"{key}={'/'.join(f'{value:g}' for value in settings[key])}")
    if not words:
        words.append("none")
    if settings["channel_order"] != "rgb":
        words.append(settings["channel_order"])
    if settings["value_range"] != 1:
        words.append(str(settings["value_range"]))
    return ",".join(words)


def words_of(settings: Mapping[str, Any]) -> str:
    """Preprocessing in a few words."""
    words = f"{settings['channel_order'].upper()}, 0 to {settings['value_range']}"
    if settings["mean"] is None and settings["std"] is None:
        return f"{words}, not normalised"
    for key in ("mean", "std"):
        if settings[key] is not None:
            words += f", {key} {' '.join(f'{value:.4g}' for value in settings[key])}"
    for name, constants in NORMALISATIONS.items():
        if constants is not None and _nearly_equal(settings, constants):
            return f"{words} ({name})"
    return words


def _nearly_equal(settings: Mapping[str, Any], constants: tuple[list[float], list[float]]) -> bool:
    scale = settings["value_range"]
    for key, values in zip(("mean", "std"), constants, strict=True):
        if settings[key] is None:
            return False
        if not np.allclose(settings[key], np.multiply(values, scale), atol=1e-3 * scale):
            return False
    return True


# ---- trials ----


@dataclass(frozen=True)
class Trial:
    """A preprocessing that was tried on n images.

    Parameters
    ----------
    name : str
        As tables show it.
    settings : mapping
        The keys of NEUTRAL.
    right : ndarray
        Which of the images are classified correctly, (n,) bool.
    """

    name: str
    settings: Mapping[str, Any]
    right: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Share of the images that are classified correctly."""
        return float(self.right.mean())


def prepared(images: NDArray[np.float32], settings: Mapping[str, Any], *, where: str) -> NDArray[np.float32]:
    """Images (n, C, H, W) with pixels in [0, 1] as a network of this preprocessing takes them."""
    return preprocess(images, {**settings, "image_shape": images.shape[1:]}, where=where)


def try_one(
    run: Run,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    name: str,
    settings: Mapping[str, Any],
    *,
    where: str,
) -> Trial:
    """Trial of one preprocessing on images (n, C, H, W) with pixels in [0, 1] and labels (n,)."""
    logits = run(prepared(images, settings, where=where))
    return Trial(name, settings, logits.argmax(axis=1) == labels)


def try_all(run: Run, images: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str]) -> list[Trial]:
    """Trials of candidates by their names, the best first.

    Parameters
    ----------
    run : callable
        From images as the network takes them to logits.
    images, labels : ndarray
        (n, C, H, W) with pixels in [0, 1], and (n,).
    names : sequence of str
        Values of --preprocessing.
    """
    trials = []
    for name in names:
        settings = settings_of(name, channels=images.shape[1])
        trials.append(try_one(run, images, labels, name, settings, where=name))
    return sorted(trials, key=lambda trial: -trial.accuracy)


def try_in_turns(
    run: Run, images: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str], *, first: int
) -> tuple[list[Trial], list[Trial]]:
    """Trials of all candidates on the first images, and of the promising ones on all: for networks that take long.

    Parameters
    ----------
    run, images, labels, names
        As of `try_all`.
    first : int
        Number of images of the first turn, spread over all.

    Returns
    -------
    final : list of Trial
        On all images, of the candidates that are not surely worse than the best of the first turn.
    discarded : list of Trial
        On the first images, of the others.
    """
    rows = np.linspace(0, len(labels) - 1, min(first, len(labels))).astype(int)
    best, *others = try_all(run, images[rows], labels[rows], names)
    tests = 2 * len(others)
    final = [best]
    discarded = []
    for other in others:
        if clearly_better(best, other, tests=tests):
            discarded.append(other)
        else:
            final.append(other)
    if len(rows) < len(labels) and len(final) > 1:
        final = try_all(run, images, labels, [trial.name for trial in final])
    return final, discarded


def candidates(channels: int) -> list[str]:
    """Names of all candidates for images with so many channels."""
    # Where pixels are normalised, their range is in mean and standard deviation.
    if channels != 3:
        return ["none", "half", f"none,{WHITE}"]
    names = [*NORMALISATIONS, f"none,{WHITE}"]
    return names + [f"{name},bgr" for name in names]


def choose_pixels(final: Sequence[Trial], discarded: Sequence[Trial] = (), *, classes: int, where: str) -> Pixels:
    """Preprocessing of the best of all trials, if it is surely better than chance and than every other.

    An exact test of McNemar against each other trial, corrected for their number (Bonferroni), and for two turns.

    Parameters
    ----------
    final : sequence of Trial
        The best first.
    discarded : sequence of Trial
        Those of the first turn.
    classes : int
        Number of classes among the labels.
    where : str
        File that errors name.

    Raises
    ------
    InputError
        With the table of accuracies and the option to write otherwise.
    """
    best, *others = final
    listing = table([*final, *discarded])
    by_chance = binomial_tail(int(best.right.sum()), len(best.right), 1 / classes)
    if best.accuracy <= 1 / classes or by_chance > ERROR:
        raise InputError(
            f"{where}: no preprocessing makes the model better than guessing:\n{listing}\nEither the labels "
            "are in another order than the outputs (add --labels, make: LABELS=), these are not its data, or its "
            "preprocessing is another; write it as --preprocessing mean=M/M/M,std=S/S/S (make: PREPROCESSING=)"
        )
    tests = 2 * (len(others) + len(discarded))
    close = [other for other in others if not clearly_better(best, other, tests=tests)]
    if close:
        raise InputError(
            f"{where}: nothing states how pixels are prepared, and {len(close) + 1} ways fit about equally well:\n"
            f"{listing}\nAdd the right one: --preprocessing {best.name} (make: PREPROCESSING={best.name})"
        )
    next_best = max(trial.accuracy for trial in [*others, *discarded])
    ways = 1 + len(others) + len(discarded)
    words = f"best of {ways} ways on {len(best.right)} images ({best.accuracy:.1%}, next {next_best:.1%})"
    return Pixels(best.settings, words)


def check_pixels(stated: Trial, others: Sequence[Trial], *, where: str) -> None:
    """Raise InputError, with the table, if another preprocessing than the one that is stated is surely better."""
    better = surely_better(stated, others)
    if better:
        raise InputError(
            f"{where}: the preprocessing {stated.name} gives {stated.accuracy:.1%}, but another way surely more:\n"
            f"{table([*others, stated])}\nIf the first is right, add --preprocessing {better[0].name} (make: "
            f"PREPROCESSING={better[0].name}); to keep what is stated, {option_of(stated.settings)}"
        )


def surely_better(reference: Trial, others: Sequence[Trial]) -> list[Trial]:
    """Those of the others that are right more often beyond chance, in their order."""
    return [other for other in others if clearly_better(other, reference, tests=len(others))]


def clearly_better(one: Trial, other: Trial, *, tests: int) -> bool:
    """Whether a trial is right more often than another beyond chance, by an exact test of McNemar at ERROR / tests."""
    gains = int((one.right & ~other.right).sum())
    losses = int((~one.right & other.right).sum())
    return gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR / tests


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """Probability of so many successes or more."""
    return float(binom.sf(successes - 1, trials, share))


def table(trials: Sequence[Trial]) -> str:
    """Accuracies of trials, a line each, the best first."""
    ordered = sorted(trials, key=lambda trial: -trial.accuracy)
    lines = [f"  {trial.name:<20} {trial.accuracy:6.1%}" for trial in ordered[:MOST_SHOWN]]
    return "\n".join(lines)


# ---- what files state ----


def read_json_file(path: Path) -> dict[str, Any]:
    """Mapping in a JSON file of a model; InputError for any other content."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download or copy it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no mapping; download or copy it again")
    return content


def pixels_of(mean: Any, std: Any, source: str, *, value_range: int = 1) -> Pixels | None:
    """Preprocessing with a mean and a standard deviation; None where they are no lists of numbers."""
    if not _are_numbers(mean) or not _are_numbers(std):
        return None
    settings = {**NEUTRAL, "value_range": value_range}
    if any(mean) or any(value != 1 for value in std):
        settings["mean"] = list(map(float, mean))
        settings["std"] = list(map(float, std))
    return Pixels(settings, source)


def _are_numbers(values: Any) -> bool:
    if not isinstance(values, Sequence) or not 0 < len(values) < 5:
        return False
    return all(isinstance(value, int | float) for value in values)


def of_timm(settings: Mapping[str, Any], source: str) -> dict[str, Any]:
    """`shape`, `pixels` and `resize` of a NewModel that a pretrained_cfg of timm states."""
    stated: dict[str, Any] = {"pixels": pixels_of(settings.get("mean"), settings.get("std"), source)}
    shape: Any = settings.get("input_size")
    if _are_numbers(shape) and len(shape) == 3:
        stated["shape"] = tuple(map(int, shape))
        side = stated["shape"][2]
        share = settings.get("crop_pct") or 1.0
        stated["resize"] = _center_crop(side, round(side / share), settings.get("interpolation"))
    return stated


def _center_crop(size: int, resize: int, interpolation: Any) -> dict[str, Any]:
    if interpolation not in ("bilinear", "bicubic"):
        interpolation = "bilinear"
    return {"method": "center_crop", "resize": max(resize, size), "size": size, "interpolation": interpolation}


def of_transformers(path: Path) -> dict[str, Any]:
    """The same of a preprocessor_config.json of transformers; an empty mapping where there is none."""
    if not path.is_file():
        return {}
    config = read_json_file(path)
    stated: dict[str, Any] = {}

    mean: Any = [0.0] * 3
    std: Any = [1.0] * 3
    if config.get("do_normalize", True):
        mean = config.get("image_mean", mean)
        std = config.get("image_std", std)
    factor = config.get("rescale_factor", 1 / WHITE) if config.get("do_rescale", True) else 1.0
    white = round(WHITE * factor) if isinstance(factor, int | float) else 0
    if white in (1, WHITE):
        stated["pixels"] = pixels_of(mean, std, path.name, value_range=white)

    size = _square_side(config.get("size"))
    crop = _square_side(config.get("crop_size"))
    interpolation = "bicubic" if config.get("resample") == 3 else "bilinear"
    if config.get("do_center_crop") and crop:
        stated["shape"] = (3, crop, crop)
        stated["resize"] = _center_crop(crop, size or crop, interpolation)
    elif size:
        stated["shape"] = (3, size, size)
        stated["resize"] = {"method": "squash", "size": size, "interpolation": interpolation}
    return stated


def _square_side(size: Any) -> int | None:
    # One number, or a mapping with equal height and width, or with the shortest edge.
    if isinstance(size, Mapping):
        sides = {size[key] for key in ("height", "width", "shortest_edge") if isinstance(size.get(key), int)}
        return sides.pop() if len(sides) == 1 else None
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    return None


def of_graph(model: onnx.ModelProto) -> Pixels | None:
    """Preprocessing that the first operators of an ONNX graph leave to do, None where they normalise nothing."""
    constants = _constants(model)
    inputs = [value.name for value in model.graph.input if value.name not in constants]
    if len(inputs) != 1:
        return None
    if input_type(model) == "uint8":
        return Pixels({**NEUTRAL, "value_range": WHITE}, "the input of 8 bits")

    offset, scale = _first_constants(model, inputs[0], constants)
    if offset is None and scale is None:
        return None
    # Means of pixels up to 255, or a division by numbers such as 255 or 58.
    white = WHITE if (offset or 0) > 2 or (scale or 0) > 2 else 1
    return Pixels({**NEUTRAL, "value_range": white}, "the first operators of the graph")


def _first_constants(
    model: onnx.ModelProto, value: str, constants: Mapping[str, NDArray[Any]]
) -> tuple[float | None, float | None]:
    # Sizes of what the first operators subtract from an input, and divide it by; None where they do not.
    offset = scale = None
    while True:
        users = [node for node in model.graph.node if value in node.input]
        if len(users) != 1:
            return offset, scale
        (node,) = users
        operands = [constants[name] for name in node.input if name != value and name in constants]
        is_arithmetic = node.op_type in ("Sub", "Add", "Div", "Mul") and len(operands) == 1
        if is_arithmetic and operands[0].size in (1, 3):
            size = float(np.abs(operands[0]).max())
            if node.op_type in ("Sub", "Add"):
                offset = size
            elif node.op_type == "Div":
                scale = size
            else:
                scale = 1 / size if size else None
        elif node.op_type not in VALUE_KEEPING:
            return offset, scale
        value = node.output[0]


def _constants(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    # onnx is drawn in by graphs alone.
    from onnx import numpy_helper

    constants = {}
    for tensor in model.graph.initializer:
        if len(tensor.dims) < 5:
            constants[tensor.name] = numpy_helper.to_array(tensor)
    for node in model.graph.node:
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and values:
            constants[node.output[0]] = numpy_helper.to_array(values[0])
    return constants
