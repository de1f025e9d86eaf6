"""The tables of an audit: their columns with types, units and meaning.

Those whose columns follow from the metrics stand in gfscore.audit.model_summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gfscore.audit.agreement.decisions import CLASS_SHARES, TRAINING_METHODS
from gfscore.audit.agreement.falsification import FALSIFICATION_TABLE
from gfscore.audit.agreement.gradient_masking import MASKING_SIGNS
from gfscore.audit.agreement.radii import CLASS_DISTANCES, LOG_RANK_TESTS, RADIUS_CURVES, REFUTATIONS
from gfscore.audit.agreement.rank_correlations import MEASURE_AGREEMENT
from gfscore.audit.classwise.confusion import CLASS_ERRORS, CONFUSION_TABLE
from gfscore.audit.classwise.corruptions import CORRUPTION_ERRORS
from gfscore.audit.classwise.similarity import SIMILARITIES
from gfscore.audit.classwise.targets import TARGET_MATRIX, TARGET_PREDICTORS, TARGET_SUCCESS
from gfscore.audit.comparison import COMPARISON_COLUMNS
from gfscore.audit.groups.columns import GROUP_COLUMNS
from gfscore.audit.model_summary import MODEL_SUMMARY, SENSITIVITY
from gfscore.audit.projections.columns import PROJECTION_COLUMNS
from gfscore.audit.table_names import COMPARISONS, CONFUSIONS, MEASURE_TABLES
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.tables.parquet_tables import TableFile
from gfscore.tables.table import MEASURED, SUMMARISED, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.tables.table import Table


AGREEMENT = (
    *(FALSIFICATION_TABLE, RADIUS_CURVES, CLASS_DISTANCES, LOG_RANK_TESTS, REFUTATIONS, CLASS_SHARES),
    *(TARGET_SUCCESS, TARGET_MATRIX, TARGET_PREDICTORS, MEASURE_AGREEMENT, TRAINING_METHODS, MASKING_SIGNS),
)
"""Tables that compare the measures of an audit, and their curves."""

_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "sweeps": (
        *MEASURED,
        ("temperature", pa.float64(), "Chebyshev point in log T"),
        ("class_index", pa.int32(), "class, 0..K-1"),
        ("n", pa.int64(), "samples of the class"),
        ("value", pa.float64(), "class score at this temperature; null without samples"),
        ("accuracy", pa.float64(), "clean accuracy of the class; null without samples"),
    ),
    "class_scores": (
        *SUMMARISED,
        ("class_index", pa.int32(), "class, 0..K-1"),
        ("class_name", pa.string(), "name of the class"),
        ("n", pa.int64(), "samples of the class, each image once"),
        (
            "n_missing",
            pa.int64(),
            "of these, samples without a value, though the measure was to have one: the worst for value and low, "
            "the best for high",
        ),
        ("n_rows", pa.int64(), "rows of the dataset with their images: above n where images are repeated"),
        ("value", pa.float64(), "class value; null without samples"),
        ("low", pa.float64(), "lower bound, simultaneous over classes; null at a T chosen on these samples"),
        ("high", pa.float64(), "upper bound, likewise"),
        ("interval", pa.string(), "interval method"),
        ("confidence", pa.float64(), "joint confidence of the bounds"),
        ("accuracy", pa.float64(), "clean accuracy on the same samples"),
        ("variance", pa.float64(), "unbiased variance of the samples' values"),
        ("label_error_rate", pa.float64(), "share of wrong labels the bounds allow for; null: assumed right"),
        ("bootstrap_low", pa.float64(), "lower end by bootstrap: approximate, no guarantee; null as low"),
        ("bootstrap_high", pa.float64(), "upper end by bootstrap, likewise"),
    ),
    "costs": (
        *MEASURED,
        ("step", pa.string(), "step of the workflow; its work serves every measure where measure is null"),
        ("wall_s", pa.float64(), "seconds on the clock, without the start of Python; null where not recorded"),
        ("cpu_s", pa.float64(), "seconds of all processor cores together"),
        ("gpu_s", pa.float64(), "wall time times GPUs allocated, in seconds"),
        ("peak_memory_mib", pa.float64(), "largest resident memory of the process, in MiB"),
        ("samples", pa.int64(), "samples that the measure covers; null where measure is null"),
        (
            "forwards",
            pa.int64(),
            "images passed through the classifier, by killed attempts too where their work was kept, unlike the "
            "seconds; 0 from logits, whose passes are those of extract_logits; null for training and imports",
        ),
        ("backwards", pa.int64(), "images whose logits were differentiated, likewise, once for every gradient"),
    ),
    "confusions": CONFUSION_TABLE.columns,
    "class_errors": CLASS_ERRORS.columns,
    "corruption_errors": CORRUPTION_ERRORS.columns,
    "similarities": SIMILARITIES.columns,
    "class_pairs": (
        *SUMMARISED,
        ("stronger_index", pa.int32(), "the class of the pair with the larger value, 0..K-1; the first of ties"),
        ("stronger_name", pa.string(), "name of that class"),
        ("weaker_index", pa.int32(), "the other class, 0..K-1"),
        ("weaker_name", pa.string(), "name of that class"),
        ("difference", pa.float64(), "stronger minus weaker class value, at least 0"),
        ("low", pa.float64(), "its lower bound, for all pairs of a model together: above 0, they differ; may be null"),
        ("high", pa.float64(), "its upper bound, likewise"),
    ),
    "vulnerability": (
        MEASURED[0],
        *SUMMARISED[3:5],
        ("class_index", pa.int32(), "class, 0..K-1"),
        ("class_name", pa.string(), "name of the class"),
        ("mean_rank", pa.float64(), "mean rank over models, 1 = weakest; null where some model lacks samples"),
        ("times_worst", pa.int64(), "models in which it is a weakest class"),
        ("times_best", pa.int64(), "models in which it is a strongest class"),
        ("models", pa.int64(), "models compared"),
    ),
    "calibration": (
        ("measure", pa.string(), "the great variant that is calibrated"),
        ("objective", pa.string(), "name of the objective"),
        ("temperature", pa.float64(), "end of a stretch of constant value, or a searched temperature"),
        ("value", pa.float64(), "objective; null where undefined"),
    ),
    **COMPARISON_COLUMNS,
    **{table.name: table.columns for table in AGREEMENT},
    **GROUP_COLUMNS,
    **PROJECTION_COLUMNS,
}

_VERSIONS = dict.fromkeys(("class_scores", "confusions", "corruption_errors", "similarities", "calibration"), 2)
_VERSIONS |= dict.fromkeys(PROJECTION_COLUMNS, 4)

TABLES = {name: Table(name=name, version=_VERSIONS.get(name, 1), columns=columns) for name, columns in _COLUMNS.items()}
"""Tables of an audit by name, but those of gfscore.audit.model_summary."""


# ---- The tables of one audit, read together for the steps that present them.


@dataclass(frozen=True)
class AuditTables:
    """The tables of results/audits/<audit>/ as data frames.

    A table that an audit has no measure for is None. Without a temperature search, `calibration` and `sensitivity` are
    None and `calibration_results` (the contents of calibration.json) is empty. `comparison` holds the contents of
    comparison.json, `measures` the present ones of MEASURE_TABLES by name.
    """

    class_scores: pd.DataFrame
    model_summary: pd.DataFrame
    vulnerability: pd.DataFrame
    calibration: pd.DataFrame | None = None
    calibration_results: dict[str, Any] | None = None
    sensitivity: pd.DataFrame | None = None
    comparisons: pd.DataFrame | None = None
    model_comparisons: pd.DataFrame | None = None
    rank_intervals: pd.DataFrame | None = None
    lambda_swaps: pd.DataFrame | None = None
    metric_ranks: pd.DataFrame | None = None
    comparison: dict[str, Any] | None = None
    confusions: pd.DataFrame | None = None
    class_errors: pd.DataFrame | None = None
    similarities: pd.DataFrame | None = None
    measures: dict[str, pd.DataFrame] = field(default_factory=dict)

    def of(self, table: str, measure: str, calibration: str = UNCALIBRATED) -> pd.DataFrame:
        """Rows of one table for one measure and calibration, in the table's order."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)


def read_audit_tables(files: Mapping[str, Any], *, audit: str) -> AuditTables:
    """AuditTables of the audit named `audit` from a mapping of paths.

    `files` holds the tables by name, calibration_json and comparison_json; only class_scores, model_summary and
    vulnerability are required. Raises InputError for a file that is missing, damaged or of another audit.
    """

    def table(name: str, declared: Table | None = None) -> pd.DataFrame | None:
        if not files.get(name):
            return None
        file = TableFile(files[name], declared or TABLES[name], expect={"audit": audit})
        return None if file.identity.get("measured") is False else file.read()

    measures = {name: table(name) for name in MEASURE_TABLES}

    return AuditTables(
        class_scores=table("class_scores"),
        model_summary=table("model_summary", MODEL_SUMMARY),
        vulnerability=table("vulnerability"),
        calibration=table("calibration"),
        calibration_results=read_json(files["calibration_json"]) if files.get("calibration_json") else {},
        sensitivity=table("sensitivity", SENSITIVITY),
        comparison=read_json(files["comparison_json"]) if files.get("comparison_json") else {},
        **{name: table(name) for name in (*COMPARISONS, *CONFUSIONS)},
        measures={name: frame for name, frame in measures.items() if frame is not None},
    )
