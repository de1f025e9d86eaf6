"""The page that links the audits of a run: verdict, dashboard, report and tables of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gfscore.show.dashboard.templates import environment, text_of


def render_index(verdicts: Mapping[str, Mapping[str, Any]], *, titles: Mapping[str, str]) -> str:
    """The page as text, from the contents of verdict.json and the title of each audit, by its name."""
    audits = [
        {"name": name, "title": titles[name], "verdict": verdict["verdict"], "rules": verdict["rules"]}
        for name, verdict in verdicts.items()
    ]
    return environment().get_template("index.html").render(audits=audits, style=text_of("dashboard.css"))
