"""The values of an audit: one number per sample for every measure of every model, from files that are read once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.audit_files import ModelSelection
from gfscore.audit.calibration_results import Calibrations
from gfscore.audit.samples import ExpectedSamples, ModelLogits, SampleList, ScoresFile, stored_values
from gfscore.audit.settings import IntervalSettings
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.identity import UNCALIBRATED, ModelName
from gfscore.core.mappings import only
from gfscore.core.settings import PlainSettings
from gfscore.measures import NamedMeasure, entries_of, named_measures
from gfscore.measures.great import Great
from gfscore.measures.samples import table_of
from gfscore.statistics.class_bounds import ClassBounds, bounds_of
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import predictions, scores
from gfscore.statistics.tolerances import RANGE_TOLERANCE
from gfscore.tables.parquet_tables import TableFile, read_identity, read_logits

NAMED_SOURCES = (
    *("dataset", "threat", "model", "dataset_digest", "checkpoint_sha256", "architecture_sha256"),
    *("offsets", "preprocessing", "outputs", "conversion", "dtype", "device", "torch"),
)
"""Entries of an identity that say where a value comes from."""

TOLERATED_SHARE = 0.02
"""Share of the predictions that may differ between two measures of one network.

Other batch sizes, devices and tf32 flip only samples whose two largest logits are nearly equal, hardly any. Two
networks differ in more: of the CIFAR-10 checkpoints of the tests the two most alike, ResNets of 44 and 56 layers, in
5.6%.
"""

TOLERATED_SHARE_IN_BFLOAT16 = 0.06
"""Share of the predictions that may differ where one of the two measures was computed in bfloat16, of 8 bits.

It changes up to 3.0% of the predictions of those checkpoints, most if adversarially trained: their logits are close.
"""

TOLERATED_COUNT = 2
"""This many may differ, whatever share of all they are, since any sample may be a near-tie."""


@dataclass(frozen=True, kw_only=True)
class AuditSubject:
    """Models and measures of an audit.

    Parameters
    ----------
    models : tuple of ModelName
        All models of the audit, in the order of the configuration.
    measures : mapping of str to NamedMeasure
        Measures by name, in the order of the configuration.
    calibrated_measure : str or None
        Measure whose temperature is searched.
    supplied : mapping of ModelName to {"logits", "samples"}
        Models that a user supplies as values, and what these are.
    logits : mapping of ModelName to path
        Files of the models that have logits.
    """

    models: tuple[ModelName, ...]
    measures: Mapping[str, NamedMeasure]
    calibrated_measure: str | None = None
    supplied: Mapping[ModelName, str] = field(default_factory=dict)
    logits: Mapping[ModelName, Path | str] = field(default_factory=dict)

    @classmethod
    def parse(cls, params: PlainSettings) -> AuditSubject:
        """Subject from the params of a step: models, measures, calibrated_measure, supplied and logits, by label."""
        models = tuple(ModelName.from_columns(columns) for columns in params["models"])
        supplied = params.get("supplied", {})
        logits = params.get("logits", {})
        return cls(
            models=models,
            measures=named_measures(params["measures"]),
            calibrated_measure=params.get("calibrated_measure"),
            supplied={model: supplied[model.label] for model in models if model.label in supplied},
            logits={model: logits[model.label] for model in models if model.label in logits},
        )

    def of_kind(self, *kinds: str) -> list[NamedMeasure]:
        """Measures of some kinds, in the order of the configuration."""
        return [measure for measure in self.measures.values() if measure.kind.name in kinds]

    def members(self, measure: str) -> list[NamedMeasure]:
        """Measures that a derived measure is made of."""
        return self.measures[measure].members(self.measures)

    def stored(self, measure: str) -> str:
        """Measure whose file the values of a measure come from: itself, or the first that a derived one is made of."""
        return self.members(measure)[0].name if self.measures[measure].derived else measure

    def entries(self) -> dict[str, PlainSettings]:
        """Settings of the measures by name, as plain values."""
        return entries_of(self.measures)

    def in_scores(self, model: ModelName, measure: str) -> bool:
        """Whether the values of a measure stand in the table scores, which is made from logits."""
        return self.measures[measure].from_logits and self.supplied.get(model) != "samples"

    @property
    def activation(self) -> str:
        """Activation of the calibrated measure."""
        return cast(Great, self.measures[cast(str, self.calibrated_measure)].settings).activation


@dataclass(frozen=True, kw_only=True)
class SampleValues:
    """Values of one measure of one model on N samples.

    Parameters
    ----------
    model : ModelName
    measure : NamedMeasure
    expected : ExpectedSamples
        The N samples that must have a value, each image once.
    low, high : ndarray (N,) of float64
        Smallest and largest value that each sample may have, in the range of the measure: equal where the value is
        known, the whole range where the sample has none.
    correct : ndarray (N,) of bool
        Whether the classifier is right on the undisturbed sample.
    predicted : ndarray (N,)
        Class that the network predicts for the undisturbed sample, missing where that is unknown.
    missing : ndarray (N,) of bool
        Samples that have no value.
    calibration : str
        Objective that chose the temperature; UNCALIBRATED where none did: at T = 1, and without a temperature.
    temperature : float
        Temperature of an attack-free score; NaN for measures without one.
    fresh : bool
        Whether no temperature was chosen on these samples, so that intervals hold.
    """

    model: ModelName
    measure: NamedMeasure
    expected: ExpectedSamples
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    correct: NDArray[np.bool_]
    predicted: NDArray[np.generic]
    missing: NDArray[np.bool_]
    calibration: str = UNCALIBRATED
    temperature: float = np.nan
    fresh: bool = True

    @classmethod
    def decided(
        cls,
        model: ModelName,
        measure: NamedMeasure,
        values: ArrayLike,
        expected: ExpectedSamples,
        *,
        correct: NDArray[np.bool_],
        calibration: str = UNCALIBRATED,
        temperature: float = np.nan,
        fresh: bool = True,
    ) -> SampleValues:
        """Known values (N,) of all samples, of a network whose predictions are unknown."""
        numbers = np.asarray(values, dtype=np.float64)
        return cls(
            model=model,
            measure=measure,
            expected=expected,
            low=numbers,
            high=numbers,
            correct=correct,
            predicted=np.full(len(numbers), np.nan),
            missing=np.zeros(len(numbers), dtype=bool),
            calibration=calibration,
            temperature=temperature,
            fresh=fresh,
        )

    @property
    def sample_id(self) -> NDArray[np.str_]:
        """Names of the samples, (N,)."""
        return self.expected.sample_id

    @property
    def labels(self) -> NDArray[np.int32]:
        """True classes, (N,)."""
        return self.expected.labels

    @property
    def calibrated(self) -> bool:
        """Whether a temperature was chosen for these values."""
        return self.calibration != UNCALIBRATED

    @property
    def bounded(self) -> bool:
        """Whether some values are undecided, so that only the smallest and largest ones they may have are known."""
        return not np.array_equal(self.low, self.high, equal_nan=True)

    def columns(self) -> dict[str, Any]:
        """The columns of a table that name these values: dataset, threat, model, measure, calibration, temperature."""
        return {
            **self.model.columns(),
            "measure": self.measure.name,
            "calibration": self.calibration,
            "temperature": self.temperature,
        }

    def counts(self, classes: int) -> dict[str, NDArray[np.int64]]:
        """Samples by class, each (K,): `measured` of those `expected`, and the `rows` of the dataset that show them."""
        rows = np.bincount(self.labels, weights=self.expected.rows, minlength=classes)
        return {
            "measured": np.bincount(self.labels[~self.missing], minlength=classes),
            "expected": np.bincount(self.labels, minlength=classes),
            "rows": rows.astype(np.int64),
        }

    def bounds(
        self,
        classes: int,
        *,
        intervals: IntervalSettings,
        label_error_rates: ArrayLike | None = None,
        cells: NDArray[np.integer] | None = None,
    ) -> ClassBounds:
        """Bounds of the class means.

        Parameters
        ----------
        classes : int
            Number of classes, or of cells.
        intervals : IntervalSettings
        label_error_rates : array-like (K,), optional
            Shares of wrong labels that the bounds allow for.
        cells : ndarray (N,) of int, optional
            Groups of the samples that stand in place of their classes, negative for none.
        """
        low = self.low
        high = self.high
        groups: NDArray[np.integer] = self.labels
        if cells is not None:
            inside = cells >= 0
            low = low[inside]
            high = high[inside]
            groups = cells[inside]
        return bounds_of(
            low,
            groups,
            classes,
            measure=self.measure.description,
            intervals=intervals,
            label_error_rates=label_error_rates,
            upper_values=high if self.bounded else None,
        )


@dataclass(frozen=True, kw_only=True)
class AuditValues:
    """Reader of the values of an audit: each table is read once, when it is first needed.

    Parameters
    ----------
    subject : AuditSubject
        Models and measures.
    selection : path
        models.json, which says which models take part.
    dataset : path
        Table `dataset`.
    scores : path or None
        Table scores, with the measures from logits.
    samples : sequence of path
        Samples tables of the other measures, model by model.
    """

    subject: AuditSubject
    selection: Path | str
    dataset: Path | str
    scores: Path | str | None = None
    samples: Sequence[Path | str] = ()
    tables: dict[tuple[ModelName, str], pd.DataFrame] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_params(cls, params: PlainSettings, files: Mapping[str, Any]) -> AuditValues:
        """Values of a step with the params `params` and the input files `files` by name."""
        return cls(
            subject=AuditSubject.parse(params),
            selection=files["selection"],
            dataset=files["dataset"],
            scores=files.get("scores") or None,
            samples=files.get("samples") or (),
        )

    @cached_property
    def included(self) -> tuple[ModelName, ...]:
        """Models that take part, in the order of the configuration."""
        labels = ModelSelection.read(self.selection).included
        return tuple(model for model in self.subject.models if model.label in labels)

    @cached_property
    def included_labels(self) -> set[str]:
        """Labels of the models that take part."""
        return {model.label for model in self.included}

    @cached_property
    def left_out(self) -> set[str]:
        """Labels of the models that take no part.

        The samples decided which these are, so whatever holds for several models together counts these as well.
        """
        return {model.label for model in self.subject.models} - self.included_labels

    @cached_property
    def listed(self) -> SampleList:
        """Samples of the dataset."""
        return SampleList.read(self.dataset)

    @cached_property
    def scores_file(self) -> ScoresFile:
        """The table scores."""
        return ScoresFile(cast(str, self.scores))

    @cached_property
    def sample_files(self) -> dict[tuple[ModelName, str], Path | str]:
        """Samples tables by model and measure, except for measures whose values are in the table scores."""
        files = {}
        paths = iter(self.samples)
        for model in self.subject.models:
            for name, measure in self.subject.measures.items():
                if not measure.derived and not self.subject.in_scores(model, name):
                    files[model, name] = next(paths)
        return files

    def table(self, model: ModelName, measure: str) -> pd.DataFrame:
        """Samples table of a model and measure, with the columns `correct` and `predicted` of with_predictions.

        Each image counts once. A measure with a subset has rows of that subset only.
        """
        key = model, measure
        if key not in self.tables:
            if self.subject.in_scores(model, measure):
                samples = self.scores_file.read(model, measure)
            elif self.subject.measures[measure].derived:
                samples = self._derived(model, measure)
            else:
                path = self.sample_files[key]
                named = self.subject.measures[measure]
                file = TableFile(path, table_of(named.kind.name), expect={**model.columns(), "measure": measure})
                _require_settings(file.identity, named, path)
                samples = self.listed.once(file.read(), source=path)
                samples = samples[samples["sample_id"].isin(self.expected(model, measure).sample_id)]
            self.tables[key] = with_predictions(samples)
        return self.tables[key]

    def _derived(self, model: ModelName, measure: str) -> pd.DataFrame:
        # Samples table of a measure that is made of others: samples that at least one of them has.
        expected = self.expected(model, measure)
        measured = np.zeros(len(expected.labels), dtype=bool)
        tables = []
        sources = []
        for member in self.subject.members(measure):
            table = self.table(model, member.name).set_index("sample_id")
            measured |= np.isin(expected.sample_id, table.index)
            tables.append(table)
            sources.append(self.path(model, member.name))
        expected = expected.only(measured)
        tables = [table.reindex(expected.sample_id) for table in tables]

        named = self.subject.measures[measure]
        try:
            columns = named.kind.load()(tables, settings=named.settings, sources=sources)
        except InputError as error:
            raise InputError(f"{model.label}: {error}") from error
        predicted = tables[0]["predicted"]
        for table in tables[1:]:
            predicted = predicted.fillna(table["predicted"])
        return pd.DataFrame(
            {
                "sample_id": expected.sample_id,
                "label": expected.labels,
                "clean_prediction": predicted.to_numpy(),
                **columns,
            }
        )

    def expected(self, model: ModelName, measure: str) -> ExpectedSamples:
        """Samples for which a measure must have values; where it has none, the value counts as missing."""
        measure = self.subject.stored(measure)
        subset = self.subject.measures[measure].subset
        if self.subject.measures[measure].from_logits and not self.subject.in_scores(model, measure):
            # Predictions that are imported with certified radii exist only for the samples with radii.
            for imported in self.subject.measures.values():
                if not imported.from_logits:
                    subset = imported.subset
                    break
        return self.listed.expected(subset, where=f"measures: {measure}")

    def path(self, model: ModelName, measure: str) -> Path | str:
        """File that the values of a measure come from: the samples table, or the logits.

        For a measure that is made of others, the file of the first of them.
        """
        measure = self.subject.stored(measure)
        if self.subject.in_scores(model, measure):
            # A bundle may lack the logits.
            return self.subject.logits.get(model) or cast(str, self.scores)
        return self.sample_files[model, measure]

    def identity(self, model: ModelName, measure: str) -> Mapping[str, Any]:
        """Metadata of the file that `path` names."""
        measure = self.subject.stored(measure)
        if self.subject.in_scores(model, measure):
            return self.scores_file.identity["logits"][model.label]
        return read_identity(self.sample_files[model, measure])

    def sources(self) -> list[dict[str, Any]]:
        """Data, model and software of each model and measure (NAMED_SOURCES), from their files, without repetition."""
        sources: dict[str, dict[str, Any]] = {}
        for model in self.included:
            for measure in self.subject.measures:
                identity = self.identity(model, measure)
                source = {name: identity[name] for name in NAMED_SOURCES if name in identity}
                sources.setdefault(str(source), source)
        return list(sources.values())

    def uncalibrated(self, measures: Iterable[str] | None = None) -> Iterator[SampleValues]:
        """Values at T = 1 of some measures, by default all, model after model.

        Raises
        ------
        InputError
            For a value outside the range of its measure, and, where all measures are asked for, if values of one model
            come from two networks.
        """
        for model in self.included:
            if measures is None:
                values = [self.sample_values(model, measure) for measure in self.subject.measures]
                require_one_network(values, self)
                yield from values
            else:
                for measure in measures:
                    yield self.sample_values(model, measure)

    def sample_values(self, model: ModelName, measure: str) -> SampleValues:
        """Values of one model and measure at T = 1; raises InputError for one outside the range of the measure."""
        samples = self.table(model, measure)
        expected = self.expected(model, measure)
        values = line_up(samples, expected, model=model, measure=self.subject.measures[measure])

        lowest, highest = values.measure.description.value_range
        slack = RANGE_TOLERANCE * (highest - lowest)
        for numbers in (values.low, values.high):
            outside = (numbers < lowest - slack) | (numbers > highest + slack)
            if outside.any():
                position = outside.argmax()
                raise InputError(
                    f"{self.path(model, measure)}: value {numbers[position]:g} of the sample "
                    f"{values.sample_id[position]!r} lies outside the range {lowest:g} to {highest:g} of {measure}, so "
                    f"no interval holds for {model.label}; correct what it was made of, or the settings of the "
                    "measure, and delete it"
                )
        return values

    def with_calibrated(self, uncalibrated: Iterable[SampleValues], calibrations: Calibrations) -> list[SampleValues]:
        """Values at T = 1 of each model, followed by its values at the chosen temperatures.

        Parameters
        ----------
        uncalibrated : iterable of SampleValues
            Values of all measures at T = 1, model after model.
        calibrations : mapping of str to Calibration
            By objective; empty without a calibrated measure.
        """
        by_model: dict[ModelName, list[SampleValues]] = {}
        for values in uncalibrated:
            by_model.setdefault(values.model, []).append(values)
        result = []
        for model, values_of_model in by_model.items():
            result += values_of_model
            if calibrations:
                result += self._calibrated(model, calibrations)
        return result

    def _calibrated(self, model: ModelName, calibrations: Calibrations) -> list[SampleValues]:
        # Values at each chosen temperature, of the samples that did not choose it.
        model_logits = self.logits_of(model)
        every_sample = self.listed.expected(None, where=self.dataset)
        correct = predictions(model_logits.logits, model_logits.labels) == model_logits.labels
        result = []
        for objective, calibration in calibrations.items():
            temperature = calibration.temperature_of(model.label)
            if temperature is None:
                continue
            held_out = np.ones(len(correct), dtype=bool)
            split = calibration.split
            if split is not None:
                held_out = ~choosing_samples(
                    model_logits.sample_id, model_logits.labels, share=split.share, seed=split.seed
                )
            values = scores(
                model_logits.logits[held_out],
                model_logits.labels[held_out],
                activation=self.subject.activation,
                temperature=temperature,
            )
            result.append(
                SampleValues.decided(
                    model,
                    self.subject.measures[cast(str, self.subject.calibrated_measure)],
                    values,
                    every_sample.only(held_out),
                    correct=correct[held_out],
                    calibration=objective,
                    temperature=temperature,
                    fresh=split is not None,
                )
            )
        return result

    def logits_of(self, model: ModelName) -> ModelLogits:
        """Logits of a model, each image once: those that its scores were made of.

        Raises InputError where the file has changed since.
        """
        path = self.subject.logits[model]
        identity = self.scores_file.identity["logits"][model.label]
        if self.subject.supplied.get(model) != "logits":
            expect = model.columns() | only(identity, ["dataset_digest", "checkpoint_sha256"])
            return ModelLogits(*read_logits(path, expect=expect), identity=identity).only(self.listed.counted)

        if sha256_of_file(path) != identity["checkpoint_sha256"]:
            raise InputError(f"{path}: changed while the audit ran; run the same command again")
        logits = stored_values(
            path,
            self.scores_file.identity["classes"],
            member=identity.get("member"),
            logarithms="allow_probabilities" in identity,
        )
        scored = [measure for measure in self.subject.measures if self.subject.in_scores(model, measure)]
        samples = self.table(model, scored[0])
        return ModelLogits(
            samples["sample_id"].to_numpy(),
            samples["label"].to_numpy(),
            logits[self.listed.counted],
            identity=identity,
        )


def line_up(
    samples: pd.DataFrame, expected: ExpectedSamples, *, model: ModelName, measure: NamedMeasure
) -> SampleValues:
    """Values of a measure for the samples that must have one.

    Parameters
    ----------
    samples : DataFrame
        Samples table, its rows in any order, with the columns of with_predictions; several rows of a sample count by
        their mean.
    expected : ExpectedSamples
        The N samples of the measure.
    model, measure : ModelName, NamedMeasure
        Whose values they are. The range of the measure bounds what is undecided or missing.

    Returns
    -------
    SampleValues
        At T = 1, where the measure has a temperature.
    """
    lowest, highest = measure.description.value_range
    rows = one_row_per_sample(samples).set_index("sample_id")
    missing = np.zeros(len(expected.labels), dtype=bool)
    if not rows.index.equals(pd.Index(expected.sample_id)):
        missing = ~np.isin(expected.sample_id, rows.index)
        rows = rows.reindex(expected.sample_id)

    low = rows["value"].to_numpy(np.float64)
    high = low
    if measure.description.undecided:
        high = np.where(rows["censored"].eq(True), highest, low)
    if missing.any():
        low = np.where(missing, lowest, low)
        high = np.where(missing, highest, high)

    return SampleValues(
        model=model,
        measure=measure,
        expected=expected,
        low=low,
        high=high,
        correct=rows["correct"].eq(True).to_numpy(),
        predicted=rows["predicted"].to_numpy(),
        missing=missing,
        temperature=1.0 if measure.kind.name == "great" else np.nan,
    )


def with_predictions(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples table of any kind with two more columns: `correct`, of the clean image, and the network's `predicted`.

    Where the network's prediction is missing, `correct` is whether the measured classifier is right.
    """
    predicted = samples["clean_prediction" if "clean_prediction" in samples else "prediction"]
    # Values computed elsewhere come with predictions of the measured (smoothed) classifier alone.
    clean = predicted.fillna(samples["prediction"])
    return samples.assign(correct=clean == samples["label"], predicted=predicted)


def one_row_per_sample(samples: pd.DataFrame) -> pd.DataFrame:
    """Mean value over the rows of each sample, in the order of the samples' first rows.

    A corruption measure has one row per sample, corruption and severity. Rows of one sample are no independent draws,
    so they must not count as samples in an interval. Samples with fewer rows than others are left out, and count as
    missing later: a mean over only some corruptions may be over the easier ones.
    """
    if not samples["sample_id"].duplicated().any():
        return samples
    grouped = samples.groupby("sample_id", sort=False)
    rows = grouped.size()
    means = pd.DataFrame(
        {
            "label": grouped["label"].first(),
            "correct": grouped["correct"].first(),
            "predicted": grouped["predicted"].first(),
            "value": grouped["value"].mean(),
        }
    )
    return means[rows == rows.max()].reset_index()


def _require_settings(identity: Mapping[str, Any], measure: NamedMeasure, path: Path | str) -> None:
    # Where Snakemake's records of earlier runs are lost, nothing else notices that a measure had other settings then.
    stored = json.loads(identity.get("settings", "{}"))
    # As JSON, which has no tuples. Settings that one version does not have are not compared.
    asked = json.loads(json.dumps(measure.settings.explicit()))
    for key in stored.keys() & asked.keys():
        if stored[key] != asked[key]:
            raise InputError(
                f"{path}: measured with {key} {stored[key]}, and the audit asks for {asked[key]}; delete it and run "
                "the same command again"
            )


def require_one_network(values: Sequence[SampleValues], audit_values: AuditValues) -> None:
    """Refuse measures of one model that were computed with different networks.

    What the network itself predicts for the undisturbed samples must agree with the measure from logits, or where there
    is none with the first measure, on the samples that both have. Unknown predictions (of values that were computed
    elsewhere, perhaps with the smoothed classifier) are not compared.

    Parameters
    ----------
    values : sequence of SampleValues
        All measures of one model.
    audit_values : AuditValues
        Reader of the values, which names their files.

    Raises
    ------
    InputError
        If more than TOLERATED_COUNT predictions and more than the share TOLERATED_SHARE of them differ,
        TOLERATED_SHARE_IN_BFLOAT16 for numbers in bfloat16.
    """
    predicted = {}
    compared = []
    for item in values:
        predictions_of_item = pd.Series(item.predicted, index=item.sample_id).dropna()
        if len(predictions_of_item):
            predicted[item.measure.name] = predictions_of_item
            compared.append(item)
    if not compared:
        return
    from_logits = [item for item in compared if item.measure.from_logits]
    reference = (from_logits or compared)[0]

    for item in compared:
        first, second = predicted[reference.measure.name].align(predicted[item.measure.name], join="inner")
        changed = int(np.count_nonzero(first != second))
        if changed <= TOLERATED_COUNT:
            continue
        tolerated = TOLERATED_SHARE
        for values_of_measure in (reference, item):
            identity = audit_values.identity(values_of_measure.model, values_of_measure.measure.name)
            if identity.get("dtype") == "bfloat16":
                tolerated = TOLERATED_SHARE_IN_BFLOAT16
        if changed > tolerated * len(second):
            _refuse_networks(reference, item, audit_values, changed=changed, compared=len(second))


def _refuse_networks(
    reference: SampleValues, item: SampleValues, audit_values: AuditValues, *, changed: int, compared: int
) -> None:
    paths = []
    outdated_files = []
    for values in (reference, item):
        path = audit_values.path(values.model, values.measure.name)
        paths.append(path)
        if values.measure.from_logits:
            path = f"results/logits/{values.model.path}.parquet"
        outdated_files.append(str(path))
    raise InputError(
        f"{item.model.label}: {reference.measure.name} and {item.measure.name} are not of one network: for {changed} "
        f"of {compared} undisturbed samples the predictions in {paths[0]} and {paths[1]} differ, more than rounding "
        "explains. Its weights, or code that it uses, changed after one of them was made; make both again by adding "
        f'ARGS="-R {" ".join(outdated_files)}" to make audit'
    )


def row_generator(seed: int, names: Mapping[str, Any]) -> np.random.Generator:
    """Numpy Generator that depends on the seed and on a mapping of names alone."""
    return np.random.default_rng([seed, crc32("/".join(map(str, names.values())).encode())])
