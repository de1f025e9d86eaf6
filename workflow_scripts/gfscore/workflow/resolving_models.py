"""Resolving models: defaults of their zoo, files that audits name, and sources that follow from other keys."""

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

from gfscore.core.errors import unknown
from gfscore.networks.model_source import model_sources
from gfscore.networks.sources import robustbench
from gfscore.workflow.config_files import Mark, Marked, MarkedList, merge, shown
from gfscore.workflow.plan import CHECKPOINTS
from gfscore.workflow.resolution import State

THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; "none" for models without a particular one."""

DEFAULTS = "defaults"
"""Key of a zoo, beside the threat models, for the defaults of its entries."""

REPLACED_KEYS = ("arguments",)
"""Mappings of a model that replace the defaults as a whole, since they belong to its architecture."""

CLAIMED_BY_FILE = ("onnx", "logits", "samples")
"""Sources of models that need only a file, without further settings."""


def name_files(state: State) -> None:
    """Add an entry for each file that an audit names as a model, in the zoo of the audit's dataset.

    Its name is the file's without extension, followed by four characters of its digest if another file has that name.
    """
    for entry in state.written["audits"].values():
        names: Any = entry.get("models") if isinstance(entry, Marked) else None
        dataset = state.written["datasets"].get(entry.get("dataset")) if isinstance(names, MarkedList) else None
        if not isinstance(dataset, Marked):
            continue
        zoo = dataset.get("models_of") or entry["dataset"]
        for position, name in enumerate(names):
            if isinstance(name, str) and _is_file(state, name):
                names[position] = f"{zoo}/none/{_entry_of_file(state, zoo, name, names.marks[position])}"


def _is_file(state: State, name: str) -> bool:
    part: Any = state.written["models"]
    for step in name.split("/"):
        part = part.get(step) if isinstance(part, Marked) else None
    return part is None and any(model_sources()[source].claims({"path": name}) for source in CLAIMED_BY_FILE)


def _entry_of_file(state: State, zoo: str, path: str, mark: Mark) -> str:
    place = state.written["models"]
    for step in (zoo, "none"):
        if not isinstance(place.get(step), Marked):
            place[step] = Marked()
            place.marks[step] = mark
        place = place[step]
    name = PurePosixPath(path).name.removesuffix(".gz").rpartition(".")[0]
    if name in place and place[name].get("path") != path:
        content = Path(path).read_bytes() if Path(path).is_file() else path.encode()
        name = f"{name}-{hashlib.sha256(content).hexdigest()[:4]}"
    place[name] = Marked({"path": path}, {"path": mark})
    place.marks[name] = mark
    return name


def expand_models(state: State) -> None:
    """Merge the defaults of each zoo into its entries."""
    for zoo, threats in state.entries("models"):
        shared = threats.pop(DEFAULTS, None)
        if shared is not None and not isinstance(shared, Marked):
            state.add_mistake(f"{shown(shared)} does not fit; give a mapping", "models", zoo, DEFAULTS)
            shared = None
        for threat in list(threats):
            if threat not in THREATS:
                state.add_mistake(unknown("threat", threat, [*THREATS, DEFAULTS]), "models", zoo, threat)
                continue
            state.require_mapping("models", zoo, threat)
            # Entries that an alias shares with another zoo stay without the defaults of this one.
            threats[threat] = Marked(threats[threat], threats[threat].marks)
            for name, entry in state.entries("models", zoo, threat):
                threats[threat][name] = entry if shared is None else merge(shared, entry, whole=REPLACED_KEYS)


def resolve_models(state: State) -> None:
    """Resolve the section `models`; models must be expanded and datasets resolved."""
    for zoo, threats in state.written["models"].items():
        found = state.config["models"].setdefault(zoo, {})
        for threat in THREATS:
            if threat in threats:
                found[threat] = {}
                for name, entry in threats[threat].items():
                    if isinstance(entry, Marked):
                        found[threat][name] = _model(state, entry, zoo, threat, name)


def _model(state: State, entry: Marked, zoo: str, threat: str, name: str) -> Any:
    place = ("models", zoo, threat, name)
    source = state.choose("source", entry, model_sources(), place)
    if source is None:
        return None
    data = {**entry, "source": source.name}
    if source is robustbench.SOURCE:
        data = robustbench.completed(data, zoo, threat, name, folder=CHECKPOINTS)
    found = state.parsed(source.settings, data, place)
    explicit = found.explicit() if found else None
    if explicit and "evaluate_on" in explicit and explicit["evaluate_on"] is None:
        evaluating = [of for of, dataset in state.config["datasets"].items() if dataset["models_of"] == zoo]
        if zoo in evaluating or len(evaluating) == 1:
            explicit["evaluate_on"] = zoo if zoo in evaluating else evaluating[0]
        elif len(state.config["datasets"]) == len(state.written["datasets"]):
            message = f"is missing, and {len(evaluating)} datasets evaluate the models of {zoo!r}; name one"
            state.add_mistake(message, *place, "evaluate_on")
    return explicit
