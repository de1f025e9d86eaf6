"""Changes of class values between two audits of the same data, from the differences of the same samples."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import AuditValues
from gfscore.audit.verdicts.declines import paired, release_rows
from gfscore.core.identity import ModelName
from gfscore.statistics.classes import class_means

BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"

COLUMNS = (
    *("threat", "model", "measure", "class_index", "class_name"),
    *("n", "first", "first_most", "second", "second_most"),
    *("change", "change_least", "change_most", "low", "high", "verdict"),
)
"""Columns of the frame that class_changes returns."""


def class_changes(
    earlier: AuditValues,
    later: AuditValues,
    class_names: Sequence[str],
    *,
    pairs: Mapping[ModelName, ModelName],
    measures: Sequence[str],
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None = None,
) -> pd.DataFrame:
    """Class values of both audits, and bounds of their changes.

    Parameters
    ----------
    earlier, later : AuditValues
        Audits of the same data.
    class_names : sequence of str
        Names of the K classes.
    pairs : mapping of ModelName to ModelName
        Model of the earlier audit that each model of the later one is compared with.
    measures : sequence of str
        Measures that both audits have with the same settings.
    intervals : IntervalSettings
        Method and confidence.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that the bounds allow for.

    Returns
    -------
    DataFrame
        A row for each model, by its later name, measure and class:

        - `n`: samples that both audits have.
        - `first`, `second`: mean of their values in the earlier and in the later audit, undecided samples at their
          smallest value; `first_most`, `second_most`: at their largest.
        - `change`: second - first; `change_least`, `change_most`: its range over the values of undecided samples.
        - `low`, `high`: bounds of the change of the class, which hold for all rows together.
        - `verdict`: better or worse where these bounds exclude 0, else undecided.
    """
    classes = len(class_names)
    frames = []
    compared = list(product(pairs.items(), measures))
    # Intervals hold for all rows together, and for those that models left out would have.
    family_size = len(compared) + len(measures) * len(earlier.left_out | later.left_out)
    for (later_model, earlier_model), measure in compared:
        earlier_rows = release_rows(earlier.sample_values(earlier_model, measure))
        later_values = later.sample_values(later_model, measure)
        differences = paired(earlier_rows, later_values, where=f"{measure} of {later_model.label}")
        bounds = differences.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
        low, high = bounds.interval((1 - intervals.confidence) / family_size)
        first = class_means(differences.earlier_low, differences.labels, classes)
        second = class_means(differences.later_low, differences.labels, classes)
        frames.append(
            pd.DataFrame(
                {
                    "threat": later_model.threat,
                    "model": later_model.classifier,
                    "measure": measure,
                    "class_index": np.arange(classes),
                    "class_name": list(class_names),
                    "n": bounds.n,
                    "first": first,
                    "first_most": class_means(differences.earlier_high, differences.labels, classes),
                    "second": second,
                    "second_most": class_means(differences.later_high, differences.labels, classes),
                    "change": second - first,
                    "change_least": class_means(differences.low, differences.labels, classes),
                    "change_most": class_means(differences.high, differences.labels, classes),
                    "low": low,
                    "high": high,
                    "verdict": np.select([low > 0, high < 0], [BETTER, WORSE], UNDECIDED),
                }
            )
        )
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True)
