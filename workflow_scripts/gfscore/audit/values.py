"""The values of one measure of one model, as intervals, tests and metrics take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.samples import ExpectedSamples, SampleList
from gfscore.core.identity import UNCALIBRATED, label_of
from gfscore.measures import from_logits
from gfscore.measures.declaration import Measure
from gfscore.measures.samples import table_of
from gfscore.statistics.class_bounds import ClassBounds, bounds_of
from gfscore.tables.parquet_tables import read_identity, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.samples import ScoresFile
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import cast

from gfscore.audit.samples import ModelLogits, ScoresFile, stored_values
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import MODEL
from gfscore.measures import measure_of, reference_measure
from gfscore.statistics.class_bounds import ROUNDING
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import predictions, scores
from gfscore.tables.parquet_tables import read_logits


@dataclass(frozen=True)
class Measured:
    """One measure of one model on N samples.

    `key` holds dataset, threat, model, measure, calibration, temperature; `measure` is its declaration; `values` (N,)
    float64 in its range; `labels` (N,) int32; `correct` (N,) bool, clean correctness of the same samples; `sample_id`
    (N,) str; `fresh`: no temperature was chosen on these samples, so that intervals hold; `upper_values` (N,): the
    largest values that the samples may have, where some are undecided, else None; `missing` (N,) bool: samples that
    must have a value and have none, which count as undecided over the whole range; `rows` (N,): rows of the dataset
    that show the same image. None stands for no missing samples, and for one row each.
    """

    key: dict[str, Any]
    measure: Measure
    values: NDArray[np.float64]
    labels: NDArray[np.integer]
    correct: NDArray[np.bool_]
    sample_id: NDArray[np.str_]
    fresh: bool = True
    upper_values: NDArray[np.float64] | None = None
    predicted: NDArray[Any] | None = None
    missing: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Samples that have a value, (N,) bool."""
        return np.ones(len(self.values), dtype=bool) if self.missing is None else ~self.missing

    def counts(self, classes: int) -> dict[str, NDArray[np.int64]]:
        """Samples by class, each (K,): `measured` of those `expected`, and the `rows` that show them."""
        rows = np.ones(len(self.labels)) if self.rows is None else self.rows
        return {
            "measured": np.bincount(self.labels[self.known], minlength=classes),
            "expected": np.bincount(self.labels, minlength=classes),
            "rows": np.bincount(self.labels, weights=rows, minlength=classes).astype(np.int64),
        }

    @property
    def calibrated(self) -> bool:
        """Whether a temperature was chosen for these values."""
        return self.key["calibration"] != UNCALIBRATED

    @property
    def bounded(self) -> bool:
        """Whether some values are undecided, so that only the smallest and largest ones they may have are known."""
        return self.upper_values is not None and not np.array_equal(self.values, self.upper_values)

    def bounds(
        self,
        classes: int,
        *,
        intervals: Mapping[str, Any],
        label_error_rates: ArrayLike | None = None,
        cells: NDArray[np.integer] | None = None,
    ) -> ClassBounds:
        """ClassBounds of its values as bounds_of; by `cells` (N,), negative for none, where given instead of labels."""
        chosen = slice(None) if cells is None else cells >= 0
        upper = self.upper_values
        return bounds_of(
            self.values[chosen],
            (self.labels if cells is None else cells)[chosen],
            classes,
            measure=self.measure,
            intervals=intervals,
            label_error_rates=label_error_rates,
            upper_values=None if upper is None else upper[chosen],
        )


def row_generator(seed: int, key: Mapping[str, Any]) -> np.random.Generator:
    """Numpy Generator that depends on the seed and on a mapping of names alone."""
    return np.random.default_rng([seed, crc32("/".join(str(part) for part in key.values()).encode())])


# ---- The samples tables of one model, each read once.


class ModelSamples(Mapping[str, pd.DataFrame]):
    """Samples tables of one model by measure, each with the columns that with_predictions adds.

    Each image counts once (SampleList), and of a measure of a subset the samples of that subset alone.
    """

    def __init__(
        self,
        model: Mapping[str, str],
        measures: Mapping[str, Mapping[str, Any]],
        paths: Mapping[str, Path | str | None],
        *,
        listed: SampleList,
        scores: ScoresFile | None = None,
        logits: Path | str | None = None,
    ) -> None:
        """Takes the settings of each measure and its path, None where it stands in `scores`, made of `logits`."""
        self.model, self.measures = model, measures
        self._paths, self._listed = paths, listed
        # Both are there where a path is not.
        self._scores: Any = scores
        self._logits: Any = logits
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, measure: str) -> pd.DataFrame:
        """Samples table of a measure, read at the first time."""
        if measure not in self._read:
            path, kind = self._paths[measure], self.measures[measure]["kind"]
            if path is None:
                found = self._scores.read(self.model, measure)
            else:
                found = read_table(path, table_of(kind), expect={**self.model, "measure": measure})
                found = self._listed.once(found, source=path)
                found = found[found["sample_id"].isin(self.expected(measure).sample_id)]
            self._read[measure] = with_predictions(found)
        return self._read[measure]

    def expected(self, measure: str) -> ExpectedSamples:
        """Samples for which a measure must have values; where it has none, the value counts as missing."""
        return self._listed.expected(self._subset(measure), where=f"measures: {measure}")

    def _subset(self, measure):
        if self._paths[measure] is None or not from_logits(self.measures[measure]):
            return self.measures[measure].get("subset")
        # Predictions that are imported with certified radii exist only for the samples with radii.
        return next((entry["subset"] for entry in self.measures.values() if not from_logits(entry)), None)

    def __iter__(self) -> Iterator[str]:
        """Names of the measures, in the order of the configuration."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Number of measures."""
        return len(self._paths)

    def path(self, measure: str) -> Path | str:
        """File that the values come from: the samples table, or the logits."""
        return self._paths[measure] or self._logits

    def identity(self, measure: str) -> Mapping[str, Any]:
        """Identity in the metadata of that file."""
        path = self._paths[measure]
        return read_identity(path) if path else self._scores.identity["logits"][label_of(self.model)]


def with_predictions(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples table of any kind with two more columns: `correct`, of the clean image, and the network's `predicted`.

    Where the network's prediction is missing, `correct` is that of the measured classifier.
    """
    predicted = samples["clean_prediction" if "clean_prediction" in samples else "prediction"]
    # Values computed elsewhere come with predictions of the measured (smoothed) classifier alone.
    clean = predicted.fillna(samples["prediction"])
    return samples.assign(correct=clean == samples["label"], predicted=predicted)


def one_row_per_sample(samples: pd.DataFrame) -> pd.DataFrame:
    """Mean value over the rows of each sample, in the order of the samples' first rows: N rows, not N x conditions.

    Rows of one sample are no independent draws, so they must not count as samples in an interval. Samples with fewer
    rows than others are left out: the rows that they have may be the better ones.
    """
    if not samples["sample_id"].duplicated().any():
        return samples
    grouped = samples.groupby("sample_id", sort=False)
    first = {name: grouped[name].first() for name in ("label", "correct", "predicted")}
    whole = grouped.size() == grouped.size().max()
    return pd.DataFrame(first | {"value": grouped["value"].mean()})[whole].reset_index()


# ---- Whether one network gave all measures of a model: its predictions for the undisturbed samples must agree.


MOST_CHANGED = 0.02
"""Share of the predictions that may differ between two measures of one network.

Other batch sizes, devices and tf32 flip only samples whose two largest logits are nearly equal, hardly any. Two
networks differ in more: of the CIFAR-10 checkpoints of the tests the two most alike, ResNets of 44 and 56 layers, in
5.6%.
"""

MOST_CHANGED_IN_BFLOAT16 = 0.06
"""The same where one of the two was computed in bfloat16, which keeps 8 bits.

It changes up to 3.0% of the predictions of those checkpoints, most if adversarially trained: their logits are close.
"""

FEW_CHANGED = 2
"""This many may differ, whatever share of all they are, since any sample may be a near-tie."""


def require_one_network(measured: Mapping[str, Measured], own: ModelSamples) -> None:
    """Refuse measures of one model that were computed with different networks.

    Takes Measured values of one model by measure, and its ModelSamples, which name their files. Compares
    `predicted`, what the network itself predicts for the undisturbed samples, with the measure from logits, or where
    there is none with the first one, on the samples that both have. Where it is not known (values that were computed
    elsewhere, which may be of the smoothed classifier) nothing is compared. Raises InputError where more than
    FEW_CHANGED and more than the share MOST_CHANGED of them differ, MOST_CHANGED_IN_BFLOAT16 for numbers in bfloat16.
    """
    known = {name: _predictions(item) for name, item in measured.items()}
    known = {name: predictions for name, predictions in known.items() if len(predictions)}
    if not known:
        return
    reference = reference_measure(own.measures)
    first = reference if reference in known else next(iter(known))
    for name, predicted in known.items():
        of_first, of_other = known[first].align(predicted, join="inner")
        changed = int(np.count_nonzero(of_first != of_other))
        in_bfloat16 = any(own.identity(measure).get("dtype") == "bfloat16" for measure in (first, name))
        tolerated = MOST_CHANGED_IN_BFLOAT16 if in_bfloat16 else MOST_CHANGED
        if changed > FEW_CHANGED and changed > tolerated * len(of_other):
            remade = " ".join(_to_remake(part, own) for part in (first, name))
            raise InputError(
                f"{label_of(own.model)}: {first} and {name} are not of one network: for {changed} of "
                f"{len(of_other)} undisturbed samples the predictions in {own.path(first)} and {own.path(name)} "
                "differ, more than rounding explains. Its weights, or code that it uses, changed after one of them was "
                f"made; make both again by adding -R {remade} to the command"
            )


def _to_remake(measure, own):
    # What the network itself computed.
    if from_logits(own.measures[measure]):
        return f"results/logits/{MODEL.format(**own.model)}.parquet"
    return str(own.path(measure))


def _predictions(item):
    # Series of the known predictions by sample_id.
    if item.predicted is None:
        return pd.Series(dtype=float)
    return pd.Series(item.predicted, index=item.sample_id).dropna()


# ---- The values of every measure of an audit, at T = 1 and at the chosen temperatures, one model after the other.


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
