"""Details of the section on certainty: noise floor, undecided models, pairs, decisions of the gate."""

from collections.abc import Iterator

import pandas as pd

from gfscore.core.numbers import p_value
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.tables import INTERVAL, MODEL, VALUE, Detail, counted, named, valued


def of_certainty(c: Contents) -> Iterator[Detail | None]:
    """Details on how sure the numbers are."""
    yield _noise_floor(c)
    models = []
    for rule in c.verdict.rules:
        for model in rule.models:
            models.append({**model.model_dump(), "label": model.model, "rule": rule.words})
    judged = pd.DataFrame(models)
    undecided = judged[judged["verdict"] == "INCONCLUSIVE"] if len(judged) else judged
    columns = [
        named("Model", "model"),
        VALUE,
        INTERVAL,
        counted("Samples per class that would settle it", "samples_needed_per_class"),
        counted("Further samples in all", "further_samples_needed"),
        named("Rule", "rule"),
    ]
    summary = "What more samples would show: undecided models and the samples that would settle them"
    yield c.listed(summary, undecided if len(undecided) else None, "verdict", "Undecided models", columns)
    yield _pairs(c)
    columns = [MODEL, named("Verdict", "verdict"), VALUE]
    columns += [INTERVAL, named("Worst class", "worst_class"), named("Rule", "rule")]
    how = {"text": [c.verdict.note], "most": 200}
    decided = judged if len(judged) else None
    yield c.listed("What the gate decided of each model", decided, "verdict", "Verdicts", columns, **how)


def _noise_floor(c):
    rows = c.own("model_summary").sort_values("label")
    columns = [
        MODEL,
        valued("RDI", "rdi"),
        valued("RDI by chance", "rdi_permuted"),
        valued("p", "rdi_p", p_value),
        valued("NRGC", "nrgc"),
        valued("by chance", "nrgc_permuted"),
        valued("p", "nrgc_p", p_value),
        valued("Spread of true values", "between_class_sd"),
        valued("Smallest RDI surely seen", "rdi_detectable"),
    ]
    caption = (
        "Chance: mean when samples are dealt to classes at random. p: share of such deals with at least this disparity."
    )
    summary = "The noise floor: how much disparity chance alone would show"
    return c.listed(summary, rows, "model_summary", "Noise floor", columns, caption=caption, most=200)


def _pairs(c):
    pairs = c.own("model_comparisons")
    columns = [
        named("Model", "first_model"),
        named("against", "second_model"),
        valued("Difference", "difference"),
        INTERVAL,
        valued("p (Holm)", "p_holm", p_value),
        counted("Surely better on", "sure_wins_first"),
        counted("surely worse on", "sure_wins_second"),
    ]
    rows = None if pairs is None else pairs.sort_values("p_holm")
    summary = f"Every pair of models by {c.measure}, the surest difference first"
    return c.listed(summary, rows, "model_comparisons", "Pairs of models", columns)
