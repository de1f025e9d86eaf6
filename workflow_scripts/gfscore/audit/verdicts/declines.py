"""Whether classes declined since an earlier release: its values per sample, paired with those of the audit.

The values of the earlier release are copied from its bundle into the results of the audit, so that whoever checks the
verdict later needs no other folder; the digest of the bundle's statement says where they come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.verdict import ReleaseSource
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.core.names import printable
from gfscore.measures.declaration import Measure
from gfscore.statistics.class_bounds import ClassBounds, bounds_of
from gfscore.tables.parquet_tables import TableFile, write_table
from gfscore.tables.table import LABEL, MEASURED, SAMPLE_ID, Column, Table

RELEASE_VALUES = Table(
    name="release_values",
    version=1,
    columns=(
        *MEASURED,
        SAMPLE_ID,
        LABEL,
        Column("low", pa.float64(), "smallest value that the sample may have had in the earlier release"),
        Column("high", pa.float64(), "largest value; the same where it is known, the whole range where it is missing"),
        Column("missing", pa.bool_(), "the earlier release has no value of the sample"),
    ),
)
"""Values per sample of an earlier release, under the names that its models have in the audit."""

# ---- the table ----


def write_release(
    path: Path | str, values: Sequence[SampleValues], *, audit: str, dataset_digest: str, source: ReleaseSource
) -> None:
    """Write the table release_values.

    Parameters
    ----------
    path : path
        File to write.
    values : sequence of SampleValues
        Values of the earlier release under the names of the audit's models.
    audit : str
        Name of the audit.
    dataset_digest : str
        Digest of the dataset, which both audits share.
    source : ReleaseSource
    """
    frames = [release_rows(values_of_model) for values_of_model in values]
    identity = {"audit": audit, "dataset_digest": dataset_digest, "release": source.model_dump()}
    write_table(path, RELEASE_VALUES, pd.concat(frames, ignore_index=True), identity=identity)


def release_rows(values: SampleValues) -> pd.DataFrame:
    """Rows of the table release_values of one model and measure."""
    columns = {
        **values.model.columns(),
        "measure": values.measure.name,
        "sample_id": values.sample_id,
        "label": values.labels,
        "low": values.low,
        "high": values.high,
        "missing": values.missing,
    }
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class ReleaseFile:
    """The table release_values of an audit.

    Parameters
    ----------
    path : path
    """

    path: Path | str

    @cached_property
    def _file(self) -> TableFile:
        return TableFile(self.path, RELEASE_VALUES)

    @property
    def source(self) -> ReleaseSource:
        """Where the values come from."""
        return ReleaseSource.model_validate(self._file.identity["release"])

    @cached_property
    def _frames(self) -> dict[tuple[str, str, str, str], pd.DataFrame]:
        groups = self._file.read().groupby(["dataset", "threat", "model", "measure"], sort=False)
        return {key: rows for key, rows in groups}

    def read(self, model: ModelName, measure: str) -> pd.DataFrame:
        """Rows of a model and measure; InputError where the table has none."""
        key = (model.dataset, model.threat, model.classifier, measure)
        if key not in self._frames:
            raise InputError(f"{self.path}: holds no {measure} of {model.label}; delete it, and run make audit")
        return self._frames[key]


# ---- paired differences ----


@dataclass(frozen=True, kw_only=True)
class PairedDifferences:
    """Differences of the values of the same N samples, later less earlier.

    Parameters
    ----------
    sample_id : ndarray (N,) of str
    labels : ndarray (N,) of int32
    earlier_low, earlier_high, later_low, later_high : ndarray (N,) of float64
        Smallest and largest value that each sample may have: equal where it is known.
    missing : ndarray (N,) of bool
        Samples that have no value in one of the two.
    measure : Measure
        What is measured.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.int32]
    earlier_low: NDArray[np.float64]
    earlier_high: NDArray[np.float64]
    later_low: NDArray[np.float64]
    later_high: NDArray[np.float64]
    missing: NDArray[np.bool_]
    measure: Measure

    @property
    def low(self) -> NDArray[np.float64]:
        """Smallest possible differences, (N,)."""
        return self.later_low - self.earlier_high

    @property
    def high(self) -> NDArray[np.float64]:
        """Largest possible differences, (N,)."""
        return self.later_high - self.earlier_low

    def counts(self, classes: int) -> dict[str, NDArray[np.int64]]:
        """Numbers of pairs by class, each (K,): all (`expected`, `rows`), and those with both values (`measured`)."""
        expected = np.bincount(self.labels, minlength=classes)
        measured = np.bincount(self.labels[~self.missing], minlength=classes)
        return {"measured": measured, "expected": expected, "rows": expected}

    def bounds(
        self, classes: int, *, intervals: IntervalSettings, label_error_rates: ArrayLike | None = None
    ) -> ClassBounds:
        """Bounds of the mean difference of each class.

        Parameters
        ----------
        classes : int
            Number of classes K.
        intervals : IntervalSettings
            The method is the one for measures between the ends of a range, also for 0/1 measures: a difference of their
            values is -1, 0 or 1.
        label_error_rates : array-like (K,), optional
            Shares of wrong labels that the bounds allow for.

        Notes
        -----
        Differences lie in [-r, r], r the length of the measure's range. Where a test or certificate errs with
        probability e, the mean of observed differences is (1 - e) times the true one up to e r: the bounds of
        ClassBounds for a share e of wrong values.

        # ASSUME: pairs of a class are independent draws from it; neither release was chosen by looking at them.
        """
        lowest, highest = self.measure.value_range
        width = highest - lowest
        description = Measure(
            title=f"Change of {self.measure.title}",
            value_range=(-width, width),
            unit=self.measure.unit,
            explanation="Value now less value in the earlier release.",
            alpha=self.measure.alpha,
            test=self.measure.test,
        )
        # A subtraction may leave the range by rounding.
        low = np.clip(self.low, -width, width)
        high = np.clip(self.high, -width, width)
        return bounds_of(
            low,
            self.labels,
            classes,
            measure=description,
            intervals=intervals,
            label_error_rates=label_error_rates,
            upper_values=None if np.array_equal(low, high) else high,
        )


def paired(earlier: pd.DataFrame, later: SampleValues, *, where: Path | str) -> PairedDifferences:
    """Pair the values of a model with those of an earlier release by the names of their samples.

    Parameters
    ----------
    earlier : DataFrame
        Rows of the table release_values of the model and measure.
    later : SampleValues
        Values of the audit.
    where : path
        File of the table, which errors name.

    Returns
    -------
    PairedDifferences
        Of the samples that both have, in the order of the audit.

    Raises
    ------
    InputError
        Where no sample is in both, or one has another label.
    """
    # Row of the earlier table for each sample of the audit; -1 without one.
    rows = pd.Index(earlier["sample_id"]).get_indexer(later.sample_id)
    common = rows >= 0
    rows = rows[common]
    name = f"{later.measure.name} of {later.model.label}"
    if not common.any():
        raise InputError(f"{where}: {name} has no sample in common with the earlier release; measure the same ones")
    labels = later.labels[common]
    relabelled = earlier["label"].to_numpy()[rows] != labels
    if relabelled.any():
        sample = printable(later.sample_id[common][relabelled.argmax()])
        raise InputError(f"{where}: {name}: sample {sample!r} has another label in the earlier release; audit it again")
    return PairedDifferences(
        sample_id=later.sample_id[common],
        labels=labels,
        earlier_low=earlier["low"].to_numpy()[rows],
        earlier_high=earlier["high"].to_numpy()[rows],
        later_low=later.low[common],
        later_high=later.high[common],
        missing=later.missing[common] | earlier["missing"].to_numpy(bool)[rows],
        measure=later.measure.description,
    )
