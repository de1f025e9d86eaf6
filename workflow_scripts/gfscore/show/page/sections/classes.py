"""Details of the section on classes: values, ranks, errors, targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gfscore.measures import measure_of
from gfscore.show.page.tables import Detail, bounded, counted, named, table_of, valued

if TYPE_CHECKING:
    from gfscore.show.page.sections.contents import Contents


def of_classes(c: Contents) -> Iterator[Detail | None]:
    """Details on which class is weak."""
    yield _values(c)
    yield _ranks(c)
    yield _errors(c)
    yield _targets(c)


def _values(c):
    scores = c.of("class_scores")
    own = scores[scores["measure"] == c.measure].sort_values(["value", "label"], na_position="first")
    highest = measure_of(c.measures[c.measure]).value_range[1]
    columns = [
        named("Class", "class"),
        named("Model", "label"),
        counted("n", "n"),
        valued("Value", "value"),
        bounded("Interval", "low", "high", highest),
        valued("Clean accuracy", "accuracy"),
    ]
    return Detail(
        f"Every class of every model by {c.measure}, lowest first",
        table=table_of(own, "Classes", "class_scores", columns, most=100),
    )


def _ranks(c):
    ranks = c.of("vulnerability")
    ranks = ranks[ranks["measure"] == c.measure].sort_values(["mean_rank", "class_index"])
    columns = [
        named("Class", "class"),
        valued("Mean rank", "mean_rank"),
        counted("Times weakest", "times_worst"),
        counted("Times strongest", "times_best"),
    ]
    return Detail(
        "Classes by their mean rank over models, the most vulnerable first",
        table=table_of(ranks, "Classes by vulnerability", "vulnerability", columns),
    )


def _errors(c):
    errors = c.of("class_errors")
    if errors is None:
        return None
    measure = c.measure if (errors["measure"] == c.measure).any() else errors["measure"].iloc[0]
    own = errors[(errors["measure"] == measure) & errors["corruption"].isna()]
    shares = ["recall", "precision", "f1", "cfps", "cfps_relative"]
    means = own.groupby("class", sort=False)[shares].mean().reset_index().sort_values("recall")
    columns = [
        named("Class", "class"),
        valued("Recall", "recall"),
        valued("Precision", "precision"),
        valued("F1", "f1"),
    ]
    columns += [valued("Share of all errors (CFPS)", "cfps"), valued("CFPS times K", "cfps_relative")]
    return Detail(
        f"Errors by class under {measure}: recall, precision, and where wrong predictions fall",
        table=table_of(
            means, "Errors by class", "class_errors", columns, caption="Means over models, lowest recall first."
        ),
    )


def _targets(c):
    success = c.of("target_success")
    if success is None:
        return None
    columns = [
        named("Class", "class"),
        named("Model", "label"),
        counted("n", "n"),
        valued("Turned into it", "success"),
    ]
    columns += [valued("without an attack", "clean"), valued("CFPS", "cfps")]
    rows = success.sort_values("success", ascending=False)
    return Detail("Into which class attacks turn samples", table=table_of(rows, "Targets", "target_success", columns))
