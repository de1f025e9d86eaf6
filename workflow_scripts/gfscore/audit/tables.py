"""The tables of an audit."""

from __future__ import annotations

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
    calibration, sensitivity : DataFrame or None
        None without a temperature search.
    calibration_results : mapping of str to Calibration
        By objective; empty without a temperature search.
    comparisons, model_comparisons, rank_intervals, lambda_swaps, metric_ranks : DataFrame or None
        COMPARISONS.
    confusions, class_errors, similarities : DataFrame or None
        CONFUSIONS.
    measures : dict
        Those of MEASURE_TABLES that the audit has measures for, by name.
    """

    class_scores: pd.DataFrame
    model_summary: pd.DataFrame
    vulnerability: pd.DataFrame
    calibration: pd.DataFrame | None = None
    calibration_results: Calibrations = field(default_factory=dict)
    sensitivity: pd.DataFrame | None = None
    comparisons: pd.DataFrame | None = None
    model_comparisons: pd.DataFrame | None = None
    rank_intervals: pd.DataFrame | None = None
    lambda_swaps: pd.DataFrame | None = None
    metric_ranks: pd.DataFrame | None = None
    confusions: pd.DataFrame | None = None
    class_errors: pd.DataFrame | None = None
    similarities: pd.DataFrame | None = None
    measures: dict[str, pd.DataFrame] = field(default_factory=dict)

    def named(self, table: str) -> pd.DataFrame | None:
        """A table by its name, also one of some measures; None where the audit has none."""
        frame = getattr(self, table, None)
        return self.measures.get(table) if frame is None else frame

    def of(self, table: str, measure: str, calibration: str = UNCALIBRATED) -> pd.DataFrame:
        """Rows of one table for one measure and calibration, in the table's order."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)
