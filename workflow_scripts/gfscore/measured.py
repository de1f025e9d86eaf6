"""The values of every measure of an audit, at T = 1 and at the chosen temperatures, one model after the other."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from gfscore.files import read_json
from gfscore.margins import predictions, scores
from gfscore.tables import read_logits, read_table

UNCALIBRATED = "none"


@dataclass(frozen=True)
class Measured:
    """One measure of one model on N samples.

    `key` holds dataset, threat, model, measure, calibration, temperature; `values` (N,) float64 in the measure's
    range; `labels` (N,) int32; `correct` (N,) bool, clean correctness of the same samples.
    """

    key: dict
    values: np.ndarray
    labels: np.ndarray
    correct: np.ndarray

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
        """From what plan.subject_of says, and a mapping that holds the paths by the names of the fields."""
        return cls(**subject, **{name: files[name] for name in ("samples", "logits", "calibration", "selection")})

    def measured(self):
        """Yield a Measured for each model and measure at T = 1, and for each calibration of the calibrated one."""
        calibrations = read_json(self.calibration) if self.calibrated_measure else {}
        selected = included(self.selection)
        paths = iter(self.samples)
        logits = iter(self.logits)
        for model in self.models:
            own = {name: next(paths) for name in self.measures}
            path_to_logits = next(logits) if calibrations else None
            if label_of(model) not in selected:
                continue
            for name, path in own.items():
                yield _uncalibrated(path, model, name, self.measures[name]["kind"])
            if calibrations:
                yield from self._calibrated(path_to_logits, model, calibrations)

    def _calibrated(self, path_to_logits, model, calibrations):
        _, labels, logits = read_logits(path_to_logits, expect=model)
        correct = predictions(logits, labels) == labels
        activation = self.measures[self.calibrated_measure]["activation"]
        for objective, result in calibrations.items():
            temperature = (result["t_star_by_model"] or {}).get(label_of(model), result["t_star"])
            # An objective without an optimum chooses no temperature; calibration.json says why.
            if temperature is not None:
                key = {**model, "measure": self.calibrated_measure}
                key |= {"calibration": objective, "temperature": temperature}
                values = scores(logits, labels, activation=activation, temperature=temperature)
                yield Measured(key, values, labels, correct)


def _uncalibrated(path_to_samples, model, measure, kind):
    samples = read_table(path_to_samples, "samples", expect={**model, "measure": measure})
    labels = samples["label"].to_numpy()
    correct = samples["prediction"].to_numpy() == labels
    temperature = 1.0 if kind == "great" else None
    key = {**model, "measure": measure, "calibration": UNCALIBRATED, "temperature": temperature}
    return Measured(key, samples["value"].to_numpy(), labels, correct)


def included(path_to_selection):
    """Labels of the models that take part in an audit, from models.json."""
    return set(read_json(path_to_selection)["included"])


def label_of(model):
    """Name of a model within an audit, "threat/model": the same model name exists under several threats."""
    return f"{model['threat']}/{model['model']}"
