"""Accuracy under common corruptions: noise, blur, weather, digital."""

from typing import Literal

from pydantic import Field

from gfscore.images.corruptions.parameters import PARAMETERS, SEVERITIES, Corruptions, Severities
from gfscore.measures.declaration import Column, Kind, Measure, NetworkSettings


class Corruption(NetworkSettings):
    """Accuracy under common corruptions."""

    kind: Literal["corruption"] = "corruption"
    corruptions: Corruptions | None = Field(
        None,
        description="Kinds of corruption (Hendrycks and Dietterich 2019) that are made, with a drawn texture for frost "
        "in place of the published photographs; null for all. Null where the dataset brings corrupted copies: all of "
        "these are measured.",
    )
    severities: Severities | None = Field(
        None, description="From 1, mild, to 5, strong; null for all, also of copies that the dataset brings."
    )


def describe(_settings: Corruption) -> Measure:
    """Range, unit and meaning of the measure, the same for any corruptions."""
    return Measure(
        title="Accuracy under common corruptions",
        value_range=(0.0, 1.0),
        unit="share of corrupted copies",
        explanation="Share of the corrupted copies of a sample, over kinds and severities, classified correctly. "
        "Copies that are made here are not those of CIFAR-10-C or ImageNet-C: their draws are others, and frost is a "
        "texture in place of photographs.",
        several_copies=True,
    )


def forward_passes(settings: Corruption, _classes: int) -> float:
    """One pass for each corrupted copy; all kinds and severities where none are named."""
    kinds = len(settings.corruptions or PARAMETERS)
    severities = len(settings.severities) if settings.severities else SEVERITIES
    return 1 + kinds * severities


KIND = Kind(
    name="corruption",
    settings=Corruption,
    describe=describe,
    needs="network",
    random_draws=True,
    predicts=True,
    copies=True,
    function="gfscore.measures.corruption.batch:measure_batch",
    columns=(
        Column("corruption", "string", "kind of corruption"),
        Column("severity", "int32", "1 (mild) to 5 (strong)"),
    ),
    version=3,
    forward_passes=forward_passes,
    runtime=240,
    value="share of its corrupted copies that are classified correctly",
    passes="corruptions x severities",
)
