"""The tables of an audit."""

from dataclasses import dataclass, field

import pandas as pd

from gfscore.audit.agreement.decisions import CLASS_SHARES, TRAINING_METHODS
from gfscore.audit.agreement.falsification import FALSIFICATION_TABLE
from gfscore.audit.agreement.gradient_masking import MASKING_SIGNS
from gfscore.audit.agreement.radii import CLASS_DISTANCES, RADIUS_CURVES, REFUTATIONS
from gfscore.audit.agreement.rank_correlations import MEASURE_AGREEMENT
from gfscore.audit.calibration.evidence import SWEEPS
from gfscore.audit.calibration.temperatures import CALIBRATION
from gfscore.audit.calibration_results import Calibrations
from gfscore.audit.class_scores import CLASS_PAIRS, CLASS_SCORES, VULNERABILITY
from gfscore.audit.classwise.confusion import CLASS_ERRORS, CONFUSION_TABLE
from gfscore.audit.classwise.corruptions import CORRUPTION_ERRORS
from gfscore.audit.classwise.similarity import SIMILARITIES
from gfscore.audit.classwise.targets import TARGET_MATRIX, TARGET_PREDICTORS, TARGET_SUCCESS
from gfscore.audit.comparison import COMPARISON_TABLES
from gfscore.audit.costs import COSTS
from gfscore.audit.groups.metrics import GROUP_METRICS
from gfscore.audit.groups.scores import GROUP_SCORES
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.audit.projections.summaries import PROJECTION_TABLES
from gfscore.audit.remedies.tables import REMEDY_TABLES
from gfscore.audit.sensitivity import SENSITIVITY
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.mappings import by_name
from gfscore.tables.parquet_tables import typed_frame
from gfscore.tables.table import Table

_TABLES = (
    *(SWEEPS, CLASS_SCORES, MODEL_SUMMARY, COSTS),
    *(CONFUSION_TABLE, CLASS_ERRORS, CORRUPTION_ERRORS, SIMILARITIES),
    *(CLASS_PAIRS, VULNERABILITY, CALIBRATION, SENSITIVITY),
    *COMPARISON_TABLES,
    *(FALSIFICATION_TABLE, RADIUS_CURVES, CLASS_DISTANCES, REFUTATIONS, CLASS_SHARES),
    *(TARGET_SUCCESS, TARGET_MATRIX, TARGET_PREDICTORS, MEASURE_AGREEMENT, TRAINING_METHODS, MASKING_SIGNS),
    *(GROUP_SCORES, GROUP_METRICS),
    *PROJECTION_TABLES,
    *REMEDY_TABLES,
)

TABLES: dict[str, Table] = by_name(_TABLES)
"""Tables of an audit by name, in the order of docs/tables.md."""


@dataclass(frozen=True)
class AuditTables:
    """The tables of results/audits/<audit>/ as data frames.

    Parameters
    ----------
    class_scores, model_summary, vulnerability : DataFrame
        Of every audit.
    others : dict
        Further tables of the audit, by name.
    calibration_results : mapping of str to Calibration
        By objective; empty without a temperature search.
    """

    class_scores: pd.DataFrame
    model_summary: pd.DataFrame
    vulnerability: pd.DataFrame
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    calibration_results: Calibrations = field(default_factory=dict)

    def named(self, name: str) -> pd.DataFrame:
        """A table by its name; without rows where the audit has none."""
        frame = self.others.get(name, getattr(self, name, None))
        return typed_frame(TABLES[name], []) if frame is None else frame

    def uncalibrated(self, name: str) -> pd.DataFrame:
        """Rows of a table; of one that has rows at several temperatures those at T = 1."""
        frame = self.named(name)
        if "calibration" in frame:
            frame = frame[frame["calibration"] == UNCALIBRATED]
        return frame

    def undecided(self, measure: str | None) -> bool:
        """Whether the values of some samples are undecided, of one measure or of any, at T = 1."""
        scores = self.uncalibrated("class_scores")
        if measure is not None:
            scores = scores[scores["measure"] == measure]
        return bool((scores["value_most"] > scores["value"]).any())

    def of_measure(self, name: str, measure: str) -> pd.DataFrame:
        """Rows of a table for one measure, at T = 1."""
        frame = self.uncalibrated(name)
        return frame[frame["measure"] == measure].reset_index(drop=True)
