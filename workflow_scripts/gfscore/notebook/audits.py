"""Audits of classifiers from their logits, or from any value per sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from gfscore.core.errors import InputError
from gfscore.core.lazy import LazyModule
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.measures import NamedMeasure, named_measures
from gfscore.measures.declaration import Kind, Measure, Settings
from gfscore.measures.great import NEED_LOGITS
from gfscore.notebook import inputs

if TYPE_CHECKING:
    from gfscore.audit import in_memory
    from gfscore.audit.in_memory import AuditInMemory
    from gfscore.notebook import plots
    from gfscore.statistics import logits as logit_checks
    from gfscore.statistics import margins
else:
    # scipy and matplotlib take as long to import as all else together; the first audit or chart does it.
    in_memory = LazyModule("gfscore.audit.in_memory")
    plots = LazyModule("gfscore.notebook.plots")
    logit_checks = LazyModule("gfscore.statistics.logits")
    margins = LazyModule("gfscore.statistics.margins")

MOST_SHOWN = 20
"""Models of a table that a notebook shows."""

VALUE = "value"
"""Name of the measure of audit_values, which stands in the verdict's sentence."""


@dataclass(frozen=True)
class GateVerdict:
    """Verdict of one rule on all models of an audit; as text it is its sentence.

    Parameters
    ----------
    verdict : {"PASS", "FAIL", "INCONCLUSIVE"}
        FAIL if any model fails, PASS if all pass.
    sentence : str
        The verdict with the rule and the number of models of each verdict.
    models : DataFrame
        By model: verdict; value of the statistic, the smallest that undecided values allow, with the bounds low and
        high that decide; worst_class, missing where these leave several possible; and samples_needed, how many in each
        class would probably settle what is undecided, missing where that is unknown.
    """

    verdict: str
    sentence: str
    models: pd.DataFrame

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence

    __repr__ = __str__


class Audit:
    """Class-wise robustness of one or several classifiers on the same samples.

    Made by `audit_logits` and `audit_values`. In a notebook it shows itself as a table of the models.

    Attributes
    ----------
    classes : DataFrame
        By model and class: samples n; their mean `value`, with the bounds low and high, simultaneous over the classes
        of a model; and, of logits, accuracy. With undecided values, `value` is the mean of the smallest ones.
    metrics : DataFrame
        By model: `value` (mean over all samples), `class_mean`, the disparities `rdi`, `nrgc`, ..., the worst class's
        value `wcr`, `fp`, each with its bounds `<metric>_low` and `<metric>_high` where it has any; `wcr_class`, and
        with its ties `wcr_tied`; `worst_class_set`, the classes that may be the worst; and, of logits, accuracy. With
        undecided values, numbers are of the smallest ones; where these leave several worst classes possible, none is
        named.
    comparison : DataFrame
        By pair of models, the one with the larger mean first: difference of the means with simultaneous bounds low and
        high over all pairs, p of the pair alone and p_holm of all; classes in which either is larger, and surely so.
        Without rows for one model.
    class_comparison : DataFrame
        The same by pair and class, simultaneous over both.
    ranks : DataFrame
        By model, the best first: value, rank, and the ranks rank_best to rank_worst that the comparison allows.
    plot : Plots
        Charts on matplotlib's axes: `audit.plot.heatmap()`.
    """

    def __init__(self, audited: AuditInMemory) -> None:
        """Make the tables of classes and metrics."""
        from gfscore.audit.metrics import METRICS

        self._audited = audited
        columns = ["n", "value", "low", "high"]
        if audited.predictions:
            columns.append("accuracy")
        scores = audited.class_scores.rename(columns={"class_name": "class"})
        self.classes = scores.set_index(["model", "class"])[columns]

        columns = []
        for name, metric in METRICS.items():
            columns.append(name)
            if metric.bounded:
                columns += [f"{name}_low", f"{name}_high"]
        columns += ["wcr_class", "wcr_tied", "worst_class_set"]
        if audited.predictions:
            columns.append("accuracy")
        self.metrics = audited.model_summary.set_index("model")[columns]

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Differences between pairs of models; columns as described for `Audit`."""
        columns = ["n", "difference", "low", "high", "p", "p_holm"]
        columns += ["wins_first", "wins_second", "sure_wins_first", "sure_wins_second"]
        pairs = self._audited.comparisons["model_comparisons"]
        pairs = pairs.rename(columns={"first_model": "first", "second_model": "second"})
        return pairs.set_index(["first", "second"])[columns]

    @cached_property
    def class_comparison(self) -> pd.DataFrame:
        """Differences between pairs of models by class; columns as described for `Audit`."""
        pairs = self._audited.comparisons["comparisons"]
        pairs = pairs.rename(columns={"first_model": "first", "second_model": "second", "class_name": "class"})
        return pairs.set_index(["first", "second", "class"])[["n", "difference", "low", "high", "p", "p_holm"]]

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Ranks of the models; columns as described for `Audit`."""
        ranks = self._audited.comparisons["rank_intervals"]
        return ranks.set_index("model")[["value", "rank", "rank_best", "rank_worst"]]

    def judge(
        self,
        at_least: float | None = None,
        *,
        at_most: float | None = None,
        statistic: str = "wcr",
        class_name: str | None = None,
        confidence: float | None = None,
    ) -> GateVerdict:
        """Verdict of a gate: whether a statistic of every model reaches a threshold.

        Parameters
        ----------
        at_least : float
            Threshold of a statistic of which more is better: "wcr" (the worst class), "value", "class_mean", "fp" or
            "class".
        at_most : float
            Threshold of one of which less is better: "rdi", "nrgc".
        statistic : str
            Which number of the class values is judged.
        class_name : str, optional
            Class of the statistic "class".
        confidence : float, optional
            Probability that no verdict on any of the models is wrong; by default 1 - alpha of the audit.

        Returns
        -------
        GateVerdict
            A model passes when the bound on the safe side reaches the threshold, and fails when the other misses it.

        Raises
        ------
        InputError
            For an unknown statistic or class, and for a threshold in the wrong direction.
        """
        entry: dict[str, Any] = {"statistic": statistic, "class": class_name, "at_least": at_least, "at_most": at_most}
        entry["confidence"] = 1 - self._audited.alpha if confidence is None else confidence
        for key, value in entry.items():
            # The settings of a rule take plain numbers only.
            if isinstance(value, np.generic):
                entry[key] = value.item()
        judgement = self._audited.judge(**entry)
        rows = []
        for model in judgement.rules[0].models:
            rows.append(
                {
                    "model": model.model,
                    "verdict": model.verdict,
                    "value": model.value,
                    "low": model.low,
                    "high": model.high,
                    "worst_class": model.worst_class,
                    "samples_needed": model.samples_needed_per_class,
                }
            )
        models = pd.DataFrame(rows).astype({"samples_needed": "Int64"}).set_index("model")
        return GateVerdict(judgement.verdict, judgement.sentence, models)

    @cached_property
    def plot(self) -> plots.Plots:
        """Charts of the audit on matplotlib's axes."""
        return plots.Plots(self._audited)

    def _overview(self) -> pd.DataFrame:
        # What a notebook shows: the first models by their means, in words.
        from gfscore.core.names import printable, with_ties
        from gfscore.core.numbers import interval, number

        rows = []
        for name, row in self.metrics.sort_values("value", ascending=False, kind="stable")[:MOST_SHOWN].iterrows():
            rows.append(
                {
                    "model": printable(name),
                    "mean": f"{number(row['value'])} ({interval(row['value_low'], row['value_high'])})",
                    "worst class": printable(with_ties(row["wcr_tied"])),
                    "its value": f"{number(row['wcr'])} ({interval(row['wcr_low'], row['wcr_high'])})",
                    "best minus worst": f"{number(row['rdi'])} ({interval(row['rdi_low'], row['rdi_high'])})",
                }
            )
        return pd.DataFrame(rows)

    def _caption(self) -> str:
        from gfscore.core.numbers import counted, percent

        models = len(self.metrics)
        shown = f", the best {MOST_SHOWN} of them here" if models > MOST_SHOWN else ""
        facts = [
            f"{self._audited.measure.description.title} on {counted(len(self._audited.labels), 'sample')}",
            counted(len(self._audited.class_names), "class"),
            f"{counted(models, 'model')}{shown}",
            f"in brackets: {percent(1 - self._audited.alpha)} intervals, joint for a model",
        ]
        if any(values.bounded for values in self._audited.sample_values):
            facts.append("before them: undecided values at their smallest")
        return "; ".join(facts)

    def __repr__(self) -> str:
        """Table of the models as text."""
        return f"{self._caption()}\n{self._overview().to_string(index=False)}"

    def _repr_html_(self) -> str:
        table = self._overview().to_html(index=False, escape=True, border=0)
        return f"<p>{self._caption()}</p>{table}"


# ---- logits ----


def audit_logits(
    logits: Any,
    labels: Any,
    *,
    class_names: Sequence[str] | None = None,
    activation: str = "softmax",
    temperature: float = 1.0,
    lam: float = 0.5,
    alpha: float = 0.05,
    allow_probabilities: Probabilities = False,
) -> Audit:
    """Audit classifiers for class-wise robustness from their logits, by the attack-free margin score.

    Parameters
    ----------
    logits : array-like (N, K), or mapping of str to them
        Outputs before any softmax, of one model or of several by name: arrays, data frames, torch tensors. The names of
        the columns of a data frame are the names of the classes.
    labels : array-like (N,)
        True classes, 0..K-1, or their names where these are given.
    class_names : sequence of K str, optional
        By default the names of the columns, or the indices of the classes.
    activation : {"softmax", "sigmoid", "sigmoid-of-softmax", "softmax-of-sigmoid"}
        Output layer of the score.
    temperature : float
        Divides the logits, above 0.
    lam : float
        Weight lambda of RDI in FP.
    alpha : float
        Every interval of a model holds, together with its others, with probability at least 1 - alpha over the samples,
        if the labels are right and neither model nor `temperature` was chosen on these samples; so do all statements of
        a comparison.
    allow_probabilities : bool or "logarithms"
        True takes values that look like probabilities for logits; "logarithms" takes the logarithms of probabilities,
        which serve the activations that begin with a softmax.

    Returns
    -------
    Audit
        Values lie in 0 to sqrt(pi/2) = 1.2533; higher is better, 0 is misclassified. They are no certified radii.

    Raises
    ------
    InputError
        For wrong shapes, non-finite logits, labels out of range, probabilities given as logits, columns in another
        order than the classes, names that are given twice, K < 2, or a temperature of at most 0.

    References
    ----------
    The score is from GREAT Score, the metrics are from GF-Score; intervals are by betting (Waudby-Smith and Ramdas
    2024).
    """
    if allow_probabilities == LOGARITHMS and activation in NEED_LOGITS:
        raise InputError(
            f"activation {activation}: needs logits, whose size probabilities do not tell; give logits, or activation "
            "softmax"
        )
    logits_by_model = inputs.by_model(logits)
    class_names = _names_of_columns(logits_by_model, class_names)
    indices = inputs.labels_of(labels, class_names)
    values = {}
    predicted = {}
    classes = None
    for name, data in logits_by_model.items():
        where = _where(name, "logits")
        inputs.require_aligned(data, labels, name=where)
        numbers, true_classes = logit_checks.require_logits(
            inputs.array_of(data, name=where),
            indices,
            classes=classes,
            source=where,
            allow_probabilities=allow_probabilities,
        )
        classes = numbers.shape[1]
        scores = margins.scores(numbers, true_classes, activation=activation, temperature=temperature)
        values[name] = (scores, scores)
        predicted[name] = margins.predictions(numbers, true_classes)

    measure_name = f"great-{activation}"
    measures = named_measures({measure_name: {"kind": "great", "activation": activation}})
    return _audited(
        measures[measure_name],
        values,
        true_classes,
        inputs.class_names_of(class_names, int(classes or 0), per="logits per row"),
        alpha=alpha,
        lam=lam,
        predictions=predicted,
        temperature=temperature,
    )


def _names_of_columns(logits_by_model: Mapping[str, Any], class_names: Sequence[str] | None) -> Sequence[str] | None:
    # Names of the classes: `class_names` if given, else the columns of data frames, the same in all of them.
    given = None if class_names is None else list(map(str, class_names))
    names: list[str] | None = None
    for model, data in logits_by_model.items():
        if isinstance(data, pd.DataFrame) and all(isinstance(column, str) for column in data.columns):
            columns = list(data.columns)
            if names is not None and columns != names:
                raise InputError(f"{model}: its columns are {columns}, those of an earlier model {names}; reorder them")
            if given is not None and columns != given and set(columns) == set(given):
                raise InputError(f"{model}: its columns are {columns}, class_names {given}; give both in one order")
            names = columns
    return names if given is None else given


def _where(name: str, noun: str) -> str:
    return noun if name == inputs.ONE_MODEL else f"{noun} of {name}"


# ---- any value per sample ----


class AnyValue(Settings):
    """Settings of values that were computed elsewhere."""

    kind: Literal["value"] = "value"
    lowest: float
    highest: float
    binary: bool


def _describe(settings: AnyValue) -> Measure:
    unit = "share of samples" if settings.binary else f"{settings.lowest:g} to {settings.highest:g}"
    return Measure(
        title="Share of samples" if settings.binary else "Value",
        value_range=(settings.lowest, settings.highest),
        unit=unit,
        explanation="Values of samples that were computed elsewhere; higher is better.",
        binary=settings.binary,
        undecided=True,
    )


ANY_VALUE: Kind[AnyValue] = Kind(
    name=VALUE,
    settings=AnyValue,
    describe=_describe,
    needs="logits",
    function="",
    value="any number of a sample, higher is better",
    passes="none",
)


def audit_values(
    values: Any,
    labels: Any,
    *,
    value_range: tuple[float, float],
    class_names: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> Audit:
    """Audit classifiers for class-wise robustness from any number per sample of which more is better.

    Parameters
    ----------
    values : array-like (N,), or mapping of str to them
        Attacks survived (0 or 1), distances, certified radii, correct predictions, ...: of one model, or of several by
        name or as the columns of a data frame. Where some are undecided, a tuple (low, high) of arrays (N,), the
        smallest and the largest value that each sample may have.
    labels : array-like (N,)
        True classes, 0..K-1, or their names.
    value_range : (float, float)
        Lowest and highest value that a sample may have, at least 0, fixed before the values are looked at: intervals
        rely on it.
    class_names : sequence of K str, optional
        By default the indices 0..K-1 of the classes, or the different names among the labels in alphabetical order.
    alpha : float
        As in `audit_logits`.

    Returns
    -------
    Audit
        Intervals are those of Clopper and Pearson for bool or integer values in the range (0, 1), else by betting.

    Raises
    ------
    InputError
        For wrong shapes, NaN, values outside their range, labels out of range, and names that are given twice.
    """
    lowest, highest = inputs.range_of(value_range)
    values_by_model = inputs.columns_by_model(values)
    if class_names is not None:
        class_names = inputs.require_different(class_names, what="class")
    else:
        array = inputs.array_of(labels, name="labels")
        if inputs.are_names(array):
            class_names = sorted({str(label) for label in array.ravel().tolist()})
    classes = None if class_names is None else len(class_names)
    true_classes = inputs.checked_labels(inputs.labels_of(labels, class_names), classes)

    ends = {}
    every_binary = True
    for name, data in values_by_model.items():
        where = _where(name, "values")
        arrays = data if isinstance(data, tuple) else (data,)
        for array in arrays:
            inputs.require_aligned(array, labels, name=where)
        low, high, binary = inputs.interval_of(data, len(true_classes), value_range=(lowest, highest), name=where)
        ends[name] = (low, high)
        every_binary = every_binary and binary

    settings = AnyValue(lowest=lowest, highest=highest, binary=every_binary)
    names = inputs.class_names_of(class_names, classes or int(true_classes.max()) + 1, per="classes")
    return _audited(NamedMeasure(VALUE, ANY_VALUE, settings), ends, true_classes, names, alpha=alpha)


def _audited(
    measure: NamedMeasure,
    values: Mapping[str, Any],
    labels: np.ndarray,
    class_names: Sequence[str],
    *,
    alpha: float,
    lam: float = 0.5,
    **options: Any,
) -> Audit:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
    if not lam >= 0:
        raise InputError(f"lambda of FP must be at least 0, got {lam!r}")
    return Audit(
        in_memory.AuditInMemory(
            measure=measure,
            values=values,
            labels=labels,
            class_names=class_names,
            alpha=alpha,
            fp_lambda=lam,
            **options,
        )
    )
