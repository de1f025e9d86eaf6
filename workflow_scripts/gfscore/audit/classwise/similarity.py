"""Similarity of the predictions and errors of two classifiers, with a baseline by chance: table `similarities`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.classwise.confusion import Predictions, confusion_matrix, row_shares
from gfscore.audit.settings import ConfusionSettings
from gfscore.audit.values import row_generator
from gfscore.statistics.quotients import ratio
from gfscore.statistics.tolerances import STATISTIC_TOLERANCE
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import EVALUATED_DATASET, MEASURE, Column, Table

SIMILARITIES = Table(
    name="similarities",
    version=2,
    columns=(
        EVALUATED_DATASET,
        MEASURE,
        Column("first", pa.string(), "threat/model, one of the first confusions.models of the audit"),
        Column("second", pa.string(), "threat/model"),
        Column("similarity", pa.string(), "how alike is measured, see gfscore.audit.classwise.similarity"),
        Column("class_index", pa.int32(), "class, 0..K-1, whose samples alone are compared; null for all together"),
        Column("class_name", pa.string(), "name of the class; null for all together"),
        Column("n", pa.int64(), "samples that both models were measured on"),
        Column("value", pa.float64(), "similarity; null where undefined"),
        Column("baseline", pa.float64(), "its mean when what the models share is shuffled away"),
        Column("p_value", pa.float64(), "share of the shuffles that reach the value"),
    ),
)


@dataclass(frozen=True)
class Similarity:
    """Similarity of two classifiers on the same samples.

    Parameters
    ----------
    value : float
        Similarity of the pair, NaN where undefined.
    baseline : float
        Its mean over random permutations.
    p_value : float
        Share of the permutations that reach the value (one-sided, the observed order included).
    """

    value: float
    baseline: float
    p_value: float


def similarities(
    labels: ArrayLike, first: ArrayLike, second: ArrayLike, classes: int, *, shuffles: int, rng: np.random.Generator
) -> tuple[dict[str, Similarity], list[Similarity]]:
    """Similarities of two classifiers' predictions of the same N samples.

    Each has a baseline, since cosines of non-negative vectors are always near 1. Renaming permutes the classes that
    have samples, k of them: both models lack the rows of the others, whatever their errors. The identity is one of k!
    renamings, so p-values of the cosines are hardly below 1/k!.

    Parameters
    ----------
    labels, first, second : array of int, shape (N,)
        True classes, and predictions of both classifiers.
    classes : int
        Number of classes K.
    shuffles : int
        Number of permutations.
    rng : Generator
        Draws the permutations.

    Returns
    -------
    by_name : dict
        Similarity on all samples by name:

        - ``confusion_cosine`` of the confusion matrices, as shares of each class's samples; permuted by renaming the
          classes of the second in rows and columns, which keeps its diagonal
        - ``error_cosine`` of these matrices without their diagonals
        - ``recall_cosine`` of the recalls; permuted by renaming the classes of the second
        - ``agreement`` share of samples with equal predictions; permuted among the samples of each true class
        - ``kappa`` Cohen's kappa of the predictions; permuted as agreement
        - ``error_overlap`` samples misclassified by both over those misclassified by either; permuted as agreement
    by_class : list
        Agreement on the samples of each of the K classes, NaN without samples.

    References
    ----------
    Class-wise analysis paper, appendix B, which reports the first without a baseline.
    """
    labels = np.asarray(labels, dtype=np.int64)
    first = np.asarray(first, dtype=np.int64)
    second = np.asarray(second, dtype=np.int64)
    n = np.bincount(labels, minlength=classes)
    first_matrix = np.nan_to_num(row_shares(confusion_matrix(labels, first, classes), n))
    second_matrix = np.nan_to_num(row_shares(confusion_matrix(labels, second, classes), n))
    order = np.arange(classes)
    cosines = _MatrixCosines.of(first_matrix, second_matrix)
    observed = cosines.renamed(order) | _sample_similarities(labels, first, second, classes)
    observed_by_class = _class_agreement(labels, first, second, classes)

    # Rows of each class, ascending.
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    shuffled: dict[str, list[float]] = {name: [] for name in observed}
    shuffled_by_class = np.empty((shuffles, classes))
    sampled = np.flatnonzero(n)
    for shuffle in range(shuffles):
        order[sampled] = rng.permutation(sampled)
        renamed = cosines.renamed(order)
        permuted_rows = np.empty(len(labels), dtype=np.int64)
        for rows in members:
            permuted_rows[rows] = rng.permutation(rows)
        permuted = second[permuted_rows]
        for name, value in (renamed | _sample_similarities(labels, first, permuted, classes)).items():
            shuffled[name].append(value)
        shuffled_by_class[shuffle] = _class_agreement(labels, first, permuted, classes)

    by_name = {name: _against_chance(value, np.array(shuffled[name])) for name, value in observed.items()}
    by_class = []
    for value, chance in zip(observed_by_class, shuffled_by_class.T, strict=True):
        by_class.append(_against_chance(float(value), chance))
    return by_name, by_class


@dataclass(frozen=True)
class _MatrixCosines:
    """Cosines of two matrices (K, K), computed from the few cells of the first that are not 0.

    Renaming the classes of the second changes neither its norm nor those of its diagonal and of its other cells.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    second: NDArray[np.float64]
    norms: dict[str, float]

    @classmethod
    def of(cls, first: NDArray[np.float64], second: NDArray[np.float64]) -> Self:
        norms = {"confusion_cosine": 1.0, "error_cosine": 1.0, "recall_cosine": 1.0}
        for matrix in (first, second):
            diagonal = np.diag(matrix)
            norms["confusion_cosine"] *= float(np.linalg.norm(matrix))
            norms["error_cosine"] *= float(np.linalg.norm(matrix - np.diag(diagonal)))
            norms["recall_cosine"] *= float(np.linalg.norm(diagonal))
        rows, columns = np.nonzero(first)
        return cls(rows, columns, first[rows, columns], second, norms)

    def renamed(self, order: NDArray[np.int64]) -> dict[str, float]:
        """Cosines with class k of the second matrix taken from its class order[k]."""
        products = self.values * self.second[order[self.rows], order[self.columns]]
        correct = self.rows == self.columns
        sums = {
            "confusion_cosine": products.sum(),
            "error_cosine": products[~correct].sum(),
            "recall_cosine": products[correct].sum(),
        }
        return {name: float(sums[name] / norm) if norm > 0 else np.nan for name, norm in self.norms.items()}


def _sample_similarities(
    labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], classes: int
) -> dict[str, float]:
    either = (first != labels) | (second != labels)
    both_wrong = (first != labels) & (second != labels)
    agreement = float(np.mean(first == second))
    chance = float(_prediction_shares(first, classes) @ _prediction_shares(second, classes))
    return {
        "agreement": agreement,
        "kappa": (agreement - chance) / (1 - chance) if chance < 1 else np.nan,
        "error_overlap": float(both_wrong.sum() / either.sum()) if either.any() else np.nan,
    }


def _prediction_shares(predictions: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    # Abstentions count as an additional class.
    counted = np.where(predictions < 0, classes, predictions)
    return np.bincount(counted, minlength=classes + 1) / len(predictions)


def _class_agreement(
    labels: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    same = np.bincount(labels[first == second], minlength=classes)
    return ratio(same, np.bincount(labels, minlength=classes))


def _against_chance(value: float, chance: NDArray[np.float64]) -> Similarity:
    if np.isnan(value) or len(chance) == 0:
        return Similarity(value, np.nan, np.nan)
    # Tolerance for permutations that give the observed value up to rounding.
    reached = np.count_nonzero(chance >= value - STATISTIC_TOLERANCE)
    return Similarity(value, float(np.nanmean(chance)), (1 + reached) / (1 + len(chance)))


# ---- table ----


def similarity_table(
    predictions: Iterable[Predictions], class_names: Sequence[str], settings: ConfusionSettings
) -> pd.DataFrame:
    """Table `similarities` of all pairs of the first models, by measure.

    Compares the samples that both models have: all together, and, for the agreement, also by class. Measures with
    several rows per sample are left out, and so are all but the first `settings.models` models.

    Parameters
    ----------
    predictions : iterable of Predictions
        All predictions of an audit.
    class_names : sequence of str
        Names of the K classes.
    settings : ConfusionSettings
    """
    by_measure: dict[str, list[Predictions]] = {}
    for predicted in predictions:
        if not predicted.several_copies:
            by_measure.setdefault(predicted.measure, []).append(predicted)

    pairs: list[tuple[Predictions, Predictions]] = []
    for predictions_of_models in by_measure.values():
        pairs += combinations(predictions_of_models[: settings.models], 2)

    frames = []
    for first, second in pairs:
        samples = first.samples[["sample_id", "label", "prediction"]].merge(
            second.samples[["sample_id", "prediction"]], on="sample_id", suffixes=("", "_second"), validate="one_to_one"
        )
        if samples.empty:
            continue
        key = {
            "dataset": first.model.dataset,
            "measure": first.measure,
            "first": first.model.label,
            "second": second.model.label,
        }
        labels = samples["label"].to_numpy()
        by_name, by_class = similarities(
            labels,
            samples["prediction"].to_numpy(),
            samples["prediction_second"].to_numpy(),
            len(class_names),
            shuffles=settings.shuffles,
            rng=row_generator(settings.seed, key),
        )
        overall = pd.DataFrame(list(by_name.values())).assign(similarity=list(by_name), n=len(samples))
        classes = pd.DataFrame(by_class).assign(
            similarity="agreement",
            class_index=np.arange(len(class_names)),
            class_name=list(class_names),
            n=np.bincount(labels, minlength=len(class_names)),
        )
        frames.append(pd.concat([overall, classes], ignore_index=True).assign(**key))
    return stacked(SIMILARITIES, frames)
