"""Resolving a configuration: from what the user wrote to the complete settings of a run."""

from typing import Any

from pydantic import BaseModel

from gfscore.audit.calibration.calibration_settings import GreatSettings
from gfscore.audit.settings import (
    CheckSettings,
    ComparisonSettings,
    ConfusionSettings,
    DisparitySettings,
    IntervalSettings,
)
from gfscore.core.errors import unknown
from gfscore.images.attribute_source import attribute_sources
from gfscore.images.dataset_source import dataset_sources
from gfscore.networks import leaderboard
from gfscore.networks.device_choice import InferenceSettings
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.show.page.page_settings import ReportSettings
from gfscore.workflow.config_files import Marked
from gfscore.workflow.resolution import Resolution, State
from gfscore.workflow.resolving_audits import resolve_audits, resolve_measures, resolve_run
from gfscore.workflow.resolving_models import expand_models, name_files, resolve_models

WHOLE: dict[str, type[BaseModel]] = {
    "checks": CheckSettings,
    "inference": InferenceSettings,
    "great": GreatSettings,
    "intervals": IntervalSettings,
    "disparity": DisparitySettings,
    "confusions": ConfusionSettings,
    "comparison": ComparisonSettings,
    "report": ReportSettings,
}
"""Sections that are settings themselves, with their models."""

ENTRIES = ("audits", "datasets", "models", "measures", "mappers")
"""Sections of entries, by names that the user chooses."""

SECTIONS = ("run", *ENTRIES, *WHOLE)


def resolve(written: Marked) -> Resolution:
    """Resolve a configuration from read_configuration, which is changed.

    Raises InputError, listing the mistakes with file, line, value, the nearest known name and the remedy, for unknown
    keys, invalid values, and unknown names that a derived name, a source or a default depends on
    (gfscore.workflow.configuration checks the other names).
    """
    state = State(written, {section: {} for section in SECTIONS})
    for key in written:
        if key not in SECTIONS:
            state.add_mistake(unknown("section", key, SECTIONS), key)
    for section in (*ENTRIES, *WHOLE):
        state.require_mapping(section)
    state.stop_at_mistakes()
    for section, model in WHOLE.items():
        found = state.parsed(model, written[section], (section,))
        state.config[section] = found.model_dump() if found else {}
    name_files(state)
    expand_models(state)
    _resolve_datasets(state)
    resolve_models(state)
    resolve_measures(state)
    for name, entry in state.entries("mappers"):
        kind = state.choose("kind", entry, mapper_kinds(), ("mappers", name))
        found = kind and state.parsed(kind.settings, entry, ("mappers", name))
        state.config["mappers"][name] = found and found.explicit()
    state.stop_at_mistakes()
    resolve_audits(state)
    resolve_run(state)
    state.stop_at_mistakes()
    return Resolution(state.config, written)


def _resolve_datasets(state: State) -> None:
    zoos = dict.fromkeys([*state.written["models"], *(listing.dataset for listing in leaderboard.listings())])
    resolved = state.config["datasets"]
    for name, entry in state.entries("datasets"):
        place = ("datasets", name)
        source = state.choose("source", entry, dataset_sources(), place)
        found = source and state.parsed(source.settings, {**entry, "source": source.name}, place)
        if not found:
            continue
        resolved[name] = explicit = found.explicit()
        if explicit["classes"] is None:
            explicit["classes"] = source.class_names(found)
        if "models_of" not in found.model_fields_set:
            explicit["models_of"] = name if name in zoos else None
        elif explicit["models_of"] not in (None, *zoos):
            state.add_mistake(unknown("zoo", explicit["models_of"], zoos), *place, "models_of")
            del resolved[name]
        if explicit["attributes"] is not None:
            explicit["attributes"] = _attributes(state, name)
    for explicit in resolved.values():
        if explicit["source"] == "generated" and explicit["classes"] is None:
            # A generator has the classes of the dataset that it is fitted on.
            explicit["classes"] = resolved.get(explicit["fitted_on"], {}).get("classes")


def _attributes(state: State, dataset: str) -> Any:
    place = ("datasets", dataset, "attributes")
    state.require_mapping(*place)
    entry = state.written["datasets"][dataset]["attributes"]
    source = state.choose("source", entry, attribute_sources(), place)
    found = source and state.parsed(source.settings, entry, place)
    return found.explicit() if found else None
