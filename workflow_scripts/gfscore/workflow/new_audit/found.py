"""What is found of a model before it is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gfscore.core.settings import LONGEST_NAME

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
