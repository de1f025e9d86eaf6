"""What a remedy changes on the judging half: class by class, of whole models, and by the strength of the offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.remedies.gains import (
    PairedOutcomes,
    ReferenceClasses,
    class_gains,
    mean_change,
    rdi_change,
    strength_curve,
    worst_class_gain,
)
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.tables.parquet_tables import stacked, typed_frame
from gfscore.tables.table import CLASS, MEASURED, Column, Table

CHANGES = {
    "worst": "value of the worst class, whichever class that is",
    "mean": "mean over the classes by their weights",
    "clean": "clean accuracy, mean over the classes by their weights",
    "rdi": "RDI, best class minus worst",
}
"""Numbers of a model that a remedy changes -> what they are."""


def _change_columns() -> list[Column]:
    columns: list[Column] = []
    for name, meaning in CHANGES.items():
        columns += [
            Column(f"{name}_before", pa.float64(), f"{meaning}, of the original model"),
            Column(f"{name}_after", pa.float64(), "the same of the adjusted model"),
            Column(f"{name}_change", pa.float64(), "after less before"),
            Column(f"{name}_low", pa.float64(), "lower bound of the true change"),
            Column(f"{name}_high", pa.float64(), "upper bound, together with the lower one"),
        ]
    return columns


REMEDY_CLASSES = Table(
    name="remedy_classes",
    version=1,
    columns=(
        *MEASURED,
        *CLASS,
        Column("n", pa.int64(), "samples of the class in the judging half"),
        Column("offset", pa.float64(), "number that the remedy adds to the logit of the class; all of them sum to 0"),
        Column("before", pa.float64(), "class value of the original model; null without samples"),
        Column("after", pa.float64(), "class value of the adjusted model, under attacks that see the offsets"),
        Column("change", pa.float64(), "after less before, on the same samples"),
        Column("low", pa.float64(), "lower bound of the true change, simultaneous over all classes of all models"),
        Column("high", pa.float64(), "upper bound, likewise"),
        Column("confidence", pa.float64(), "simultaneous confidence of the bounds"),
    ),
)

REMEDY_MODELS = Table(
    name="remedy_models",
    version=1,
    columns=(
        *MEASURED,
        Column("objective", pa.string(), "what the offsets were chosen for, on the choosing half"),
        Column("n", pa.int64(), "samples of the judging half"),
        Column("classes", pa.int64(), "classes with samples"),
        Column("helps", pa.bool_(), "worst_low is above 0; else no gain of the worst class is shown"),
        *_change_columns(),
        Column("worst_class_before", pa.string(), "worst class of the original model, the first of ties"),
        Column("worst_class_after", pa.string(), "worst class of the adjusted model"),
        Column(
            "rho", pa.float64(), "relative gain of the worst class less the relative loss of the mean (Li and Liu 2023)"
        ),
        Column("gaining", pa.int64(), "classes that surely gain: low of remedy_classes above 0"),
        Column("losing", pa.int64(), "classes that surely lose: high below 0"),
        Column(
            "confidence",
            pa.float64(),
            "confidence of each pair of bounds, for all models together; those of several numbers are not joint",
        ),
        Column(
            "verdict_before",
            pa.string(),
            "verdict on the original by the gate's rules about this measure; null without",
        ),
        Column("verdict_after", pa.string(), "verdict on the adjusted model, likewise on the judging half"),
        Column("choosing_forwards", pa.int64(), "images passed through the classifier to choose the offsets"),
        Column("audit_forwards", pa.int64(), "images passed to measure the original once on the audit's dataset"),
    ),
)

REMEDY_CURVE = Table(
    name="remedy_curve",
    version=1,
    columns=(
        *MEASURED,
        Column("strength", pa.float64(), "share of the chosen offsets that is added; 0 is the original model"),
        Column("n", pa.int64(), "samples of the judging half"),
        Column("mean", pa.float64(), "mean over the classes by their weights"),
        Column("mean_low", pa.float64(), "lower bound, simultaneous over all bounds of all curves"),
        Column("mean_high", pa.float64(), "upper bound, likewise"),
        Column("worst", pa.float64(), "value of the worst class"),
        Column("worst_low", pa.float64(), "lower bound, likewise"),
        Column("worst_high", pa.float64(), "upper bound, likewise"),
        Column("worst_class", pa.string(), "worst class, the first of ties"),
        Column(
            "rho",
            pa.float64(),
            "relative gain of the worst class less the relative loss of the mean, against strength 0",
        ),
        Column("confidence", pa.float64(), "simultaneous confidence of the bounds"),
    ),
)

REMEDY_TABLES = (REMEDY_CLASSES, REMEDY_MODELS, REMEDY_CURVE)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How offsets were chosen, on samples that the tables leave out.

    Parameters
    ----------
    offsets : ndarray (K,) of float64
        Numbers that are added to the logits at strength 1.
    reference : ReferenceClasses
        Class values of both models on the choosing half.
    objective : str
        What they were chosen for.
    class_weights : array-like (K,) or None
        Weights of the classes in means; None for equal ones.
    forwards : int
        Images passed through the classifier.
    """

    offsets: NDArray[np.float64]
    reference: ReferenceClasses
    objective: str
    class_weights: ArrayLike | None
    forwards: int


@dataclass(frozen=True, kw_only=True)
class MeasuredRemedy:
    """Values of a model and of the same model with offsets, on the judging half of the samples.

    Parameters
    ----------
    original : SampleValues
        Values of the measure that the offsets are to raise.
    adjusted : mapping of float to SampleValues
        Values of the adjusted models by strength; the largest is the remedy that is judged.
    clean : PairedOutcomes
        Whether the original and the adjusted model of the largest strength are right on undisturbed samples.
    choice : Choice
    audit_forwards : int or None
        Images passed through the classifier to measure the original once on the audit's dataset.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that bounds allow for.
    """

    original: SampleValues
    adjusted: Mapping[float, SampleValues]
    clean: PairedOutcomes
    choice: Choice
    audit_forwards: int | None = None
    label_error_rates: ArrayLike | None = None

    @property
    def judged(self) -> SampleValues:
        """Values of the adjusted model of the largest strength."""
        return self.adjusted[max(self.adjusted)]

    @cached_property
    def names(self) -> dict[str, object]:
        """Key columns of the tables."""
        return {**self.original.model.columns(), "measure": self.original.measure.name}

    def paired(self, strength: float, *, classes: int) -> PairedOutcomes:
        """Outcomes before and after, at one strength."""
        adjusted = self.adjusted[strength]
        return PairedOutcomes(
            before_low=self.original.low,
            before_high=self.original.high,
            after_low=adjusted.low,
            after_high=adjusted.high,
            labels=self.original.labels,
            classes=classes,
            label_error_rates=self.label_error_rates,
        )


def remedy_tables(
    remedies: Sequence[MeasuredRemedy],
    class_names: Sequence[str],
    *,
    verdicts: Mapping[str, str],
    intervals: IntervalSettings,
    family_size: int | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables of REMEDY_TABLES by name.

    Parameters
    ----------
    remedies : sequence of MeasuredRemedy
        At least one, all for one measure.
    class_names : sequence of str
        Names of the K classes.
    verdicts : mapping of str to str
        Verdict of the gate on these values of the original and adjusted models, by label; empty without one.
    intervals : IntervalSettings
    family_size : int, optional
        Number of remedies that 1 - confidence is split over: these, and those of models left out of the audit.

    Notes
    -----
    # ASSUME: labels are right but for the declared shares, and samples of a class are independent draws from it.
    """
    # The surest gain is shown first, so that each bound has to hold for all models together.
    alpha = (1 - intervals.confidence) / (family_size or len(remedies))
    class_frames = []
    rows = []
    curve_frames = []
    for remedy in remedies:
        outcomes = {}
        for strength in sorted(remedy.adjusted):
            outcomes[strength] = remedy.paired(strength, classes=len(class_names))
        judged = outcomes[max(outcomes)]

        changes = class_gains(judged, alpha=alpha)
        class_frames.append(
            changes.assign(
                **remedy.names,
                class_index=np.arange(len(class_names)),
                class_name=list(class_names),
                offset=max(remedy.adjusted) * remedy.choice.offsets,
                confidence=intervals.confidence,
            )
        )
        curve = strength_curve(outcomes, weights=remedy.choice.class_weights, intervals=intervals, alpha=alpha)
        curve = curve.assign(**remedy.names, n=len(judged.labels), confidence=intervals.confidence)
        curve["worst_class"] = curve["worst_class"].map(dict(enumerate(class_names)))
        curve_frames.append(curve)
        rows.append(
            {
                **_model_columns(remedy, judged, class_names, alpha=alpha),
                "rho": curve["rho"].iloc[-1],
                "gaining": int((changes["low"] > 0).sum()),
                "losing": int((changes["high"] < 0).sum()),
                "confidence": intervals.confidence,
                "verdict_before": verdicts.get(remedy.original.model.label),
                "verdict_after": verdicts.get(remedy.judged.model.label),
            }
        )
    return {
        "remedy_classes": stacked(REMEDY_CLASSES, class_frames),
        "remedy_models": typed_frame(REMEDY_MODELS, rows),
        "remedy_curve": stacked(REMEDY_CURVE, curve_frames),
    }


def _model_columns(
    remedy: MeasuredRemedy, outcomes: PairedOutcomes, class_names: Sequence[str], *, alpha: float
) -> dict[str, object]:
    choice = remedy.choice
    changes = {
        "worst": worst_class_gain(outcomes, choice.reference, alpha=alpha),
        "mean": mean_change(outcomes, weights=choice.class_weights, alpha=alpha),
        "clean": mean_change(remedy.clean, weights=choice.class_weights, alpha=alpha),
        "rdi": rdi_change(outcomes, choice.reference, alpha=alpha),
    }
    columns = {
        **remedy.names,
        "objective": choice.objective,
        "n": len(outcomes.labels),
        "classes": int((outcomes.n > 0).sum()),
        "helps": changes["worst"].low > 0,
        "worst_class_before": class_names[int(np.nanargmin(outcomes.before))],
        "worst_class_after": class_names[int(np.nanargmin(outcomes.after))],
        "choosing_forwards": choice.forwards,
        "audit_forwards": remedy.audit_forwards,
    }
    for name, change in changes.items():
        columns |= {
            f"{name}_before": change.before,
            f"{name}_after": change.after,
            f"{name}_change": change.difference,
            f"{name}_low": change.low,
            f"{name}_high": change.high,
        }
    return columns
