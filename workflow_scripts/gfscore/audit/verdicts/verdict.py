"""The verdict on an audit as verdict.json holds it. Imports nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from gfscore.audit.findings.finding import FindingInWords
from gfscore.audit.verdicts.gate_rules import AT_LEAST, FAIL, INCONCLUSIVE, PASS, Looks, combine
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.core.mappings import only
from gfscore.core.numbers import counted
from gfscore.core.settings import Record
from gfscore.measures import NamedMeasure, names_of_kind

Measures = Mapping[str, NamedMeasure]
"""Measures of an audit by name."""

ATTACKED = "adversarial"
"""Kind of measures whose class values are the accuracy that attacks leave."""

PROVEN = "proven"
"""Kind of measures whose class values are the accuracy that is proven."""

EVIDENCE_INTERVAL = "robust"
"""Kind of measures whose class values lie between what is proven and what attacks leave: evidence intervals."""

ATTACK_FREE = "great"
"""Kind of measures that are scores without an attack."""

WORST_CLASS = "wcr"
"""Statistic of rules about the worst class."""

JUDGE_ANEW = "delete it and run make audit again, to judge anew"


def _nan_of_null(value: Any) -> Any:
    return math.nan if value is None else value


Real = Annotated[float, BeforeValidator(_nan_of_null)]
"""A number, NaN where it is undefined, which JSON writes as null."""


class SampleCounts(Record):
    """Numbers of samples that a verdict on a model rests on.

    Attributes
    ----------
    measured, expected : int
        Samples with a value, and samples that must have one.
    rows : int
        Rows of the dataset that show these samples, more where images are repeated.
    by_class : dict of str to list of int
        The three numbers by class, in label order.
    """

    measured: int
    expected: int
    rows: int
    by_class: dict[str, list[int]]


class OpenSamples(Record):
    """Samples whose value is not known, because no proof and no attack decided them or they were not measured.

    Attributes
    ----------
    count : int
        Open samples in the classes that the verdict depends on: for the worst class, those that may miss the threshold.
    if_lowest, if_highest : str
        Verdicts on the same samples if all open ones had the lowest, or the highest, possible value.
    cause : bool
        Whether open samples are why the model is undecided: more samples would decide it only if their values were
        known.
    """

    count: int
    if_lowest: str
    if_highest: str
    cause: bool

    @property
    def may_settle(self) -> bool:
        """Whether a verdict on these samples is possible once all of them are decided."""
        return {self.if_lowest, self.if_highest} != {INCONCLUSIVE}

    @property
    def words(self) -> str:
        """Number of open samples, and the verdicts that known values could lead to, as a clause."""
        number = counted(self.count, "open sample")
        if not self.may_settle:
            return f"{number}; were they decided, it would take more samples too"
        return f"{number}, at best {self.if_highest} and at worst {self.if_lowest}"


class ModelVerdict(Record):
    """Verdict of one rule on one model.

    Attributes
    ----------
    threat, model : str
        Threat model and name of the model.
    verdict : {"PASS", "FAIL", "INCONCLUSIVE"}
    value, value_most : float
        Smallest and largest value of the statistic of the samples that open samples allow; equal without any.
    low, high : float
        Bounds of the true statistic, each of which holds with probability 1 - alpha.
    worst_class : str or None
        Class, or group, with the smallest value, or the largest falsification rate; None without samples, and where
        open samples leave several possible.
    samples : SampleCounts or None
    classes_without_samples : list of str
        Classes that the rule judges and that have no samples.
    samples_needed_per_class : int or None
        Samples per class that would probably decide an undecided model; None where no number is known.
    further_samples_needed : int or None
        How many more samples these are in all; None after the last planned look.
    open_samples : OpenSamples or None
        Samples of unknown value that may leave a model undecided; None for a decided model, and without any.
    """

    threat: str
    model: str
    verdict: str
    value: Real
    value_most: Real
    low: Real
    high: Real
    worst_class: str | None
    samples: SampleCounts | None
    classes_without_samples: list[str]
    samples_needed_per_class: int | None
    further_samples_needed: int | None
    open_samples: OpenSamples | None

    @property
    def key(self) -> tuple[str, str]:
        """Threat model and name of the model."""
        return self.threat, self.model

    @property
    def label(self) -> str:
        """Threat model and name as one text, "threat/model"."""
        return f"{self.threat}/{self.model}"

    @property
    def reason_undecided(self) -> str:
        """Why a model is undecided, and what would decide it, as a clause."""
        clauses = []
        if self.open_samples is not None and (self.open_samples.cause or self.open_samples.may_settle):
            clauses.append(self.open_samples.words)
        if self.samples_needed_per_class is not None:
            clauses.append(f"about {self.samples_needed_per_class:,} samples per class would settle it")
        return "; or ".join(clauses) or "no number of samples is known that would settle it"


class RuleVerdict(Record):
    """Verdict of one rule on all models, with the rule.

    Attributes
    ----------
    measure, statistic, class_name, attribute, direction, threshold, confidence, looks, on_inconclusive
        Settings of the rule; see RuleSettings.
    alpha : float
        Probability of a wrong verdict on one model.
    interval : str
        Method of the bounds.
    range : (float, float)
        Smallest and largest value that the statistic may have.
    title, words : str
        The statistic in a sentence, and the rule as a clause.
    verdict : {"PASS", "FAIL", "INCONCLUSIVE"}
        Verdict on all models together.
    without_samples, missing, repeated : str or None
        Remarks on classes without samples, samples without a value, and repeated images.
    models : list of ModelVerdict
    """

    measure: str
    statistic: str
    class_name: str | None = Field(alias="class")
    attribute: str | None
    direction: str
    threshold: int | float
    confidence: int | float
    looks: Looks
    alpha: float
    on_inconclusive: str
    interval: str
    range: tuple[int | float, int | float]
    title: str
    words: str
    verdict: str
    without_samples: str | None
    missing: str | None
    repeated: str | None
    models: list[ModelVerdict]

    @model_serializer(mode="wrap")
    def _with_direction_as_key(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # The threshold also stands under its direction, as config.yaml writes it.
        values: dict[str, Any] = {}
        for key, value in dump(self).items():
            values[key] = value
            if key == "threshold":
                values[self.direction] = value
        return values

    @property
    def more_is_better(self) -> bool:
        """Whether the rule demands a value of at least the threshold."""
        return self.direction == AT_LEAST

    @property
    def remarks(self) -> list[str]:
        """Remarks on samples that no class has, that have no value, or that repeat an image."""
        remarks = (self.without_samples, self.missing, self.repeated)
        return [remark for remark in remarks if remark is not None]

    @property
    def stops(self) -> bool:
        """Whether the rule stops a pipeline."""
        if self.verdict == INCONCLUSIVE:
            return self.on_inconclusive == "stop"
        return self.verdict == FAIL

    def models_with(self, verdict: str) -> list[ModelVerdict]:
        """Models with this verdict, in the order of the audit."""
        return [model for model in self.models if model.verdict == verdict]

    def best_first(self, models: Iterable[ModelVerdict]) -> list[ModelVerdict]:
        """Models by the value that they surely reach, the best first."""
        return sorted(models, key=self.sure_value, reverse=self.more_is_better)

    def sure_value(self, model: ModelVerdict) -> float:
        """The worse end of a model's value, which it surely reaches whatever open samples are worth."""
        return model.value if self.more_is_better else model.value_most


class ModelRemark(Record):
    """A model that was excluded from the audit, or that readers are warned of, and the reason."""

    model: str
    reason: str


class JudgedDataset(Record):
    """Dataset that a verdict rests on: name, digest and number of rows."""

    name: str
    digest: str
    rows: int


class JudgedMeasure(Record):
    """Number of samples of a measure, and SHA-256 of the JSON of its settings."""

    samples: int
    settings_sha256: str


class JudgedModel(Record):
    """Digest of a model's checkpoint, or of the file of its logits or values, and its measures by name."""

    checkpoint_sha256: str | None
    measures: dict[str, JudgedMeasure]


class ReleaseSource(Record):
    """Where the values of an earlier release come from.

    Attributes
    ----------
    audit : str
        Name of the earlier audit in its bundle.
    statement_sha256 : str
        SHA-256 of the bundle's statement, which names every file of the bundle.
    judged, version : str
        Time of the earlier verdict, and version of gfscore that judged.
    models : dict of str to str
        Model of the release that each model of the audit is compared with, both as "threat/model".
    """

    audit: str
    statement_sha256: str
    judged: str
    version: str
    models: dict[str, str]


class Evidence(Record):
    """What a verdict rests on, and when it was judged.

    Attributes
    ----------
    time : str
        ISO format with seconds, UTC.
    dataset : JudgedDataset
    models : dict of str to JudgedModel
        By "threat/model".
    last_release : ReleaseSource or None
        Earlier release that rules on declines compare with.
    made_from : dict of str to str
        SHA-256 of each file that was read, by its path.
    """

    time: str
    dataset: JudgedDataset
    models: dict[str, JudgedModel]
    last_release: ReleaseSource | None = None
    made_from: dict[str, str]


class Judgement(Record):
    """What a gate decides: the verdict of all rules on all models, in words, and whether it stops a pipeline."""

    verdict: str
    sentence: str
    stops: bool
    note: str
    rules: list[RuleVerdict]
    excluded: list[ModelRemark]
    warned: list[ModelRemark]
    guessing: list[str]
    software: dict[str, str | bool | None]

    @property
    def model_verdicts(self) -> dict[tuple[str, str], str]:
        """Verdict on each model over all rules, by (threat, model)."""
        verdicts: dict[tuple[str, str], list[str]] = {}
        for rule in self.rules:
            for model in rule.models:
                verdicts.setdefault(model.key, []).append(model.verdict)
        return {key: combine(of_rules) for key, of_rules in verdicts.items()}

    @property
    def shown_model(self) -> tuple[str, str] | None:
        """Model whose classes are shown first: the best that passes, else the best undecided, else the best.

        Best by the first rule. None without a rule.
        """
        if not self.rules:
            return None
        rule = self.rules[0]
        verdicts = self.model_verdicts
        order = (PASS, INCONCLUSIVE, FAIL)

        def place(model: ModelVerdict) -> tuple[int, float]:
            value = rule.sure_value(model) if rule.more_is_better else -rule.sure_value(model)
            if math.isnan(value):
                value = -math.inf
            return order.index(verdicts[model.key]), -value

        return min(rule.models, key=place).key

    @property
    def remarks(self) -> list[str]:
        """Remarks of all rules on samples, each once."""
        remarks = []
        for rule in self.rules:
            remarks += rule.remarks
        return list(dict.fromkeys(remarks))

    def judged_measure(self, measures: Measures) -> str:
        """Measure of the first rule that judges one of `measures`, else their headline_measure."""
        for rule in self.rules:
            if rule.measure in measures:
                return rule.measure
        return headline_measure(measures)

    def attacked_measure(self, measures: Measures) -> str | None:
        """Measure whose class values are the accuracy that attacks leave, or None.

        The measure that the gate judges, else the first of the audit.
        """
        attacked = names_of_kind(measures, ATTACKED)
        for rule in self.rules:
            if rule.measure in attacked:
                return rule.measure
        return attacked[0] if attacked else None

    def evidence_interval(self, measures: Measures) -> str | None:
        """Evidence interval of the first ball that the gate judges, or of the first of the audit; None without one."""
        judged = [rule.measure for rule in self.rules if rule.measure in measures]
        judged = [name for name in judged if measures[name].kind.name in (EVIDENCE_INTERVAL, PROVEN, ATTACKED)]
        for name in judged or measures:
            interval = evidence_interval_of(name, measures)
            if interval is not None:
                return interval
        return None


class Verdict(Judgement, Evidence):
    """Contents of verdict.json: what the gate decides, what it rests on, and the findings of the audit."""

    findings: list[FindingInWords] = Field(default_factory=list)

    @classmethod
    def of(cls, judgement: Judgement, evidence: Evidence) -> Verdict:
        """Verdict from what the gate decides and what that rests on, without findings."""
        return cls.model_construct(**dict(judgement), **dict(evidence))

    def require_current(self, source: Path | str) -> None:
        """Raise InputError unless the files that the verdict, read from `source`, rests on are as they were."""
        for file, digest in self.made_from.items():
            if not Path(file).is_file() or sha256_of_file(file) != digest:
                raise InputError(f"{source}: rests on another {file} than is there now; {JUDGE_ANEW}")

    def as_json(self) -> dict[str, Any]:
        """Entries of verdict.json in their order."""
        values = self.model_dump(by_alias=True)
        names = (*Judgement.model_fields, *Evidence.model_fields, "findings")
        return only(values, names)

    def write(self, path: Path | str) -> None:
        """Write verdict.json atomically."""
        write_json(path, self.as_json())


def read_verdict(path: Path | str) -> Verdict:
    """Read verdict.json.

    Raises
    ------
    InputError
        If it is missing, damaged, or was written by a version that writes other entries.
    """
    try:
        return Verdict.model_validate(read_json(path))
    except ValidationError as error:
        remedy = f"{JUDGE_ANEW}, or read a bundle with the version that made it"
        raise InputError(f"{path}: of another version of gfscore; {remedy}") from error


def digests_of(files: Iterable[Path | str]) -> dict[str, str]:
    """SHA-256 (hex) of files by their paths."""
    return {str(file): sha256_of_file(file) for file in files}


# ---- measures of an audit ----


def headline_measure(measures: Measures) -> str:
    """Measure that is shown first where no rule judges one: an attack-free score, else a certified radius.

    Without either, the first of the audit.
    """
    for kind in (ATTACK_FREE, "certified"):
        for name, measure in measures.items():
            if measure.kind.name == kind:
                return name
    return next(iter(measures))


def evidence_interval_of(measure: str, measures: Measures) -> str | None:
    """Evidence interval that a measure is, or is a member of; None without one."""
    for name, candidate in measures.items():
        if candidate.kind.name == EVIDENCE_INTERVAL:
            members = [member.name for member in candidate.members(measures)]
            if measure in (name, *members):
                return name
    return None


def has_attacks(measures: Measures) -> bool:
    """Whether any measure attacks images."""
    return any(measure.kind.attacks for measure in measures.values())
