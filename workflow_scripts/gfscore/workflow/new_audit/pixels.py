"""Preprocessing of pixels that nothing states: candidates tried on labelled images."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
ERROR = 0.01
"""Probability that a choice is wrong by chance."""

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Trial:
    """A candidate: its name, its settings (the keys of NEUTRAL), and which of the images it classifies correctly."""

    name: str
    settings: Mapping[str, Any]
    right: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Share of the images that are classified correctly."""
        return float(self.right.mean())


def settings_of(name: str, *, channels: int = 3) -> dict[str, Any]:
    """Settings of a candidate by its name, "imagenet,bgr,255"; of one channel, the mean of three.

    Also mean=0.4/0.4/0.4,std=0.2/0.2/0.2 in place of the first part, in the network's order and range. Raises
    InputError for anything else.
    """
    order, white, mean, std, known = "rgb", 1, None, None, True
    for part in name.split(","):
        key, _, values = part.strip().partition("=")
        if part in ("rgb", "bgr"):
            order = part
        elif part in ("1", str(WHITE)):
            white = int(part)
        elif part in NORMALISATIONS:
            mean, std = NORMALISATIONS[part] or (None, None)
            if mean and "bgr" in name.split(","):
                mean, std = mean[::-1], std and std[::-1]
        elif key in ("mean", "std") and (numbers := _numbers(values)):
            mean, std = (numbers, std) if key == "mean" else (mean, numbers)
        else:
            known = False
    if not known:
        raise InputError(
            f"--preprocessing {name}: give {', '.join(NORMALISATIONS)}, or mean=M/M/M,std=S/S/S, and where they apply "
            "bgr and 255: imagenet,bgr"
        )
    if channels == 1 and mean and len(mean) > 1:
        mean, std = [float(np.mean(mean))], [float(np.mean(std))] if std else None
    if mean and max(mean) > white:
        raise InputError(
            f"--preprocessing {name}: a mean of {max(mean):g} is one of pixels up to {WHITE}; add ,{WHITE} where the "
            f"network takes these, else divide mean and std by {WHITE}"
        )
    scale = white if all(value <= 1 for value in mean or ()) else 1
    return {
        "channel_order": order,
        "value_range": white,
        "mean": mean and [value * scale for value in mean],
        "std": std and [value * scale for value in std],
    }


def _numbers(text):
    try:
        return [float(part) for part in text.split("/")]
    except ValueError:
        return None


def try_all(run: Run, images: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str]) -> list[Trial]:
    """Trials of candidates by their names, the best first.

    `run` maps images (n, C, H, W) as the network takes them to logits, whose columns are in the order of the labels
    (n,); `images` have pixels in [0, 1].
    """
    channels = images.shape[1]
    trials = []
    for name in names:
        settings = settings_of(name, channels=channels)
        logits = run(preprocess(images, {**settings, "image_shape": images.shape[1:]}, where=name))
        trials.append(Trial(name, settings, logits.argmax(axis=1) == labels))
    return sorted(trials, key=lambda trial: -trial.accuracy)


def try_in_turns(
    run: Run, images: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str], *, first: int
) -> tuple[list[Trial], list[Trial]]:
    """Trials on all images of the candidates that `first` images leave, and of the others on these.

    A candidate is left out if it is surely worse than the best: for networks that take long. Arguments as try_all.
    """
    rows = np.linspace(0, len(labels) - 1, min(first, len(labels))).astype(int)
    best, *others = try_all(run, images[rows], labels[rows], names)
    tests = 2 * len(others)
    left = [best, *(other for other in others if not clearly_better(best, other, tests=tests))]
    out = [other for other in others if other not in left]
    if len(rows) < len(labels) and len(left) > 1:
        left = try_all(run, images, labels, [trial.name for trial in left])
    return left, out


def candidates(channels: int) -> list[str]:
    """Names of all candidates for images with so many channels."""
    # Where pixels are normalised, their range is in mean and standard deviation.
    plain = [*NORMALISATIONS, f"none,{WHITE}"] if channels == 3 else ["none", "half", f"none,{WHITE}"]
    orders = ["", ",bgr"] if channels == 3 else [""]
    return [f"{name}{order}" for order in orders for name in plain]


def choose_pixels(trials: Sequence[Trial], out: Sequence[Trial] = (), *, classes: int, where: str) -> Pixels:
    """Preprocessing of the best of all trials, if it is surely better than chance and than every other.

    An exact test of McNemar against each other, corrected for their number (Bonferroni), and for two turns; `out` are
    those that the first turn left out. Raises InputError with the table of accuracies and the option to write
    otherwise.
    """
    best, *others = trials
    shown = table([*trials, *out])
    if best.accuracy <= 1 / classes or binomial_tail(int(best.right.sum()), len(best.right), 1 / classes) > ERROR:
        raise InputError(
            f"{where}: no preprocessing makes the model better than guessing:\n{shown}\nEither the labels "
            "are in another order than the outputs (add --labels, make: LABELS=), these are not its data, or its "
            "preprocessing is another; write it as --preprocessing mean=M/M/M,std=S/S/S (make: PREPROCESSING=)"
        )
    tests = 2 * (len(others) + len(out))
    close = [other for other in others if not clearly_better(best, other, tests=tests)]
    if close:
        raise InputError(
            f"{where}: nothing states how pixels are prepared, and {len(close) + 1} ways fit about equally well:\n"
            f"{shown}\nAdd the right one: --preprocessing {best.name} (make: PREPROCESSING={best.name})"
        )
    beaten = max(trial.accuracy for trial in [*others, *out])
    ways = 1 + len(others) + len(out)
    words = f"best of {ways} ways on {len(best.right)} images ({best.accuracy:.1%}, next {beaten:.1%})"
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


def surely_better(one: Trial, others: Sequence[Trial]) -> list[Trial]:
    """Those of the others that are right more often beyond chance, the best first as they come."""
    return [other for other in others if clearly_better(other, one, tests=len(others))]


def option_of(settings: Mapping[str, Any]) -> str:
    """Value of --preprocessing that stands for these settings."""
    named = next((name for name in candidates(3) if settings_of(name) == dict(settings)), None)
    if named:
        return named
    order = [settings["channel_order"]] if settings["channel_order"] != "rgb" else []
    white = [str(settings["value_range"])] if settings["value_range"] != 1 else []
    constants = [
        f"{key}={'/'.join(f'{value:g}' for value in settings[key])}"
        for key in ("mean", "std")
        if settings[key] is not None
    ]
    return ",".join([*(constants or ["none"]), *order, *white])


def clearly_better(one: Trial, other: Trial, *, tests: int) -> bool:
    """Whether a trial is right more often than another beyond chance, by an exact test of McNemar at ERROR / tests."""
    gains, losses = int((one.right & ~other.right).sum()), int((~one.right & other.right).sum())
    return gains > losses and binomial_tail(gains, gains + losses, 0.5) <= ERROR / tests


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """Probability of so many successes or more."""
    from scipy.stats import binom

    return float(binom.sf(successes - 1, trials, share))


def table(trials: Sequence[Trial]) -> str:
    """Accuracies of trials, a line each, the best first."""
    ordered = sorted(trials, key=lambda trial: -trial.accuracy)[:8]
    return "\n".join(f"  {trial.name:<20} {trial.accuracy:6.1%}" for trial in ordered)


def words_of(settings: Mapping[str, Any]) -> str:
    """Preprocessing in a few words."""
    words = [settings["channel_order"].upper(), f"0 to {settings['value_range']}"]
    if settings["mean"] is not None or settings["std"] is not None:
        near = next((name for name, values in NORMALISATIONS.items() if _same(settings, values)), None)
        said = [
            f"{key} {' '.join(f'{value:.4g}' for value in settings[key])}"
            for key in ("mean", "std")
            if settings[key] is not None
        ]
        words.append(", ".join(said) + (f" ({near})" if near else ""))
    else:
        words.append("not normalised")
    return ", ".join(words)


def _same(settings, values):
    if values is None:
        return False
    scale = settings["value_range"]
    pairs = zip((settings["mean"], settings["std"]), values, strict=True)
    return all(
        have is not None and np.allclose(have, np.multiply(want, scale), atol=1e-3 * scale) for have, want in pairs
    )


# ---- Preprocessing that the files of a model state.


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
    if mean is None or std is None or not (_numbers_stated(mean) and _numbers_stated(std)):
        return None
    neutral = not any(mean) and all(value == 1 for value in std)
    constants = {} if neutral else {"mean": list(map(float, mean)), "std": list(map(float, std))}
    return Pixels({**NEUTRAL, "value_range": value_range, **constants}, said_by)


def _numbers_stated(values):
    return isinstance(values, Sequence) and 0 < len(values) < 5 and all(isinstance(v, int | float) for v in values)


def of_timm(settings: Mapping[str, Any], said_by: str) -> dict[str, Any]:
    """`shape`, `pixels` and `resize` that a pretrained_cfg of timm states, for FoundModel."""
    shape: Any = settings.get("input_size")
    given: dict[str, Any] = {"pixels": pixels_of(settings.get("mean"), settings.get("std"), said_by)}
    if _numbers_stated(shape) and len(shape) == 3:
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
