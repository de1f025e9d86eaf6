"""Names and texts of a configuration that others read: file systems, Snakemake, and the page of its report.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gfscore.networks import leaderboard
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place
from gfscore.workflow.setting_mistakes import Mistake

OF_SNAKEMAKE = set("{}<>")
"""Characters that mean something to Snakemake in the name of a file."""

NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
"""Errors of the system for a path that no file can have."""

ENDS = ("</", "<!--")
"""What ends a script in a page, or changes where it ends, even within quotes."""


def case_mistakes(config: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the names of one section that differ in case alone: on macOS and Windows they would share their files."""
    sections: dict[Place, Any] = {(name,): config[name] for name in ("audits", "datasets", "measures", "mappers")}
    # RobustBench's models need no entry, so its names are there as well.
    zoos = [*config["models"], *(listing.dataset for listing in leaderboard.listings())]
    sections["models",] = dict.fromkeys(zoos)
    for zoo, threats in config["models"].items():
        sections |= {("models", zoo, threat): plan.known_models(config, zoo, threat) for threat in threats}
    for place, entries in sections.items():
        alike: dict[str, list[str]] = {}
        for name in entries:
            alike.setdefault(name.casefold(), []).append(name)
        for names in alike.values():
            if len(names) > 1:
                what = " and ".join(map(repr, names))
                words = f"{what} differ in case alone and would share files on macOS; rename one"
                yield Mistake((*place, names[-1]), words)


def path_mistakes(place: Place, entry: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the paths of an entry that no file can have, or that Snakemake would read otherwise."""
    for key in ("path", "list"):
        path = entry.get(key)
        if not isinstance(path, str):
            continue
        try:
            Path(path).stat()
        except (OSError, ValueError) as error:
            # A null byte, half a character, or a name or path longer than the file system takes.
            if isinstance(error, ValueError) or error.errno in NO_PATH:
                reason = getattr(error, "strerror", None) or error
                yield Mistake((*place, key), f"no file can have the path {path[:100]!r} ({reason}); correct it")
        if set(path) & OF_SNAKEMAKE:
            words = f"Snakemake takes braces and angle brackets in {path!r} for its own; rename it"
            yield Mistake((*place, key), words)


def text_mistakes(config: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield titles, contacts and architectures that would end a script of Snakemake's own report."""
    texts: dict[Place, Any] = {("report", "contact"): config["report"]["contact"]}
    texts |= {("audits", name, "title"): audit["title"] for name, audit in config["audits"].items()}
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                texts["models", zoo, threat, name, "architecture"] = entry.get("architecture")
    for place, text in texts.items():
        for end in ENDS:
            if end in (text or ""):
                yield Mistake(place, f"{end} in {text!r} would end a script of Snakemake's report; leave it out")
