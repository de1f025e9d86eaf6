"""What a temperature search finds, as calibration.json holds it. Imports nothing heavy."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from gfscore.audit.settings import Split
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.settings import Record


class Correlations(Record):
    """Rank correlation of scores with a quantity, `before` and `after` the calibration; None where undefined."""

    before: float | None
    after: float | None


class GridOptimum(Record):
    """First best temperature of the paper's two-phase grid; `edge` where it is an end of the grid."""

    t_star: float
    best: float
    edge: bool


class PermutationTest(Record):
    """p-value of the largest agreement with the accuracies, from so many `orders` of them."""

    p: float
    orders: int
    method: str


class ClassCalibrationErrors(Record):
    """Calibration error of each class, (K,), `before` and `after` the calibration; None where undefined."""

    before: list[float | None]
    after: list[float | None]


class SearchResult(Record):
    """Outcome of the search of one objective; entries that the objective has not are None.

    `t_star` is the chosen temperature, or `t_star_by_model` that of each model by label; `interval` the widest optimal
    stretch, `stretches` all of them; `edge` says that an optimum reaches an end of the search. `best` is the objective
    at the chosen temperature, `at_one` at T = 1; `undefined` the reason why there is no optimum.
    """

    measure: str
    search: str | None = None
    t_star: float | None = None
    t_star_by_model: dict[str, float] | None = None
    interval: tuple[float, float] | None = None
    stretches: list[tuple[float, float]] | None = None
    edge: bool | None = None
    best: float | None = None
    at_one: float | None = None
    undefined: str | None = None
    paper_grid: GridOptimum | None = None
    permutation: PermutationTest | None = None
    class_calibration_error: dict[str, ClassCalibrationErrors] | None = None

    def temperature_of(self, label: str) -> float | None:
        """Temperature that was chosen for a model, by its label; None without an optimum."""
        if self.t_star_by_model and label in self.t_star_by_model:
            return self.t_star_by_model[label]
        return self.t_star


class Calibration(SearchResult):
    """Search of one objective, and what it gains: one entry of calibration.json.

    `baseline` holds rank correlations of clean accuracy alone, `agreement` those of the scores with each quantity,
    before and after the calibration. `split` is that of the samples; None where all of them chose the temperature.
    `models_digest` identifies models and data that it was chosen on.
    """

    baseline: dict[str, float | None] = Field(default_factory=dict)
    agreement: dict[str, Correlations] = Field(default_factory=dict)
    split: Split | None = None
    models_digest: str

    def agreement_with(self, quantity: str) -> Correlations:
        """Correlations with a quantity; None each where it is unknown."""
        return self.agreement.get(quantity, Correlations(before=None, after=None))


Calibrations = Mapping[str, Calibration]
"""Contents of calibration.json by objective; empty for an audit without a temperature search."""


def read_calibrations(path: Path | str) -> dict[str, Calibration]:
    """Read calibration.json.

    Raises
    ------
    InputError
        If it is missing, damaged, or was written by an earlier version.
    """
    try:
        return {objective: Calibration.model_validate(entry) for objective, entry in read_json(path).items()}
    except ValidationError as error:
        raise InputError(f"{path}: of an earlier version; delete it and run the workflow again") from error


def as_json(calibrations: Calibrations) -> dict[str, object]:
    """Contents of calibration.json."""
    return {objective: calibration.model_dump() for objective, calibration in calibrations.items()}
