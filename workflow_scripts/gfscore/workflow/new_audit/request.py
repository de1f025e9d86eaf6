"""Request of a user, and result of its inspection: plain values that two processes exchange."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from gfscore.core.settings import LONGEST_NAME, Norm

NETWORK_OPTIONS = (
    "architecture", "preprocessing", "arrays", "value_range", "image_folder", "orientation", "norm", "eps", "size",
    "output", "device", "trust_code",
)  # fmt: skip
"""Options that apply to networks only, in the order of the command's help."""

MOST_OPTIONS = 4
"""Choices that a message lists."""


@dataclass(frozen=True)
class Request:
    """Models and data of a new audit, and its options.

    Parameters
    ----------
    models : tuple of str
        Files, folders or names of networks.
    data : str or None
        File or folder; None for labels that come with logits.
    name : str, optional
        Name of the audit.
    architecture, preprocessing, labels, arrays, value_range, image_folder : str, optional
        As gfscore audit --help describes them.
    norm : {"linf", "l2"}
        Norm of the attacks.
    eps : tuple of str
        Radii; empty for the usual one.
    size : int, optional
        Side of the images in pixels; None for what the model states.
    orientation : {"stored", "exif"}, optional
        How images are read; None for what fits the labels better.
    minutes : float
        Minutes that the audit may take.
    trust_code : bool
        Whether files of code may be run.
    output : str, optional
        Name of the output with the logits, or its place from 0; None for the one that fits.
    probabilities : bool
        Whether logarithms are taken where a model gives probabilities alone.
    device : {"auto", "cpu", "cuda"}
        Where the models run.
    """

    models: tuple[str, ...]
    data: str | None
    name: str | None = None
    architecture: str | None = None
    preprocessing: str | None = None
    labels: str | None = None
    norm: Norm = "linf"
    arrays: str | None = None
    value_range: str | None = None
    image_folder: str | None = None
    eps: tuple[str, ...] = ()
    size: int | None = None
    orientation: Literal["stored", "exif"] | None = None
    minutes: float = 5.0
    trust_code: bool = False
    output: str | None = None
    probabilities: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def differs_from_default(self, option: str) -> bool:
        """Whether an option differs from its default."""
        return bool(getattr(self, option) != DEFAULTS[option])

    def to_json(self) -> str:
        """Text for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Request that `to_json` wrote."""
        values = json.loads(text)
        values["models"] = tuple(values["models"])
        values["eps"] = tuple(values["eps"])
        return cls(**values)


DEFAULTS: dict[str, Any] = {option.name: option.default for option in fields(Request)}
"""Default of each option."""


@dataclass(frozen=True)
class Inspection:
    """Result of an inspection: the audit that would be run.

    Parameters
    ----------
    name : str
        Name of the audit.
    text : str
        Its configuration as YAML.
    lines : list of str
        Messages for the user.
    copies : dict
        Files to copy, by their new paths.
    """

    name: str
    text: str
    lines: list[str]
    copies: dict[str, str] = field(default_factory=dict)


def name_from(text: str) -> str:
    """Name that is valid in paths, made of any text."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")
    return name[:LONGEST_NAME] or "model"


def module_name(file: Path) -> str:
    """Name of the module that a Python file becomes in architectures/."""
    return re.sub(r"\W", "_", file.stem)
