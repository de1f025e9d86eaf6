"""Resolving a configuration: from what the user wrote to the complete settings of a run."""

from gfscore.core.errors import unknown_name
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow.audit_settings import RunSettings
from gfscore.workflow.config_files import Marked, shown
from gfscore.workflow.resolution import Draft, Resolution
from gfscore.workflow.resolving_audits import derive_remedy, resolve_audits
from gfscore.workflow.resolving_entries import (
    expand_models,
    measure_settings,
    name_files,
    require_adjustable,
    resolve_datasets,
    resolve_models,
)

SETTINGS = RunSettings.sections()
"""Sections that hold settings, with the class of these."""

ENTRIES = ("audits", "datasets", "models", "measures", "mappers")
"""Sections that hold entries under names that the user chooses."""

SECTIONS = ("run", *ENTRIES, *SETTINGS)


def resolve(written: Marked) -> Resolution:
    """Complete configuration of what the user wrote.

    Parameters
    ----------
    written : Marked
        Configuration from read_configuration; it is changed (see Draft).

    Returns
    -------
    Resolution
        Every setting; those that the user left out have their defaults.

    Raises
    ------
    InputError
        Listing the mistakes with file, line, value, the nearest known name and the remedy: unknown keys, invalid
        values, and unknown names that a derived name, a source or a default depends on. Other names are checked by
        gfscore.workflow.configuration.
    """
    draft = Draft(written, {section: {} for section in SECTIONS})
    for key in written:
        if key not in SECTIONS:
            draft.add_mistake(unknown_name("section", key, SECTIONS), key)
    for section in (*ENTRIES, *SETTINGS):
        draft.require_mapping(section)
    draft.stop_at_mistakes()

    for section, settings_class in SETTINGS.items():
        settings = draft.parsed(settings_class, written[section], (section,))
        draft.config[section] = settings.model_dump() if settings else {}
    name_files(draft)
    expand_models(draft)
    resolve_datasets(draft)
    resolve_models(draft)
    for name, entry in draft.entries("measures"):
        draft.config["measures"][name] = measure_settings(draft, entry, ("measures", name))
    for name, entry in draft.entries("mappers"):
        draft.config["mappers"][name] = draft.explicit("kind", entry, mapper_kinds(), ("mappers", name))
    require_adjustable(draft)
    draft.stop_at_mistakes()

    resolve_audits(draft)
    resolve_run(draft)
    draft.stop_at_mistakes()
    # Only now, so that the models that remedies add are not among those that patterns and defaults of audits mean.
    for name in draft.config["audits"]:
        derive_remedy(draft, name)
    draft.stop_at_mistakes()
    return Resolution(draft.config, written)


def resolve_run(draft: Draft) -> None:
    """Resolve `run`, a list of audits or the name of one; all audits by default."""
    audits = draft.written["audits"]
    run = draft.written.get("run")
    if run is None:
        run = list(audits)
    elif isinstance(run, str):
        run = [run]
    if not isinstance(run, list) or not run or not all(isinstance(name, str) for name in run):
        draft.add_mistake(f"{shown(run)} does not fit; give a list of audits", "run")
        return

    for position, name in enumerate(run):
        if name in run[:position]:
            draft.add_mistake(f"{name!r} is listed more than once; list it once", "run", position)
        elif name not in audits:
            draft.add_mistake(unknown_name("audit", name, audits), "run", position)
    draft.config["run"] = list(run)
