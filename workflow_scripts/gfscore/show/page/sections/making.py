"""Details of the section on how it was done: cost, meanings, limits, provenance, downloads."""

from collections.abc import Iterator

from gfscore.audit.metrics import METRICS
from gfscore.core.names import printable
from gfscore.measures import measure_of
from gfscore.show.page import judged, limits
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.tables import MEASURE, Detail, counted, named, terms_of, text, valued

DOWNLOADS = (
    *("class_scores", "model_summary", "vulnerability", "comparisons", "model_comparisons", "confusions"),
    *("class_errors", "similarities", "sensitivity", "calibration"),
)
"""Tables of every audit, where it has them, each a CSV file beside the page."""


def of_making(c: Contents) -> Iterator[Detail | None]:
    """Details on how the audit was done."""
    if c.costs is not None and c.costs["wall_s"].notna().any():
        by_step = c.costs.groupby(["step", c.costs["measure"].fillna("")], sort=False)
        sums = by_step[["wall_s", "cpu_s", "gpu_s", "forwards", "backwards"]].sum(min_count=1)
        sums["memory"] = by_step["peak_memory_mib"].max()
        sums = sums.reset_index().sort_values("wall_s", ascending=False)
        columns = [
            named("Step", "step"),
            MEASURE,
            valued("Seconds", "wall_s"),
            valued("CPU seconds", "cpu_s"),
            valued("GPU seconds", "gpu_s"),
            valued("Memory, MiB", "memory"),
            counted("Forward passes", "forwards"),
            counted("Gradients", "backwards"),
        ]
        yield c.listed("What it cost, step by step, over all models", sums, "costs", "Costs", columns)
    measures = {printable(name): measure_of(settings) for name, settings in c.measures.items()}
    terms = [(name, f"{one.title}: {one.unit}, higher is better. {one.explanation}") for name, one in measures.items()]
    yield Detail("What each measure means", terms=terms)
    here = f" Here lambda is {c.fp_lambda:g}."
    terms = [(one.title, f"{one.explanation}{here if 'lam' in one.needs else ''}") for one in METRICS.values()]
    yield Detail("What each metric means", terms=terms)
    outputs = c.provenance.get("Data and versions", {}).get("outputs", "")
    limit_sentences = limits.limits_of(c.tables, c.measures, outputs=outputs)
    yield Detail("Limits: what this page does not say", text=limit_sentences)
    excluded = [(printable(remark.model), text(remark.reason)) for remark in c.verdict.excluded]
    if excluded:
        yield Detail("Models left out, and why", terms=excluded)
    yield judged.basis_of(c.verdict)
    for heading, values in c.provenance.items():
        yield Detail(f"Provenance: {heading}", terms=terms_of(values))
    tables = [*(name for name in DOWNLOADS if getattr(c.tables, name) is not None), *c.tables.measures]
    links = [("verdict.json", "verdict.json"), ("config.yaml", "config.yaml"), ("figures/", "figures")]
    links += [(f"{name}.csv", f"{name}.csv") for name in tables]
    yield Detail("Downloads: every table of this audit", links=links)
    if c.contact:
        yield Detail("Contact", text=[printable(c.contact)])
