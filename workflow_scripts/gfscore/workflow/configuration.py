"""Complete and consistent configuration of a run, from files and the command line."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError, unknown
from gfscore.measures import KINDS
from gfscore.networks import leaderboard
from gfscore.workflow import plan
from gfscore.workflow.audit_checks import attribute_mistakes, audit_mistakes
from gfscore.workflow.config_files import Place, read_configuration, shown_path
from gfscore.workflow.resolution import Resolution, message_of
from gfscore.workflow.resolving import resolve
from gfscore.workflow.setting_mistakes import ConfigMistake
from gfscore.workflow.user_files import path_mistakes

SHIPPED = "config.yaml"
"""Default configuration file: the demo."""

ENDS = ("</", "<!--")
"""Strings that end a script in an HTML page, or change where it ends, even within quotes."""


def configured(paths: Iterable[Path | str], given: Mapping[str, Any], *, thorough: bool = True) -> Resolution:
    """Complete configuration from files, by default the file SHIPPED, and the command line (`given`).

    `thorough` includes the slowest check: whether the sequential tests of the audits to run can reach a decision.
    Raises InputError, listing the mistakes of the first stage that finds any, each with file, line, value, the nearest
    known name and the remedy.
    """
    files = list(paths) or [SHIPPED]
    resolution = resolve(read_configuration(files, given))
    resolution = replace(resolution, files=tuple(map(shown_path, files)), given=given)
    require_consistent(resolution, thorough=thorough)
    return resolution


def require_consistent(resolution: Resolution, *, thorough: bool = True) -> None:
    """Raise InputError unless the names in a resolved configuration exist and its entries are consistent."""
    mistakes = [*_mistakes(resolution.config)]
    if thorough and not mistakes:
        mistakes = [*_test_mistakes(resolution.config)]
    if mistakes:
        raise InputError(message_of(mistakes, resolution.written))


def _mistakes(config: dict[str, Any]) -> Iterator[ConfigMistake]:
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                place: Place = ("models", zoo, threat, name)
                yield from path_mistakes(place, entry)
                yield from _dataset_names(config, place, entry, "train_on", "evaluate_on")
    for name, entry in config["datasets"].items():
        yield from path_mistakes(("datasets", name), entry)
        for key in ("corrupted", "generator"):
            yield from path_mistakes(("datasets", name, key), entry.get(key, {}))
        yield from _dataset_names(config, ("datasets", name), entry, "fitted_on")
        rates, classes = entry["label_error_rate"], entry["classes"]
        if isinstance(rates, list) and classes and len(rates) != len(classes):
            message = f"{len(rates)} rates for {len(classes)} classes; give one for each"
            yield ConfigMistake(("datasets", name, "label_error_rate"), message)
        attributes = entry["attributes"]
        if attributes is not None:
            place = ("datasets", name, "attributes")
            yield from path_mistakes(place, attributes)
            yield from _dataset_names(config, place, attributes, "fixed_on")
    for name, entry in config["measures"].items():
        yield from measure_mistakes(("measures", name), entry)
    for name, entry in config["mappers"].items():
        yield from _mapper_mistakes(config, name, entry)
    for name, audit in config["audits"].items():
        yield from audit_mistakes(config, name, audit)
    yield from _text_mistakes(config)
    yield from case_mistakes(config)


def measure_mistakes(
    place: Place, entry: Mapping[str, Any], *, classes: int | None = None, thorough: bool = False
) -> Iterator[ConfigMistake]:
    """Yield the mistakes in a measure's settings beyond their types; `classes` is their number, None if unknown."""
    kind = KINDS[entry["kind"]]
    for found in kind.mistakes(kind.parse(entry), classes=classes, thorough=thorough):
        yield ConfigMistake((*place, *found.key), found.words)


def _test_mistakes(config: dict[str, Any]) -> Iterator[ConfigMistake]:
    measures = {name: entry for audit in config["run"] for name, entry in plan.measures_of(config, audit).items()}
    for name, entry in measures.items():
        yield from measure_mistakes(("measures", name), entry, thorough=True)


def _dataset_names(
    config: dict[str, Any], place: Place, entry: Mapping[str, Any], *keys: str
) -> Iterator[ConfigMistake]:
    for key in keys:
        name = entry.get(key)
        if name is not None and name not in config["datasets"]:
            yield ConfigMistake((*place, key), unknown("dataset", name, config["datasets"]))


def _mapper_mistakes(config: dict[str, Any], name: str, entry: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    for key in ("train_on", "evaluate_on"):
        yield from _dataset_names(config, ("mappers", name), entry, key)
        if entry[key] in config["datasets"]:
            yield from attribute_mistakes(config, ("mappers", name, key), entry, entry[key])


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


def _text_mistakes(config: Mapping[str, Any]) -> Iterator[ConfigMistake]:
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
