"""Details of the section on certainty: noise floor, undecided models, pairs, decisions of the gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from gfscore.core import numbers
from gfscore.show.page.tables import Detail, bounded, counted, named, table_of, valued

if TYPE_CHECKING:
    from gfscore.show.page.sections.contents import Contents


SIGNED, P = numbers.signed, numbers.p_value


def of_certainty(c: Contents) -> Iterator[Detail | None]:
    """Details on how sure the numbers are."""
    yield _noise_floor(c)
    yield _undecided(c)
    yield _pairs(c)
    yield _decided(c)


def _noise_floor(c):
    summary = c.of("model_summary")
    own = summary[summary["measure"] == c.measure].sort_values("label")
    columns = [
        named("Model", "label"),
        valued("RDI", "rdi"),
        valued("RDI by chance", "rdi_permuted"),
        valued("p", "rdi_p", P),
        valued("NRGC", "nrgc"),
        valued("by chance", "nrgc_permuted"),
        valued("p", "nrgc_p", P),
        valued("Spread of true values", "between_class_sd"),
        valued("Smallest RDI surely seen", "rdi_detectable"),
    ]
    caption = (
        "Chance: mean when samples are dealt to classes at random. p: share of such deals with at least this disparity."
    )
    return Detail(
        "The noise floor: how much disparity chance alone would show",
        table=table_of(own, "Noise floor", "model_summary", columns, caption=caption, most=200),
    )


def _judged_models(c):
    # Every model under every rule of the gate.
    return [
        {**model, "label": model["model"], "rule": rule["words"]}
        for rule in c.verdict["rules"]
        for model in rule["models"]
    ]


def _undecided(c):
    rows = [model for model in _judged_models(c) if model["verdict"] == "INCONCLUSIVE"]
    if not rows:
        return None
    columns = [
        named("Model", "model"),
        valued("Value", "value"),
        bounded("Interval", "low", "high"),
        counted("Samples per class that would settle it", "samples_needed_per_class"),
        counted("Further samples in all", "further_samples_needed"),
        named("Rule", "rule"),
    ]
    return Detail(
        "What more samples would show: undecided models and the samples that would settle them",
        table=table_of(pd.DataFrame(rows), "Undecided models", "verdict", columns),
    )


def _pairs(c):
    pairs = c.of("model_comparisons")
    if pairs is None:
        return None
    own = pairs[pairs["measure"] == c.measure].sort_values("p_holm")
    columns = [
        named("Model", "first_model"),
        named("against", "second_model"),
        valued("Difference", "difference"),
        bounded("Interval", "low", "high"),
        valued("p (Holm)", "p_holm", P),
        counted("Surely better on", "sure_wins_first"),
        counted("surely worse on", "sure_wins_second"),
    ]
    return Detail(
        f"Every pair of models by {c.measure}, the surest difference first",
        table=table_of(own, "Pairs of models", "model_comparisons", columns),
    )


def _decided(c):
    rows = _judged_models(c)
    if not rows:
        return None
    columns = [named("Model", "label"), named("Verdict", "verdict"), valued("Value", "value")]
    columns += [bounded("Interval", "low", "high"), named("Worst class", "worst_class"), named("Rule", "rule")]
    return Detail(
        "What the gate decided of each model",
        text=[c.verdict["note"]],
        table=table_of(pd.DataFrame(rows), "Verdicts", "verdict", columns, most=200),
    )
