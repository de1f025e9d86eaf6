"""The values of every measure of an audit, at T = 1 and at the chosen temperatures, one model after the other."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd

from gfscore.audit.one_network import require_one_network
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.measures import measure_of
from gfscore.measures.samples import table_of
from gfscore.statistics.class_bounds import ROUNDING
from gfscore.statistics.margins import predictions, scores
from gfscore.statistics.splits import choosing_samples
from gfscore.tables.parquet_tables import read_logits, read_table


@dataclass(frozen=True)
class Measured:
    """One measure of one model on N samples.

    `key` holds dataset, threat, model, measure, calibration, temperature; `values` (N,) float64 in the measure's
    range; `labels` (N,) int32; `correct` (N,) bool, clean correctness of the same samples; `sample_id` (N,) str;
    `fresh`: no temperature was chosen on these samples, so that intervals hold; `upper_values` (N,): the largest values
    that the samples may have, where some are undecided, else None.
    """

    key: dict
    values: np.ndarray
    labels: np.ndarray
    correct: np.ndarray
    sample_id: np.ndarray
    fresh: bool = True
    upper_values: np.ndarray | None = None
    predicted: np.ndarray | None = None

    @property
    def bounded(self):
        """Whether some values are undecided, so that only the smallest and largest ones they may have are known."""
        return self.upper_values is not None and not np.array_equal(self.values, self.upper_values)

    def generator(self, seed):
        """Numpy Generator of this row alone, so that adding a model changes no other model's draws."""
        return row_generator(seed, self.key)


def row_generator(seed, key):
    """Numpy Generator that depends on the seed and on a mapping of names, whatever else is drawn."""
    return np.random.default_rng([seed, crc32("/".join(str(part) for part in key.values()).encode())])


@dataclass(frozen=True)
class AuditInputs:
    """Where the values of an audit are.

    `models`: mappings with dataset, threat, model; `measures`: name -> settings (kind, and activation for great);
    `calibrated_measure`: the one whose temperature is searched, or None; `samples`: paths, one per model and measure,
    the measures of the first model first; `logits`: paths, one per model; `calibration`: path of calibration.json, or
    None; `selection`: path of models.json, which says which of the models take part.
    """

    models: list
    measures: dict
    calibrated_measure: str | None
    samples: list
    logits: list
    calibration: str | None
    selection: str

    @classmethod
    def of(cls, subject, files):
        """From what plan.subject_of says, and a mapping of the fields to paths, all or some of them."""
        return cls(**subject, **{name: files.get(name) for name in ("samples", "logits", "calibration", "selection")})

    def measured(self):
        """Yield a Measured for each model and measure at T = 1, and for each calibration of the calibrated one.

        Raises InputError where those of a model are not of one network, or a value lies outside its measure's range.
        """
        calibrations = read_json(self.calibration) if self.calibrated_measure else {}
        logits = dict(zip(map(label_of, self.models), self.logits, strict=True)) if calibrations else {}
        for model, own in self.paths():
            found = {name: _uncalibrated(own[name], model, name, self.measures[name]) for name in own}
            require_one_network(found, own, self.measures)
            yield from found.values()
            if calibrations:
                yield from self._calibrated(logits[label_of(model)], model, calibrations)

    def uncalibrated(self, measures):
        """Yield a Measured for each model and each of some measures at T = 1."""
        for model, own in self.paths():
            for name in measures:
                yield _uncalibrated(own[name], model, name, self.measures[name])

    def paths(self):
        """Yield each model that takes part with the paths of its samples tables by measure."""
        selected = included(self.selection)
        paths = iter(self.samples)
        for model in self.models:
            own = {name: next(paths) for name in self.measures}
            if label_of(model) in selected:
                yield model, own

    def _calibrated(self, path_to_logits, model, calibrations):
        sample_id, labels, logits = read_logits(path_to_logits, expect=model)
        correct = predictions(logits, labels) == labels
        activation = self.measures[self.calibrated_measure]["activation"]
        for objective, result in calibrations.items():
            temperature = chosen_temperature(result, label_of(model))
            # An objective without an optimum chooses no temperature; calibration.json says why.
            if temperature is not None:
                key = {**model, "measure": self.calibrated_measure}
                key |= {"calibration": objective, "temperature": temperature}
                split = result["split"]
                part = ~choosing_samples(sample_id, labels, split) if split else np.ones(len(labels), dtype=bool)
                values = scores(logits[part], labels[part], activation=activation, temperature=temperature)
                yield Measured(key, values, labels[part], correct[part], sample_id[part], fresh=split is not None)


def _uncalibrated(path_to_samples, model, measure, settings):
    kind = settings["kind"]
    samples = one_row_per_sample(read_samples(path_to_samples, model, measure, kind))
    temperature = 1.0 if kind == "great" else None
    key = {**model, "measure": measure, "calibration": UNCALIBRATED, "temperature": temperature}
    columns = (samples[name].to_numpy() for name in ("value", "label", "correct", "sample_id"))
    measure, upper = measure_of(settings), None
    if measure.undecided:
        # Neither robust nor not: 0 below, 1 above.
        upper = np.where(samples["censored"], measure.value_range[1], samples["value"])
    found = Measured(key, *columns, upper_values=upper, predicted=samples["predicted"].to_numpy())
    _require_in_range(found, path_to_samples, measure.value_range)
    return found


def _require_in_range(measured, path, value_range):
    lowest, highest = value_range
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


def read_samples(path, model, measure, kind):
    """Samples table of a model and measure, whatever its kind, with clean correctness and the network's own prediction.

    They are the columns `correct`, where it is not known by what was measured, and `predicted`, there missing.
    """
    samples = read_table(path, table_of(kind), expect={**model, "measure": measure})
    predicted = samples["clean_prediction" if "clean_prediction" in samples else "prediction"]
    # What was computed elsewhere comes with the predictions of the measured classifier only.
    clean = predicted.fillna(samples["prediction"])
    return samples.assign(correct=clean == samples["label"], predicted=predicted)


def one_row_per_sample(samples):
    """Mean value over the rows of each sample, in the order of the samples' first rows: N rows, not N x conditions.

    Rows of one sample are no independent draws, so they must not count as samples in an interval.
    """
    if not samples["sample_id"].duplicated().any():
        return samples
    grouped = samples.groupby("sample_id", sort=False)
    first = {name: grouped[name].first() for name in ("label", "correct", "predicted")}
    return pd.DataFrame(first | {"value": grouped["value"].mean()}).reset_index()


def chosen_temperature(result, label):
    """Temperature that one objective of calibration.json chose for the model of this label; None without an optimum."""
    return (result["t_star_by_model"] or {}).get(label, result["t_star"])


def included(path_to_selection):
    """Labels of the models that take part in an audit, from models.json."""
    return set(read_json(path_to_selection)["included"])


def label_of(model):
    """Name of a model within an audit, "threat/model": the same model name exists under several threats."""
    return f"{model['threat']}/{model['model']}"
