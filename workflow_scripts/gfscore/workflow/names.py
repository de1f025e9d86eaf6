"""Checks of names and texts that file systems, Snakemake or the page of its report would misinterpret.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gfscore.networks import leaderboard
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place
from gfscore.workflow.setting_mistakes import ConfigMistake

RESERVED_CHARACTERS = set("{}<>")
"""Characters with a meaning for Snakemake in file names."""

INVALID_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
"""Error codes of the system for invalid paths."""

ENDS = ("</", "<!--")
"""Strings that end a script in an HTML page, or change where it ends, even within quotes."""


def case_mistakes(config: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield names in one section that differ only in case, which on macOS and Windows would share their files."""
    sections: dict[Place, Any] = {(name,): config[name] for name in ("audits", "datasets", "measures", "mappers")}
    # Includes RobustBench's models, which need no entry.
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
                message = f"{what} differ only in case and would share files on macOS; rename one"
                yield ConfigMistake((*place, names[-1]), message)


def path_mistakes(place: Place, entry: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield the invalid paths of an entry and those that Snakemake would misinterpret."""
    for key in ("path", "list"):
        path = entry.get(key)
        if not isinstance(path, str):
            continue
        try:
            Path(path).stat()
        except (OSError, ValueError) as error:
            # A null byte, half a surrogate pair, or a name or path that is too long for the file system.
            if isinstance(error, ValueError) or error.errno in INVALID_PATH:
                reason = getattr(error, "strerror", None) or error
                yield ConfigMistake((*place, key), f"no file can have the path {path[:100]!r} ({reason}); correct it")
        if set(path) & RESERVED_CHARACTERS:
            message = f"{path!r} contains braces or angle brackets, which Snakemake interprets; rename it"
            yield ConfigMistake((*place, key), message)


def text_mistakes(config: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield titles, contacts and architectures that would end a script of Snakemake's report."""
    texts: dict[Place, Any] = {("report", "contact"): config["report"]["contact"]}
    texts |= {("audits", name, "title"): audit["title"] for name, audit in config["audits"].items()}
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                texts["models", zoo, threat, name, "architecture"] = entry.get("architecture")
    for place, text in texts.items():
        for end in ENDS:
            if end in (text or ""):
                yield ConfigMistake(place, f"{end} in {text!r} would end a script of Snakemake's report; leave it out")
