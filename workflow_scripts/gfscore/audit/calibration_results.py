"""What a temperature search finds, as calibration.json holds it. Imports nothing heavy."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from gfscore.audit.settings import CalibrationSplit
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
    """p-value of the largest agreement with the accuracies, under `orders` permutations of the accuracies."""

    p: float
    orders: int
    method: str


class ClassCalibrationErrors(Record):
    """Calibration error of each class, (K,), `before` and `after` the calibration; None where undefined."""

    before: list[float | None]
    after: list[float | None]


class SearchResult(Record):
    """Outcome of the search of one objective. Entries that an objective does not have are None.

    Attributes
    ----------
    measure : str
        Score that is calibrated.
    search : str
        "exact", "grid" or "minimisation".
    t_star : float
        Chosen temperature.
    t_star_by_model : dict of str to float
        Chosen temperature of each model, by label, for objectives of single models.
    interval, stretches : (float, float), and list of them
        The widest interval of optimal temperatures, and all of them.
    edge : bool
        Whether an optimum reaches an end of the search.
    best, at_one : float
        Objective at the chosen temperature, and at T = 1.
    undefined : str
        Why there is no optimum.
    paper_grid : GridOptimum
        Optimum on the temperatures of the paper.
    permutation : PermutationTest
    class_calibration_error : dict of str to ClassCalibrationErrors
        By label of the model.
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

    Attributes
    ----------
    baseline : dict of str to (float or None)
        Rank correlations of clean accuracy alone with other quantities.
    agreement : dict of str to Correlations
        Rank correlations of the scores with each quantity, before and after the calibration.
    split : CalibrationSplit or None
        Split of the samples into choosing and reporting ones; None where all samples do both.
    models_digest : str
        Identifies the models and data that the temperature was chosen on.
    """

    baseline: dict[str, float | None] = Field(default_factory=dict)
    agreement: dict[str, Correlations] = Field(default_factory=dict)
    split: CalibrationSplit | None = None
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
