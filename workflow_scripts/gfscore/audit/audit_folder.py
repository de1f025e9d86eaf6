"""Reader of the folder of a finished audit, for the steps that draw, show and export it."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gfscore.audit.audit_files import ModelSelection
from gfscore.audit.calibration_results import Calibrations, read_calibrations
from gfscore.audit.table_names import COMPARISONS, CONFUSIONS, MEASURE_TABLES, TABLES_OF_AUDIT
from gfscore.audit.tables import TABLES, AuditTables
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.tables.parquet_tables import read_table


@dataclass(frozen=True)
class AuditFolder:
    """results/audits/<audit>, or the same folder of a bundle.

    Every method that reads a file raises InputError where it is missing or damaged, and for a table of another audit.

    Parameters
    ----------
    path : Path
        The folder.
    audit : str
        Name of the audit that its tables must be of.
    """

    path: Path
    audit: str

    @property
    def verdict_file(self) -> Path:
        """Path of its verdict."""
        return self.path / "verdict.json"

    @property
    def selection_file(self) -> Path:
        """Path of models.json: which models take part, and why others are excluded."""
        return self.path / "models.json"

    def table_file(self, name: str) -> Path:
        """Path of one of its tables."""
        return self.path / f"{name}.parquet"

    def files(self) -> list[Path]:
        """Paths of its tables, calibrations, comparisons, selection of models and verdict."""
        tables = [self.table_file(name) for name in TABLES_OF_AUDIT]
        documents = [self.path / "calibration.json", self.path / "comparison.json"]
        return [*tables, *documents, self.selection_file, self.verdict_file]

    def verdict(self) -> Verdict:
        """Its verdict."""
        return read_verdict(self.verdict_file)

    def calibrations(self) -> Calibrations:
        """Its calibrations by objective; empty without a temperature search."""
        return read_calibrations(self.path / "calibration.json")

    def guessing(self) -> list[str]:
        """Labels "threat/model" of models that may be guessing."""
        return ModelSelection.read(self.selection_file).guessing

    def left_out(self) -> int:
        """Number of models that take no part."""
        return len(ModelSelection.read(self.selection_file).excluded)

    def table(self, name: str) -> pd.DataFrame:
        """Rows of one of its tables."""
        return read_table(self.table_file(name), TABLES[name], expect={"audit": self.audit})

    def tables(self) -> AuditTables:
        """The tables that are drawn and shown."""
        names = ("calibration", "sensitivity", *COMPARISONS, *CONFUSIONS, *MEASURE_TABLES)
        return AuditTables(
            class_scores=self.table("class_scores"),
            model_summary=self.table("model_summary"),
            vulnerability=self.table("vulnerability"),
            others={name: self.table(name) for name in names},
            calibration_results=self.calibrations(),
        )
