"""Details of the section on classes: values, ranks, errors, targets."""

from collections.abc import Iterator

from gfscore.measures import measure_of
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.tables import CLASS, MODEL, VALUE, Detail, N, bounded, counted, valued


def of_classes(c: Contents) -> Iterator[Detail | None]:
    """Details on which class is weak."""
    rows = c.own("class_scores").sort_values(["value", "label"], na_position="first")
    columns = [
        CLASS,
        MODEL,
        N,
        VALUE,
        bounded("Interval", "low", "high", measure_of(c.measures[c.measure]).value_range[1]),
        valued("Clean accuracy", "accuracy"),
    ]
    summary = f"Every class of every model by {c.measure}, lowest first"
    yield c.listed(summary, rows, "class_scores", "Classes", columns, most=100)

    rows = c.own("vulnerability").sort_values(["mean_rank", "class_index"])
    columns = [
        CLASS,
        valued("Mean rank", "mean_rank"),
        counted("Times weakest", "times_worst"),
        counted("Times strongest", "times_best"),
    ]
    summary = "Classes by their mean rank over models, the most vulnerable first"
    yield c.listed(summary, rows, "vulnerability", "Classes by vulnerability", columns)
    yield _errors(c)

    targets = c.of("target_success")
    rows = None if targets is None else targets.sort_values("success", ascending=False)
    columns = [CLASS, MODEL, N, valued("Turned into it", "success")]
    columns += [valued("without an attack", "clean"), valued("CFPS", "cfps")]
    yield c.listed("Into which class attacks turn samples", rows, "target_success", "Targets", columns)


def _errors(c):
    errors = c.of("class_errors")
    if errors is None:
        return None
    measure = c.measure if (errors["measure"] == c.measure).any() else errors["measure"].iloc[0]
    own = errors[(errors["measure"] == measure) & errors["corruption"].isna()]
    shares = ["recall", "precision", "f1", "cfps", "cfps_relative"]
    means = own.groupby("class", sort=False)[shares].mean().reset_index().sort_values("recall")
    columns = [CLASS, valued("Recall", "recall"), valued("Precision", "precision"), valued("F1", "f1")]
    columns += [valued("Share of all errors (CFPS)", "cfps"), valued("CFPS times K", "cfps_relative")]
    summary = f"Errors by class under {measure}: recall, precision, and where wrong predictions fall"
    caption = "Means over models, lowest recall first."
    return c.listed(summary, means, "class_errors", "Errors by class", columns, caption=caption)
