"""Entries of models: what their zoo shares, files that audits name, sources that go without saying.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

from gfscore.core.errors import unknown
from gfscore.networks.model_source import model_sources
from gfscore.networks.sources import robustbench
from gfscore.workflow.config_files import Mark, Marked, MarkedList, laid_over, shown
from gfscore.workflow.plan import CHECKPOINTS
from gfscore.workflow.resolution import State

THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; none for models that are made for no particular one."""

DEFAULTS = "defaults"
"""Key of a zoo, beside the threats, whose settings all its entries share."""

WHOLE_KEYS = ("arguments",)
"""Settings of a model that take the place of shared ones as a whole: they belong to the architecture beside them."""

BY_THEMSELVES = ("onnx", "logits", "samples")
"""Sources whose files need no word beside them."""


def name_files(state: State) -> None:
    """Give each file that an audit names as a model an entry of its own, in the zoo of the audit's dataset.

    Its name is the file's without its ending, with four characters of its digest where another file has that name.
    """
    for entry in state.asked["audits"].values():
        names: Any = entry.get("models") if isinstance(entry, Marked) else None
        dataset = state.asked["datasets"].get(entry.get("dataset")) if isinstance(names, MarkedList) else None
        if not isinstance(dataset, Marked):
            continue
        zoo = dataset.get("models_of") or entry["dataset"]
        for position, name in enumerate(names):
            if isinstance(name, str) and _is_file(state, name):
                names[position] = f"{zoo}/none/{_entry_of_file(state, zoo, name, names.marks[position])}"


def _is_file(state: State, name: str) -> bool:
    part: Any = state.asked["models"]
    for step in name.split("/"):
        part = part.get(step) if isinstance(part, Marked) else None
    return part is None and any(model_sources()[source].claims({"path": name}) for source in BY_THEMSELVES)


def _entry_of_file(state: State, zoo: str, path: str, mark: Mark) -> str:
    place = state.asked["models"]
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
    """Lay each entry over the settings that its zoo shares."""
    for zoo, threats in state.entries("models"):
        shared = threats.pop(DEFAULTS, None)
        if shared is not None and not isinstance(shared, Marked):
            state.refuse(f"{shown(shared)} does not fit; give a mapping", "models", zoo, DEFAULTS)
            shared = None
        for threat in list(threats):
            if threat not in THREATS:
                state.refuse(unknown("threat", threat, [*THREATS, DEFAULTS]), "models", zoo, threat)
                continue
            state.require_mapping("models", zoo, threat)
            for name, entry in state.entries("models", zoo, threat):
                threats[threat][name] = entry if shared is None else laid_over(shared, entry, whole=WHOLE_KEYS)


def resolve_models(state: State) -> None:
    """Complete every entry; needs expanded models and resolved datasets."""
    for zoo, threats in state.asked["models"].items():
        found = state.config["models"].setdefault(zoo, {})
        for threat in THREATS:
            if threat in threats:
                found[threat] = {}
                for name, entry in threats[threat].items():
                    if isinstance(entry, Marked):
                        found[threat][name] = _model(state, entry, zoo, threat, name)


def _model(state: State, entry: Marked, zoo: str, threat: str, name: str) -> Any:
    place = ("models", zoo, threat, name)
    source = state.chosen("source", entry, model_sources(), place)
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
        elif len(state.config["datasets"]) == len(state.asked["datasets"]):
            words = f"is missing, and {len(evaluating)} datasets evaluate the models of {zoo!r}; name one"
            state.refuse(words, *place, "evaluate_on")
    return explicit
