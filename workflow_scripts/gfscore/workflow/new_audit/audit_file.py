"""Configuration of a new audit as text, and the numbers of samples that it measures within its minutes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.names import on_one_line
from gfscore.images.dataset_source import PlainSettings
from gfscore.measures import named_measures
from gfscore.measures.names import name_of
from gfscore.measures.robust import entries_for
from gfscore.networks.model_source import Settings
from gfscore.workflow.configuration import path_mistakes
from gfscore.workflow.new_audit.preprocessing import Preprocessing
from gfscore.workflow.new_audit.request import Inspection
from gfscore.workflow.resolved_file import flow

GATE_ROBUST_ACCURACY = 0.3
"""Least robust accuracy of the worst class in the gate of a new audit: proven, or without proofs under attack."""

GATE_CLEAN_ACCURACY = 0.5
"""Least clean accuracy of the worst class in the gate of a new audit without attacks."""

FRACTION = re.compile(r"\d+/\d+")

GRADIENT_STEPS = 50
"""Steps of the gradient attack."""

QUERIES = 200
"""Queries of the random attack."""

SEARCH_STEPS = 40
"""Steps of the search for the nearest adversarial example."""

BISECTION = 12
"""Passes of the bisection after it."""

GRADIENT_COST = 3.0
"""A forward and a backward pass, in forward passes."""

LOGIT_COST = 2.0
"""Time for the logits of one sample, in forward passes."""

CORES = 2
"""Cores on which steps of several models run side by side."""

PROOF_SPEED = 1.6
"""How much faster the proofs of one model are found on these cores than on one: a job searches for several at once."""

START_SECONDS = 30.0
"""Seconds for steps that start, tables and the page."""

LEAST_SECONDS = 10.0
"""Seconds of computing that are planned at least."""

SHARES = {"clean": 0.15, "adversarial": 0.6, "minimal": 0.25}
"""Shares of the time for computing, by measure."""

PROVEN_SHARE = 0.4
"""Share of the time for computing that proofs take where an audit has them; the others share the rest."""

LEAST_SHARE_ATTACKED = 0.5
"""Proofs are searched only if at least this share of the samples that would be attacked without them still is: attacks
and proofs take the same samples and share the time."""

PROOF_BUDGET = 4_000
"""Bounds of single functions that may be evaluated for one sample of a new audit."""

FEW_SAMPLES = 20
"""Samples of a class below which an audit says that they are few."""


@dataclass(frozen=True)
class Sizes:
    """Samples of each class that an audit measures.

    Parameters
    ----------
    clean, adversarial, minimal : int or None
        Samples of a class whose logits are computed, that are attacked, and for which the nearest adversarial example
        is searched; None for all.
    seconds : float
        What the audit would take with these.
    proven : bool
        Whether proofs are searched, of the samples that are attacked.
    """

    clean: int | None
    adversarial: int | None
    minimal: int | None
    seconds: float
    proven: bool = False


def sizes(
    forward_seconds: Sequence[float],
    counts: Sequence[int],
    *,
    attack_count: int,
    minutes: float,
    proof_seconds: Sequence[float] = (),
) -> Sizes:
    """Samples of each class that fit into the minutes, at least one.

    Parameters
    ----------
    forward_seconds : sequence of float
        Seconds of a forward pass of one image, of each model.
    counts : sequence of int
        Samples of each class.
    attack_count : int
        Number of attacks, one for each radius.
    minutes : float
        What the audit may take.
    proof_seconds : sequence of float
        Seconds of the search for a proof of one image, of each model; empty for an audit without proofs.
    """
    computing = max(60 * minutes - START_SECONDS, LEAST_SECONDS)
    # Models run side by side. A single model has nothing to run beside it.
    parallel = min(CORES, len(forward_seconds))
    pass_seconds = sum(forward_seconds) / parallel
    seconds_per_sample = {
        "clean": LOGIT_COST * pass_seconds,
        "adversarial": attack_count * (GRADIENT_COST * GRADIENT_STEPS + QUERIES) * pass_seconds,
        "minimal": (GRADIENT_COST * SEARCH_STEPS + BISECTION) * pass_seconds,
    }
    shares = dict(SHARES)
    if proof_seconds:
        seconds_per_sample["proven"] = sum(proof_seconds) / max(parallel, PROOF_SPEED)
        shares = {measure: share * (1 - PROVEN_SHARE) for measure, share in SHARES.items()}
        shares["proven"] = PROVEN_SHARE

    most = max(counts)
    chosen: dict[str, int] = {}
    for measure, share in shares.items():
        per_class = two_figures(int(share * computing / (seconds_per_sample[measure] * len(counts))))
        chosen[measure] = max(1, min(per_class, most))
    if proof_seconds:
        chosen["adversarial"] = chosen["proven"] = min(chosen["adversarial"], chosen["proven"])

    total = START_SECONDS
    for measure, per_class in chosen.items():
        total += sum(min(per_class, count) for count in counts) * seconds_per_sample[measure]
    limits = {measure: None if per_class >= most else per_class for measure, per_class in chosen.items()}
    return Sizes(limits["clean"], limits["adversarial"], limits["minimal"], total, proven=bool(proof_seconds))


def proofs_leave_enough_attacks(with_proofs: Sizes, without_proofs: Sizes, counts: Sequence[int]) -> bool:
    """Whether an audit with proofs attacks nearly as many samples as one without."""
    attacked_with = with_proofs.adversarial or max(counts)
    attacked_without = without_proofs.adversarial or max(counts)
    return attacked_with >= LEAST_SHARE_ATTACKED * attacked_without


def two_figures(number: int) -> int:
    """Number rounded down to two figures, so that another measurement of the time more rarely gives another one."""
    digits = max(len(str(number)) - 2, 0)
    return number // 10**digits * 10**digits


# ---- the file ----


@dataclass(frozen=True)
class ModelEntry:
    """A model in the file of an audit: its name, its settings, and lines of comments above them."""

    name: str
    settings: Settings
    comments: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class NewAudit:
    """A new audit, whose dataset and zoo have its name.

    Parameters
    ----------
    name : str
    data : mapping
        Settings of the dataset.
    models : sequence of ModelEntry
    measures : mapping
        Measures of robustness by name: attacks, the first of which the gate judges, proofs, nearest adversarial
        examples; none for logits.
    device : {"auto", "cpu", "cuda"}
        Where the models run.

    Raises
    ------
    InputError
        For a path that no file can have, or that Snakemake would misinterpret.
    """

    name: str
    data: PlainSettings
    models: Sequence[ModelEntry]
    measures: Mapping[str, Settings]
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse paths that the workflow could not use."""
        _require_paths(self.data)
        for model in self.models:
            _require_paths(model.settings)

    @property
    def evidence_interval(self) -> str | None:
        """Name of the evidence interval that the audit has by itself where it searches proofs; None without proofs."""
        entry = next(iter(entries_for(named_measures(self.measures))), None)
        return None if entry is None else name_of(entry)

    @property
    def gate(self) -> list[Settings]:
        """Rules of the gate: one, about the evidence interval, else the first attack, else clean accuracy."""
        if not self.measures:
            return [{"measure": "clean", "at_least": GATE_CLEAN_ACCURACY}]
        return [{"measure": self.evidence_interval or next(iter(self.measures)), "at_least": GATE_ROBUST_ACCURACY}]

    @property
    def measure_names(self) -> list[str]:
        """Names of all measures of the audit."""
        return ["clean", "great-softmax", *self.measures]

    def text(self) -> str:
        """Configuration as YAML with comments, without the line that says which command wrote it."""
        name = flow(self.name)
        lines = ["# What is left out has its default: docs/configuring.md"]
        lines += ["datasets:", f"  {name}: {flow(self.data)}"]
        # The norm of the attacks does not tell what a network was made robust against.
        lines += ["models:", f"  {name}:", "    none:"]
        for model in self.models:
            for comment in model.comments:
                lines.append(f"      # {on_one_line(comment)}")
            lines.append(f"      {flow(model.name)}: {flow(model.settings)}")
        if self.device != "auto":
            lines.append(f"inference: {flow({'device': self.device})}")
        if self.measures:
            lines.append("measures:")
            for measure, entry in self.measures.items():
                lines.append(f"  {flow(measure)}: {flow(entry)}")
        lines += ["audits:", f"  {name}:", f"    dataset: {name}"]
        lines.append(f"    measures: {flow(self.measure_names)}")
        if self.evidence_interval:
            meaning = "made of proofs and attacks: PASS by proofs alone, FAIL by attacks alone, else INCONCLUSIVE"
            lines.append(f"    # {self.evidence_interval}: {meaning}")
        lines.append(f"    gate: {flow(self.gate)}  # of the worst class; yours to decide")
        return "\n".join(lines) + "\n"

    def inspection(self, lines: list[str], copies: dict[str, str] | None = None) -> Inspection:
        """Result of the inspection that led to the audit, with what the user is told and the files to copy."""
        return Inspection(self.name, self.text(), lines, copies or {})


def attacked_audits(sections: Settings) -> list[str]:
    """Audits of a written configuration that measure accuracy under attack."""
    measures = sections.get("measures") or {}
    names = []
    for name, audit in sections["audits"].items():
        kinds = {(measures.get(measure) or {}).get("kind") for measure in audit.get("measures") or []}
        if "adversarial" in kinds:
            names.append(name)
    return names


def _require_paths(entry: Settings) -> None:
    for _, message in path_mistakes(entry):
        raise InputError(message)


def lines_without_attacks(reason: str) -> list[str]:
    """Lines on what is measured and judged without attacks, and why there are none."""
    return [
        f"measures  clean accuracy and the attack-free score; {reason}",
        f"gate      the worst class is right on at least {GATE_CLEAN_ACCURACY}; yours to decide",
    ]


def robustness_measures(norm: str, radii: Sequence[str], sizes: Sizes) -> dict[str, Settings]:
    """Entries of the measures of robustness: attacks, proofs, nearest adversarial examples.

    Parameters
    ----------
    norm : {"linf", "l2"}
        Norm of the attacks; distances are of l2.
    radii : sequence of str
        Numbers or fractions, in pixels of [0, 1].
    sizes : Sizes
        Samples of each class.
    """
    measures: dict[str, Settings] = {}
    for radius in radii:
        entry: dict[str, Any] = {"kind": "adversarial", "norm": norm, "eps": _eps(radius)}
        # Named before attacks and subset are added, so that the name does not change with them.
        name = name_of(entry)
        entry["attacks"] = [{"name": "apgd-ce", "steps": GRADIENT_STEPS}, {"name": "square", "queries": QUERIES}]
        measures[name] = with_subset(entry, sizes.adversarial)
    if sizes.proven:
        entry = {"kind": "proven", "norm": norm, "eps": _eps(radii[0])}
        name = name_of(entry)
        entry["budget"] = PROOF_BUDGET
        measures[name] = with_subset(entry, sizes.adversarial)
    search = {"kind": "minimal", "norm": "l2", "attacks": [{"name": "fmn", "steps": SEARCH_STEPS}]}
    measures["minimal-l2"] = with_subset(search, sizes.minimal)
    return measures


def _eps(radius: str) -> str | float:
    # A fraction such as 8/255 stays text, as in configuration files.
    return radius if FRACTION.fullmatch(radius) else float(radius)


def with_subset(settings: Settings, per_class: int | None) -> Settings:
    """Settings of a measure or dataset on so many samples of each class, on all for None."""
    if not per_class:
        return settings
    return {**settings, "subset": {"per_class": per_class}}


def model_settings(
    settings: Settings, preprocessing: Preprocessing, outputs: Sequence[int], outputs_in_all: int
) -> Settings:
    """Settings of a model: those of its source, its preprocessing where it has one, its outputs where they differ.

    Parameters
    ----------
    settings : mapping
        Settings of the source.
    preprocessing : Preprocessing
    outputs : sequence of int
        The output for each class of the data.
    outputs_in_all : int
        Number of outputs of the model.
    """
    complete = {**settings, **preprocessing.entry()}
    if list(outputs) != list(range(outputs_in_all)):
        complete["outputs"] = list(outputs)
    return complete
