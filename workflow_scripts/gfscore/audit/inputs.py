"""The values of every measure of an audit, at T = 1 and at the chosen temperatures, one model after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from gfscore.audit.measured import Measured
from gfscore.audit.model_logits import ModelLogits, stored_values
from gfscore.audit.model_samples import ModelSamples, one_row_per_sample
from gfscore.audit.one_network import require_one_network
from gfscore.audit.sample_list import SampleList
from gfscore.audit.scores_file import ScoresFile
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, sha256_of_file
from gfscore.core.identity import UNCALIBRATED, label_of
from gfscore.measures import from_logits, measure_of
from gfscore.statistics.class_bounds import ROUNDING
from gfscore.statistics.margins import predictions, scores
from gfscore.statistics.splits import choosing_samples
from gfscore.tables.parquet_tables import read_logits

NAMED_SOURCES = (
    *("dataset", "threat", "model", "dataset_digest", "checkpoint_sha256", "architecture_sha256"),
    *("preprocessing", "outputs", "conversion", "dtype", "device", "torch"),
)
"""Entries of an identity that say where a value comes from."""


@dataclass(frozen=True, kw_only=True)
class AuditInputs:
    """Where the values of an audit are; each samples table is read once.

    `models`: mappings with dataset, threat, model; `measures`: name -> settings (kind, and activation for great);
    `calibrated_measure`: the one whose temperature is searched, or None; `given`: label -> "logits" or
    "samples", of each model that is given as values; `scores`: path of the table scores, with the measures from logits;
    `samples`: paths of the other samples tables, one per model and measure, the measures of the first model first;
    `logits`: path by label, of each model that has logits; `calibrations`: contents of calibration.json; `selection`:
    path of models.json, which says which of the models take part; `dataset`: path of the table of that name.
    """

    models: Sequence[Mapping[str, str]]
    measures: Mapping[str, Mapping[str, Any]]
    selection: Path | str
    dataset: Path | str
    calibrated_measure: str | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    scores: Path | str | None = None
    samples: Sequence[Path | str] = ()
    logits: Mapping[str, Path | str] = field(default_factory=dict)
    calibrations: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Mapping[str, Any], files: Mapping[str, Any]) -> AuditInputs:
        """From what plan.subject_of says, and a mapping of selection, dataset, scores and samples to paths."""
        paths: dict[str, Any] = {name: files.get(name) or () for name in ("selection", "dataset", "scores", "samples")}
        return cls(**subject, **paths)

    def at(self, calibrations: Mapping[str, Any]) -> AuditInputs:
        """The same inputs with the contents of calibration.json; what has been read is not read again."""
        found = replace(self, calibrations=calibrations)
        vars(found).update({name: read for name, read in vars(self).items() if name not in vars(found)})
        return found

    def measured(self) -> Iterator[Measured]:
        """Yield a Measured for each model and measure at T = 1, and for each calibration of the calibrated one.

        Raises InputError where the values of a model come from two networks, or one lies outside its measure's range.
        """
        yield from self.and_calibrated(self._at_one())

    def _at_one(self):
        for _, own in self.by_model():
            found = {name: _uncalibrated(own, name) for name in own}
            require_one_network(found, own)
            yield from found.values()

    def and_calibrated(self, at_one: Iterable[Measured]) -> Iterator[Measured]:
        """Yield values at T = 1, model after model, those of a model followed by its values at chosen temperatures."""
        models = {label_of(model): model for model in self.models}
        for label, own in groupby(at_one, key=lambda item: label_of(item.key)):
            yield from own
            if self.calibrated_measure and self.calibrations:
                yield from self._calibrated(models[label])

    def uncalibrated(self, measures: Iterable[str]) -> Iterator[Measured]:
        """Yield a Measured for each model and each of some measures at T = 1."""
        for _, own in self.by_model():
            for name in measures:
                yield _uncalibrated(own, name)

    def by_model(self) -> Iterator[tuple[Mapping[str, str], ModelSamples]]:
        """Yield each model that takes part with its samples tables by measure."""
        for model in self.models:
            if label_of(model) in self.taking_part:
                yield model, self._samples[label_of(model)]

    def sources(self) -> list[dict[str, Any]]:
        """Data, model and software of each model and measure (NAMED_SOURCES), from their files, without repetition."""
        found: dict[str, dict[str, Any]] = {}
        for _, own in self.by_model():
            for measure in own:
                identity = own.identity(measure)
                known = {name: identity[name] for name in NAMED_SOURCES if name in identity}
                found.setdefault(str(known), known)
        return list(found.values())

    @cached_property
    def taking_part(self) -> set[str]:
        """Labels of the models that take part."""
        return set(read_json(self.selection)["included"])

    def logits_of(self, model: Mapping[str, str]) -> ModelLogits:
        """Logits of a model, the same that its scores were made of; raises InputError where they have changed."""
        path = self.logits[label_of(model)]
        known = self._scores.identity["logits"][label_of(model)]
        if self.given.get(label_of(model)) != "logits":
            same = {name: known[name] for name in ("dataset_digest", "checkpoint_sha256")}
            return ModelLogits(*read_logits(path, expect={**model, **same}), identity=known).only(self.listed.counted)
        if sha256_of_file(path) != known["checkpoint_sha256"]:
            raise InputError(f"{path}: changed while the audit ran; run the same command again")
        reference = next(name for name in self.measures if self._scored(label_of(model), name))
        samples = self._samples[label_of(model)][reference]
        sample_id, labels = (samples[name].to_numpy() for name in ("sample_id", "label"))
        how = {"member": known.get("member"), "logarithms": "allow_probabilities" in known}
        logits = stored_values(path, self._scores.identity["classes"], **how)
        logits = logits[self.listed.counted]
        return ModelLogits(sample_id, labels, logits, identity=known)

    def _scored(self, label, measure):
        # Whether the values stand in the table scores.
        return from_logits(self.measures[measure]) and self.given.get(label) != "samples"

    @cached_property
    def listed(self) -> SampleList:
        """Samples of the dataset."""
        return SampleList.read(self.dataset)

    @cached_property
    def _scores(self):
        return ScoresFile(cast(str, self.scores))

    @cached_property
    def _samples(self):
        # ModelSamples by label.
        paths, found = iter(self.samples), {}
        for model in self.models:
            label = label_of(model)
            own = {name: None if self._scored(label, name) else next(paths) for name in self.measures}
            scores = self._scores if None in own.values() else None
            shared: dict[str, Any] = {"scores": scores, "logits": self.logits.get(label)}
            found[label] = ModelSamples(model, self.measures, own, listed=self.listed, **shared)
        return found

    def _calibrated(self, model):
        found = self.logits_of(model)
        correct = predictions(found.logits, found.labels) == found.labels
        settings = self.measures[cast(str, self.calibrated_measure)]
        for objective, result in self.calibrations.items():
            temperature = chosen_temperature(result, label_of(model))
            # An objective without an optimum chooses no temperature; calibration.json says why.
            if temperature is not None:
                key = {**model, "measure": self.calibrated_measure}
                key |= {"calibration": objective, "temperature": temperature}
                split, part = result["split"], np.ones(len(found.labels), dtype=bool)
                if split:
                    part = ~choosing_samples(found.sample_id, found.labels, split)
                logits, labels = found.logits[part], found.labels[part]
                values = scores(logits, labels, activation=settings["activation"], temperature=temperature)
                sample_id, fresh = found.sample_id[part], split is not None
                rows = self.listed.expected(None, where=self.dataset).rows[part]
                yield Measured(
                    key, measure_of(settings), values, labels, correct[part], sample_id, fresh=fresh, rows=rows
                )


def _uncalibrated(own, measure):
    settings, expected = own.measures[measure], own.expected(measure)
    samples = one_row_per_sample(own[measure]).set_index("sample_id")
    missing = None
    if not samples.index.equals(pd.Index(expected.sample_id)):
        missing = ~np.isin(expected.sample_id, samples.index)
        samples = samples.reindex(expected.sample_id)
    temperature = 1.0 if settings["kind"] == "great" else None
    key = {**own.model, "measure": measure, "calibration": UNCALIBRATED, "temperature": temperature}
    values = samples["value"].to_numpy(np.float64)
    described, upper = measure_of(settings), None
    lowest, highest = described.value_range
    if described.undecided:
        # Neither robust nor not: 0 below, 1 above.
        upper = np.where(samples["censored"].eq(True), highest, values)
    correct = samples["correct"].eq(True).to_numpy()
    if missing is not None and missing.any():
        upper = np.where(missing, highest, values if upper is None else upper)
        values = np.where(missing, lowest, values)
    found = Measured(
        key,
        described,
        values,
        expected.labels,
        correct,
        expected.sample_id,
        upper_values=upper,
        predicted=samples["predicted"].to_numpy(),
        missing=missing,
        rows=expected.rows,
    )
    _require_in_range(found, own.path(measure))
    return found


def _require_in_range(measured, path):
    lowest, highest = measured.measure.value_range
    slack = ROUNDING * (highest - lowest)
    for values in (measured.values, measured.upper_values):
        if values is None:
            continue
        outside = (values < lowest - slack) | (values > highest + slack)
        if outside.any():
            place = outside.argmax()
            raise InputError(
                f"{path}: value {values[place]:g} of the sample {measured.sample_id[place]!r} lies outside the range "
                f"{lowest:g} to {highest:g} of {measured.key['measure']}, so no interval holds for "
                f"{label_of(measured.key)}; correct what it was made of, or the settings of the measure, and delete it"
            )


def chosen_temperature(result: Mapping[str, Any], label: str) -> float | None:
    """Temperature that one objective of calibration.json chose for the model of this label; None without an optimum."""
    return (result["t_star_by_model"] or {}).get(label, result["t_star"])
