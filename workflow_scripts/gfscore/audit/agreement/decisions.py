"""Shares of samples decided as probabilistically robust, by class and by training method.

Tables `class_shares` and `training_methods`.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from gfscore.audit.step_params import TrainedModel
from gfscore.audit.values import AuditValues
from gfscore.core.identity import ModelName
from gfscore.measures import NamedMeasure
from gfscore.measures.probabilistic import Probabilistic
from gfscore.statistics.classes import class_means, worst_class_trade
from gfscore.statistics.error_rates import threshold
from gfscore.statistics.intervals import correct_for_label_errors, correct_mean_for_label_errors
from gfscore.statistics.proportions import class_shares, robust_shares
from gfscore.tables.parquet_tables import stacked, typed_frame
from gfscore.tables.table import CLASS_OR_ALL, CLASSIFIER, EVALUATED_DATASET, MEASURED, THREAT, Column, Table

CLASS_SHARES = Table(
    name="class_shares",
    version=1,
    columns=(
        *MEASURED,
        *CLASS_OR_ALL,
        Column("n", pa.int64(), "samples of the class"),
        Column("robust", pa.int64(), "decided as robust"),
        Column("not_robust", pa.int64(), "decided as not robust"),
        Column("undecided", pa.int64(), "not decided within the budget"),
        Column(
            "low",
            pa.float64(),
            "lower bound of the true share; bounds of the classes hold together, the bound of all samples by itself",
        ),
        Column(
            "high",
            pa.float64(),
            "upper bound of the true share; bounds of the classes hold together, the bound of all samples by itself",
        ),
        Column("confidence", pa.float64(), "confidence of the bounds"),
        Column("paper_low", pa.float64(), "the exact-binomial paper's Eq. 7 as printed: no confidence interval"),
        Column("paper_high", pa.float64(), "upper end of the exact-binomial paper's Eq. 7: no confidence interval"),
        Column("kappa", pa.float64(), "tolerated share of changed neighbours"),
        Column("alpha", pa.float64(), "level of the test, taken for its error rate in paper_low and paper_high"),
        Column("error_rate", pa.float64(), "largest probability of a wrong decision, allowed for in low and high"),
    ),
)

TRAINING_METHODS = Table(
    name="training_methods",
    version=1,
    columns=(
        EVALUATED_DATASET,
        Column("adversarial", pa.string(), "measure of kind adversarial"),
        Column("probabilistic", pa.string(), "measure of kind probabilistic; null where the audit has none"),
        THREAT,
        CLASSIFIER,
        Column("training", pa.string(), "training method; models that share it are told apart by architecture or name"),
        Column("n", pa.int64(), "samples with a value of the clean measure and of each measure of this row"),
        Column("accuracy", pa.float64(), "clean accuracy"),
        Column("attack_failure_rate", pa.float64(), "share correct under attack, an upper bound of robust accuracy"),
        Column("robust", pa.float64(), "share decided as probabilistically robust"),
        Column("undecided", pa.float64(), "share not decided within the budget"),
        Column("observation", pa.float64(), "lower bound of the robust share as the paper prints it (Eq. 7)"),
        Column("robust_low", pa.float64(), "lower bound of the true robust share, of this row alone"),
        Column("robust_high", pa.float64(), "upper bound of the true robust share, of this row alone"),
        Column("confidence", pa.float64(), "confidence of the bounds"),
        Column("error_rate", pa.float64(), "largest probability of a wrong decision, allowed for in these bounds"),
        Column("worst_class", pa.float64(), "smallest share of a class correct under attack, of all samples attacked"),
        Column("mean", pa.float64(), "share correct under attack, of all samples attacked"),
        Column(
            "baseline",
            pa.string(),
            "classifier, threat/model, trained alike but by the method that this one modifies; null where the audit "
            "has none, or several",
        ),
        Column(
            "rho",
            pa.float64(),
            "relative gain of worst_class less the relative loss of mean, against the baseline (Li and Liu 2023); "
            "above 0 the worst class gains more than the mean loses",
        ),
    ),
)


def class_share_table(
    audit_values: AuditValues,
    class_names: Sequence[str],
    *,
    confidence: float,
    label_error_rates: ArrayLike | None = None,
) -> pd.DataFrame:
    """Table `class_shares` of every measure of kind probabilistic: classes, then all samples.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    class_names : sequence of str
        Names of the K classes.
    confidence : float
        Confidence of the corrected bounds.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that these bounds allow for.
    """
    frames = []
    for model in audit_values.included:
        for measure in audit_values.subject.of_kind("probabilistic"):
            samples = audit_values.table(model, measure.name)
            shares = share_frame(
                samples,
                class_names,
                measure=measure,
                confidence=confidence,
                label_error_rates=label_error_rates,
            )
            frames.append(shares.assign(**model.columns(), measure=measure.name))
    return stacked(CLASS_SHARES, frames)


def share_frame(
    samples: pd.DataFrame,
    class_names: Sequence[str],
    *,
    measure: NamedMeasure,
    confidence: float,
    label_error_rates: ArrayLike | None = None,
) -> pd.DataFrame:
    """Decisions on the samples of one model by class, then on all samples, with bounds of the true shares.

    Parameters
    ----------
    samples : DataFrame
        Samples table with label and state.
    class_names : sequence of str
        Names of the K classes.
    measure : NamedMeasure
        A measure of kind probabilistic.
    confidence : float
        Confidence of the bounds low and high. They allow for the test's error rate; paper_low and paper_high take its
        level alpha instead, as the paper does.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels; low and high allow for them.

    Returns
    -------
    DataFrame
        K + 1 rows with the columns of `class_shares` but the model and the measure.
    """
    settings = cast(Probabilistic, measure.settings)
    error_rate = measure.description.error_rate
    shares = class_shares(
        samples["state"],
        samples["label"],
        class_names,
        test_level=settings.alpha,
        error_rate=error_rate,
        alpha=1 - confidence,
    )
    if label_error_rates is not None:
        # The last row is about all samples, the others about classes.
        n = shares["n"].to_numpy()[:-1]
        low = shares["low"].to_numpy()
        high = shares["high"].to_numpy()
        low_of_classes, high_of_classes = correct_for_label_errors(
            low[:-1], high[:-1], label_error_rates, value_range=(0.0, 1.0)
        )
        low_of_all, high_of_all = correct_mean_for_label_errors(low[-1], high[-1], label_error_rates, n=n)
        shares["low"] = np.append(low_of_classes, low_of_all)
        shares["high"] = np.append(high_of_classes, high_of_all)
    return shares.assign(
        confidence=confidence, kappa=threshold(settings.kappa), alpha=settings.alpha, error_rate=error_rate
    )


def training_method_table(
    audit_values: AuditValues,
    method_names: Mapping[tuple[str, str], str | None],
    baselines: Mapping[str, str],
    *,
    classes: int,
    confidence: float,
    label_error_rates: ArrayLike | None = None,
) -> pd.DataFrame:
    """Table `training_methods`: Table 1 of the exact-binomial paper for every adversarial measure, and rho.

    Parameters
    ----------
    audit_values : AuditValues
        Values of an audit with measures of kind clean and adversarial. Each pair of an adversarial and a probabilistic
        measure gets rows of its own; without probabilistic measures their columns are null.
    method_names : mapping
        Name of the training method by (threat, model), from training_method_names; models without one are left out.
    baselines : mapping
        Model -> baseline of its rho, both as threat/model, for models that have one.
    classes : int
        Number of classes K.
    confidence : float
        Confidence of the bounds.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that the bounds allow for.
    """
    clean = audit_values.subject.of_kind("clean")[0]
    adversarial_measures = audit_values.subject.of_kind("adversarial")
    probabilistic_measures: list[NamedMeasure | None] = list(audit_values.subject.of_kind("probabilistic"))
    models = {model.label: model for model in audit_values.included}
    rows: list[dict[str, object]] = []
    for adversarial, probabilistic in product(adversarial_measures, probabilistic_measures or [None]):
        for model in models.values():
            training = method_names[model.threat, model.classifier]
            if training is None:
                continue
            row: dict[str, object] = {
                **model.columns(),
                "training": training,
                "adversarial": adversarial.name,
                "probabilistic": None if probabilistic is None else probabilistic.name,
            }

            # Shares of the samples that all measures have; measures of different subsets may have none in common.
            samples = {
                "clean": audit_values.table(model, clean.name),
                "adversarial": audit_values.table(model, adversarial.name),
            }
            if probabilistic is not None:
                samples["probabilistic"] = audit_values.table(model, probabilistic.name)
            common = common_samples(samples)
            row["n"] = len(common["clean"])
            row["accuracy"] = common["clean"]["value"].mean()
            row["attack_failure_rate"] = common["adversarial"]["value"].mean()
            if probabilistic is not None and row["n"]:
                row |= _probabilistic_columns(
                    common["probabilistic"],
                    probabilistic,
                    classes=classes,
                    confidence=confidence,
                    label_error_rates=label_error_rates,
                )

            baseline = models.get(baselines.get(model.label, ""))
            row |= _trade_columns(audit_values, model, baseline, adversarial, classes=classes)
            rows.append(row)
    return typed_frame(TRAINING_METHODS, rows)


def _probabilistic_columns(
    samples: pd.DataFrame,
    measure: NamedMeasure,
    *,
    classes: int,
    confidence: float,
    label_error_rates: ArrayLike | None,
) -> dict[str, object]:
    # Shares of robust samples, and their bounds with an allowance for wrong labels.
    settings = cast(Probabilistic, measure.settings)
    error_rate = measure.description.error_rate
    shares = robust_shares(samples["state"], test_level=settings.alpha, error_rate=error_rate, alpha=1 - confidence)
    if label_error_rates is not None:
        n = np.bincount(samples["label"], minlength=classes)
        low, high = correct_mean_for_label_errors(shares["robust_low"], shares["robust_high"], label_error_rates, n=n)
        shares["robust_low"], shares["robust_high"] = float(low), float(high)
    return {**shares, "confidence": confidence, "error_rate": error_rate}


def common_samples(samples: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Rows of several samples tables for the samples that all of them have, in the order of the first."""
    indexed = {kind: table.set_index("sample_id") for kind, table in samples.items()}
    common = set.intersection(*(set(table.index) for table in indexed.values()))
    first = next(iter(indexed.values()))
    order = first.index[first.index.isin(common)]
    return {kind: table.loc[order] for kind, table in indexed.items()}


def _trade_columns(
    audit_values: AuditValues,
    model: ModelName,
    baseline: ModelName | None,
    adversarial: NamedMeasure,
    *,
    classes: int,
) -> dict[str, object]:
    # Worst class and mean under attack, and rho where the model has a baseline.
    worst, mean = _worst_and_mean(audit_values.table(model, adversarial.name), classes)
    columns: dict[str, object] = {"worst_class": worst, "mean": mean}
    if baseline is not None:
        baseline_worst, baseline_mean = _worst_and_mean(audit_values.table(baseline, adversarial.name), classes)
        columns["baseline"] = baseline.label
        columns["rho"] = worst_class_trade(
            worst=worst, mean=mean, baseline_worst=baseline_worst, baseline_mean=baseline_mean
        )
    return columns


def _worst_and_mean(samples: pd.DataFrame, classes: int) -> tuple[float, float]:
    # Shares correct under attack: of the worst class, and of all samples.
    correct = samples["value"].to_numpy(np.float64)
    worst = np.nanmin(class_means(correct, samples["label"], classes))
    return float(worst), float(correct.mean())


def training_method_names(models: Sequence[TrainedModel]) -> dict[tuple[str, str], str | None]:
    """Name of the training method of each model by (threat, model), None if unknown.

    Models of one method are told apart by their architectures, "PGD (patch_mixer)", if these are all different, else by
    their names, else by threat and name.
    """
    names: dict[tuple[str, str], str | None] = {}
    for model in models:
        models_of_method = [other for other in models if other.method == model.method]
        architectures = {other.architecture for other in models_of_method}
        model_names = {other.model for other in models_of_method}
        if model.method is None or len(models_of_method) == 1:
            name = model.method
        elif len(architectures) == len(models_of_method):
            name = f"{model.method} ({model.architecture})"
        elif len(model_names) == len(models_of_method):
            name = f"{model.method} ({model.model})"
        else:
            name = f"{model.method} ({model.threat}/{model.model})"
        names[model.threat, model.model] = name
    return names
