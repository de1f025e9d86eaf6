"""Details of the section on how it was done: cost, meanings, limits, provenance, downloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gfscore.audit.metrics import METRICS
from gfscore.core.names import printable
from gfscore.measures import measure_of
from gfscore.show.page import judged, limits
from gfscore.show.page.tables import Detail, counted, named, table_of, terms_of, text, valued

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables
    from gfscore.show.page.sections.contents import Contents


def of_making(c: Contents) -> Iterator[Detail | None]:
    """Details on how the audit was done."""
    if c.costs is not None and c.costs["wall_s"].notna().any():
        by_step = c.costs.groupby(["step", c.costs["measure"].fillna("")], sort=False)
        sums = by_step[["wall_s", "cpu_s", "gpu_s", "forwards", "backwards"]].sum(min_count=1)
        sums["memory"] = by_step["peak_memory_mib"].max()
        sums = sums.reset_index().sort_values("wall_s", ascending=False)
        columns = [
            named("Step", "step"),
            named("Measure", "measure"),
            valued("Seconds", "wall_s"),
            valued("CPU seconds", "cpu_s"),
            valued("GPU seconds", "gpu_s"),
            valued("Memory, MiB", "memory"),
            counted("Forward passes", "forwards"),
            counted("Gradients", "backwards"),
        ]
        yield Detail("What it cost, step by step, over all models", table=table_of(sums, "Costs", "costs", columns))
    terms = [
        (
            printable(name),
            _meaning(measure_of(settings)),
        )
        for name, settings in c.measures.items()
    ]
    yield Detail("What each measure means", terms=terms)
    yield Detail(
        "What each metric means",
        terms=[
            (
                metric.title,
                f"{metric.explanation}{f' Here lambda is {c.fp_lambda:g}.' if 'lam' in metric.needs else ''}",
            )
            for metric in METRICS.values()
        ],
    )
    yield Detail("Limits: what this page does not say", text=limits.limits_of(c.tables, c.measures))
    excluded = [(printable(model["model"]), text(model["reason"])) for model in c.verdict.get("excluded", [])]
    if excluded:
        yield Detail("Models left out, and why", terms=excluded)
    yield judged.basis_of(c.verdict)
    for heading, values in c.provenance.items():
        yield Detail(f"Provenance: {heading}", terms=terms_of(values))
    links = [(f"{name}.csv", f"{name}.csv") for name in downloads(c.tables)]
    yield Detail(
        "Downloads: every table of this audit",
        links=[("verdict.json", "verdict.json"), ("config.yaml", "config.yaml"), ("figures/", "figures"), *links],
    )
    if c.contact:
        yield Detail("Contact", text=[printable(c.contact)])


def _meaning(measure):
    return f"{measure.title}: {measure.unit}, higher is better. {measure.explanation}"


def downloads(tables: AuditTables) -> Iterable[str]:
    """Names of the tables that an audit has, each a CSV file beside the page."""
    whole = (
        "class_scores",
        "model_summary",
        "vulnerability",
        "comparisons",
        "model_comparisons",
        "confusions",
        "class_errors",
        "similarities",
        "sensitivity",
        "calibration",
    )
    return [*(name for name in whole if getattr(tables, name) is not None), *tables.measures]
