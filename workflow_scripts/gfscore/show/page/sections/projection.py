"""Details on projection: models by mapper and task, tasks by attribute, latent dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from gfscore.core.names import printable
from gfscore.show.page.tables import Detail, counted, named, table_of, valued

if TYPE_CHECKING:
    from gfscore.show.page.sections.contents import Contents


PROJECTED = (
    *("tolerance", "deviation", "coupling", "coupling_entropy", "agreement", "accuracy", "decoded_accuracy"),
    *("task_accuracy", "dp", "eopp", "eodd"),
)
"""Numbers of a model on a mapper."""


def of_projection(c: Contents) -> Iterator[Detail | None]:
    """Details of an audit with mappers."""
    yield _projection(c)
    yield _by_attribute(c)
    yield _effects(c)


def _projection(c):
    models = c.of("projection_models")
    if models is None:
        return None
    columns = [named(title, name) for title, name in (("Mapper", "mapper"), ("Task", "dataset"), ("Model", "label"))]
    columns += [counted("n", "n"), *(valued(_title(name), name) for name in PROJECTED)]
    mappers = ", ".join(map(printable, models["mapper"].unique()))
    order = {"by": "tolerance", "ascending": False}
    rows = pd.concat([own.sort_values(**order) for _, own in models.groupby(["mapper", "dataset"], sort=False)])
    return Detail(
        f"Projection on the latent dimensions of {mappers}",
        table=table_of(rows, "Projection", "projection_models", columns),
    )


def _by_attribute(c):
    attributes = c.of("projection_attributes")
    if attributes is None:
        return None
    keys = ["mapper", "dataset", "attribute"]
    names = ["tolerance", "deviation", "dp", "eopp", "eodd"]
    means = attributes[~attributes["constant"].astype(bool)].groupby(keys, sort=False)[names].mean().reset_index()
    columns = [named(title, name) for title, name in zip(("Mapper", "Task", "Attribute"), keys, strict=True)]
    columns += [valued(_title(name), name) for name in names]
    return Detail(
        "Each task by each attribute, mean over models",
        table=table_of(means, "Attributes", "projection_attributes", columns),
    )


def _effects(c):
    effects = c.of("projection_effects")
    if effects is None:
        return None
    columns = [
        named("Mapper", "mapper"),
        named("Dimension", "dimension"),
        named("Trait", "trait"),
        valued("Shift", "shift"),
        valued("Strength", "strength"),
        valued("Tolerance", "tolerance"),
    ]
    rows = effects.sort_values("strength", ascending=False)
    return Detail(
        "What each latent dimension changes", table=table_of(rows, "Dimensions", "projection_effects", columns)
    )


def _title(name):
    return {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}.get(name, name.replace("_", " ").capitalize())
