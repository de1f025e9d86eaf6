"""What a user asks for: files, and what the files cannot say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gfscore.core.settings import LONGEST_NAME

OF_NETWORKS = (
    "architecture", "preprocessing", "arrays", "value_range", "image_folder", "orientation", "norm", "eps", "size",
    "output", "device", "trust_code",
)  # fmt: skip
"""Options that say how images are read and shown to a network, in the order of the command's help."""


@dataclass(frozen=True)
class Request:
    """Models and data of a new audit, and its options.

    `models`: files, folders or names; `data`: file or folder, None for labels that come with logits; `name` of the
    audit; `architecture`, `preprocessing`, `labels`, `arrays`, `value_range` ("1", "255", "signed") and `image_folder`
    as gfscore audit --help describes them; `norm` "linf" or "l2"; `eps` radii, empty for the usual one; `size` of the
    images in pixels, None for what the model says; `orientation` "stored" or "exif", None for what fits better;
    `minutes` that the audit may take; `trust_code`: whether files of code may be run; `output`: name of the output with
    the logits, or its place from 0, None for the one that fits; `probabilities`: whether logarithms are taken of what
    models give that are probabilities alone; `device`: "auto", "cpu" or "cuda".
    """

    models: tuple[str, ...]
    data: str | None
    name: str | None = None
    architecture: str | None = None
    preprocessing: str | None = None
    labels: str | None = None
    norm: str = "linf"
    arrays: str | None = None
    value_range: str | None = None
    image_folder: str | None = None
    eps: tuple[str, ...] = ()
    size: int | None = None
    orientation: str | None = None
    minutes: float = 5.0
    trust_code: bool = False
    output: str | None = None
    probabilities: bool = False
    device: str = "auto"

    def is_given(self, option: str) -> bool:
        """Whether an option differs from its default."""
        return bool(getattr(self, option) != DEFAULTS[option])

    def text(self) -> str:
        """As JSON, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Request:
        """The request of such a text."""
        values = json.loads(text)
        return cls(**{**values, "models": tuple(values["models"]), "eps": tuple(values["eps"])})


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Request)}
"""Values of the options that no user names."""


# ---- What is found of a model before it is opened.


NEUTRAL: Mapping[str, Any] = {"channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
"""Preprocessing that leaves pixels in [0, 1] as they are."""


@dataclass(frozen=True)
class Pixels:
    """Preprocessing of pixels: the keys of NEUTRAL, and where it is stated, in words."""

    settings: Mapping[str, Any]
    said_by: str


@dataclass(frozen=True)
class FoundModel:
    """A model as its files describe it.

    `name`; `entry`: settings of its source, without its preprocessing; `words`: what it is; `shape`: (C, H, W) of its
    input, None where nothing states them; `pixels`: its preprocessing, None where nothing states it; `resize`: settings
    of the preprocessing of images that is stated beside, None for none; `labels`: names of its outputs, None where
    nothing states them; `copies`: files to copy, by their new paths.
    """

    name: str
    entry: Mapping[str, Any]
    words: str
    shape: tuple[int, int, int] | None = None
    pixels: Pixels | None = None
    resize: Mapping[str, Any] | None = None
    labels: Sequence[str] | None = None
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_logits_only(self) -> bool:
        """Whether it is a file of logits, which no image can be shown to."""
        return self.entry["source"] == "logits"


@dataclass
class Inspection:
    """What was found: `name` and `text` of the audit, `said` in lines, files to copy by their new paths.

    `sections`: what the text must be read as.
    """

    name: str
    text: str
    sections: Mapping[str, Any]
    said: list[str]
    copies: dict[str, str] = field(default_factory=dict)


def name_from(text: str) -> str:
    """Name that paths may hold, made of any text."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:LONGEST_NAME] or "model"


def module_name(file: Path) -> str:
    """Name of the module that a Python file becomes in architectures/."""
    return re.sub(r"\W", "_", file.stem)
