"""What a user asks for: files, and what the files cannot say."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

DEFAULT_MINUTES = 5.0


@dataclass(frozen=True)
class Request:
    """Models and data of a new audit, and its options.

    `models`: files, folders or names; `data`: file or folder, None for labels that come with logits; `name` of the
    audit; `architecture`, `preprocessing` and `labels` as gfscore audit --help describes them; `norm` "linf" or "l2";
    `eps` radii, empty for the usual one; `size` of the images in pixels, None for what the model says; `minutes` that
    the audit may take; `trust_code`: whether files of code may be run; `device`: "auto", "cpu" or "cuda".
    """

    models: tuple[str, ...]
    data: str | None
    name: str | None = None
    architecture: str | None = None
    preprocessing: str | None = None
    labels: str | None = None
    norm: str = "linf"
    eps: tuple[str, ...] = ()
    size: int | None = None
    minutes: float = DEFAULT_MINUTES
    trust_code: bool = False
    device: str = "auto"

    def head(self) -> list[str]:
        """First lines of the audit's file."""
        given = " ".join([*self.models, *([self.data] if self.data else [])])
        return [f"Written by: gfscore audit {given}", "What is left out has its default: docs/configuring.md"]

    def text(self) -> str:
        """As JSON, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Request:
        """The request of such a text."""
        values = json.loads(text)
        return cls(**{**values, "models": tuple(values["models"]), "eps": tuple(values["eps"])})
