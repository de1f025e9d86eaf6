"""An audit of values in memory: the tables and verdict that the workflow makes from files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.class_scores import class_score_table, vulnerability_table
from gfscore.audit.classwise.confusion import Predictions, confusion_tables
from gfscore.audit.comparison import comparison_tables
from gfscore.audit.judgement import judgement_on_values
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import ComparisonSettings, DisparitySettings, IntervalSettings
from gfscore.audit.table_names import COMPARISONS
from gfscore.audit.tables import AuditTables
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.gate_rules import BoundsKey, rule_on
from gfscore.audit.verdicts.verdict import Judgement
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.core.names import numbered
from gfscore.measures import NamedMeasure

DATASET = "these samples"
"""Name of the dataset in tables and chart titles."""

THREAT = "none"
"""Threat model of every model in tables."""

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Smallest and largest value that each sample may have, each (N,)."""


@dataclass(frozen=True, kw_only=True)
class AuditInMemory:
    """Values of one measure for one or several models on the same N samples, and the tables made from them.

    Parameters
    ----------
    measure : NamedMeasure
    values : mapping of str to (ndarray, ndarray)
        By model, the smallest and the largest value of each sample, both (N,) float64 in the range of the measure.
    labels : ndarray (N,) of int32
        True classes, 0..K-1.
    class_names : sequence of K str
    alpha : float
        1 - confidence, of the bounds of each table, of the comparison, and of a verdict.
    fp_lambda : float
        Lambda of FP.
    predictions : mapping of str to ndarray (N,) of int
        Predicted classes by model; empty where they are not known.
    temperature : float
        Temperature of an attack-free score.
    """

    measure: NamedMeasure
    values: Mapping[str, Interval]
    labels: NDArray[np.int32]
    class_names: Sequence[str]
    alpha: float
    fp_lambda: float
    predictions: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    temperature: float = np.nan

    @cached_property
    def samples(self) -> ExpectedSamples:
        """The samples, named as the workflow names rows without a sample_id."""
        names = np.array(numbered("row-", len(self.labels)))
        return ExpectedSamples.each_once(names, self.labels)

    @cached_property
    def sample_values(self) -> list[SampleValues]:
        """The values of each model."""
        result = []
        for name, (low, high) in self.values.items():
            predicted = self.predictions.get(name, np.full(len(self.labels), np.nan))
            result.append(
                SampleValues(
                    model=ModelName(DATASET, THREAT, name),
                    measure=self.measure,
                    expected=self.samples,
                    low=low,
                    high=high,
                    correct=predicted == self.labels,
                    predicted=predicted,
                    missing=np.zeros(len(self.labels), dtype=bool),
                    temperature=self.temperature,
                )
            )
        return result

    @property
    def intervals(self) -> IntervalSettings:
        """Confidence of the bounds of class values."""
        return IntervalSettings(confidence=1 - self.alpha)

    @cached_property
    def class_scores(self) -> pd.DataFrame:
        """The table class_scores."""
        return class_score_table(self.sample_values, self.class_names, intervals=self.intervals, label_error_rates=None)

    @cached_property
    def model_summary(self) -> pd.DataFrame:
        """The table model_summary, without noise floors."""
        return self._summary(complete=False)

    @cached_property
    def summary_with_chance(self) -> pd.DataFrame:
        """The table model_summary with noise floors, which take most of the time."""
        return self._summary(complete=True)

    def _summary(self, *, complete: bool) -> pd.DataFrame:
        accuracies: dict[ModelName, dict[str, float]] = {values.model: {} for values in self.sample_values}
        disparity = DisparitySettings(fp_lambda=self.fp_lambda)
        return model_summary_table(
            self.sample_values, self.class_scores, accuracies, disparity, self.intervals, complete=complete
        )

    @cached_property
    def comparisons(self) -> dict[str, pd.DataFrame]:
        """Tables that compare the models, by name; tables of pairs have no rows where there is one model."""
        settings = ComparisonSettings(confidence=1 - self.alpha)
        return comparison_tables(self.sample_values, self.class_names, settings=settings, fp_lambda=self.fp_lambda)[0]

    def judge(self, **entry: Any) -> Judgement:
        """Verdict of one gate rule on all models together.

        Parameters
        ----------
        **entry
            Settings of the rule as in a configuration, without `measure`.

        Raises
        ------
        InputError
            For settings that a rule cannot have, a statistic that is not computed from class values alone, and an
            unknown class.
        """
        rule = rule_on(self.measure.name, entry)
        if rule.bounds_key != BoundsKey(self.measure.name):
            raise InputError(
                f"rule: statistic {rule.statistic} needs more than class values; choose wcr, value, rdi or another one"
            )
        return judgement_on_values(
            self.sample_values, self.class_names, rules=[rule], intervals=self.intervals, fp_lambda=self.fp_lambda
        )

    def tables(self, names: Collection[str], *, against_chance: bool = False) -> AuditTables:
        """Tables for a chart. Comparisons and confusions, which take time, are made only where they are named.

        Parameters
        ----------
        names : collection of str
            Names of the tables that the chart reads.
        against_chance : bool
            Whether model_summary has noise floors.
        """
        tables: dict[str, pd.DataFrame] = {}
        if not set(names).isdisjoint(COMPARISONS):
            tables = dict(self.comparisons)
        if self.predictions and "confusions" in names:
            predictions = []
            for values in self.sample_values:
                samples = pd.DataFrame({"label": self.labels, "prediction": values.predicted})
                predictions.append(Predictions(values.model, self.measure.name, samples))
            tables["confusions"], tables["class_errors"] = confusion_tables(predictions, self.class_names)
        return AuditTables(
            class_scores=self.class_scores,
            model_summary=self.summary_with_chance if against_chance else self.model_summary,
            vulnerability=vulnerability_table(self.class_scores),
            others=tables,
        )
