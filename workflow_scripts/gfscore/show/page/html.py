"""Text of self-contained pages: their templates, style, scripts and packed data. They need no server and no network."""

import base64
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gfscore.core.names import printable
from gfscore.core.numbers import count, setting

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("numbers.js", "data.js", "tracks.js", "controls.js", "charts.js", "main.js")
GLYPHS = {"PASS": "✓", "FAIL": "×", "INCONCLUSIVE": "?"}
"""Verdict -> the sign that repeats what its colour says."""


@cache
def environment() -> Environment:
    """Jinja environment of the pages; every name is escaped."""
    result = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters["printable"] = printable
    result.filters["count"] = count
    result.filters["setting"] = setting
    result.filters["glyph"] = GLYPHS.get
    return result


def text_of(name: str) -> str:
    """Text of a file in the folder of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def style_and_script() -> dict[str, str]:
    """Variables of the template: `style`, `script`, and the `policy` under which that script runs."""
    texts = [text_of(name) for name in SCRIPTS]
    script = "\n".join(["(() => {", '"use strict";', *texts, "})();"])
    # Under this content security policy nothing else runs, and no request is allowed.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    return {"style": text_of("page.css"), "script": script, "policy": policy}


def compressed(value: Any) -> str:
    """JSON of a value as base64 of gzip.

    The same on every run; nothing in it can end a script element.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
