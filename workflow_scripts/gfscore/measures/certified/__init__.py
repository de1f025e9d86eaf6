"""Certified l2 radius of the randomly smoothed classifier, which votes over noisy copies of its input."""

from collections.abc import Iterator
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gfscore.attacks.declaration import Distance, Steps
from gfscore.core.settings import Closed
from gfscore.measures.declaration import Column, CopiesAtOnce, Kind, Measure, Mistake, NetworkSettings

HALF = 0.5
"""A class needs more than half of the smoothed probability before anything is certified."""

Draws = Annotated[int, Field(ge=1, le=10_000_000)]


class Sandwich(Closed):
    """Attack on the smoothed classifier within each certified radius."""

    steps: Steps = 20
    gradient_draws: Annotated[int, Field(ge=1, description="Noisy copies per gradient, at most batch_size.")] = 32


class Smoothing(Closed):
    """Randomized smoothing (Cohen et al. 2019), computed here."""

    sigma: Annotated[Distance, Field(description="Standard deviation of the noise, pixels in [0, 1].")] = 0.25
    selection_samples: Annotated[Draws, Field(description="Noisy copies that choose the class.")] = 100
    estimation_samples: Annotated[Draws, Field(description="Other noisy copies that bound its probability.")] = 1000
    alpha: Annotated[float, Field(gt=0, lt=0.5, description="Error probability of one certificate.")] = 0.001
    batch_size: CopiesAtOnce = 1024
    precision: Annotated[
        Literal["float32", "tf32", "bfloat16"],
        Field(description="Arithmetic of the copies that vote: the certificate is of the network in this arithmetic."),
    ] = "float32"
    sandwich: Annotated[
        Sandwich | None,
        Field(description="Attack on the smoothed classifier within each certified radius; null for none."),
    ] = None


class Certified(NetworkSettings):
    """Certified radius: of `smoothing`, computed here, or up to a `largest_radius`, computed elsewhere."""

    absent = frozenset({"largest_radius", "smoothing"})

    kind: Literal["certified"] = "certified"
    largest_radius: Annotated[
        Distance | None,
        Field(description="Upper end of the range of radii that were computed elsewhere (models of source samples)."),
    ] = None
    smoothing: Annotated[
        Smoothing | None, Field(description="How radii are computed here; null where largest_radius is given.")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _smoothing_by_default(cls, entry: Any) -> Any:
        # Radii computed elsewhere need largest_radius; without it, radii are computed with the default smoothing.
        if not isinstance(entry, dict):
            return entry
        if entry.get("largest_radius") is not None or entry.get("smoothing") is not None:
            return entry
        return {**entry, "smoothing": {}}

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.largest_radius is not None and self.smoothing is not None:
            raise ValueError("largest_radius is for radii computed elsewhere, smoothing for computed ones; give one")
        return self


def provable_radius(smoothing: Smoothing) -> float:
    """Largest radius that n = estimation_samples noisy copies can prove when all agree: sigma Phi^-1(alpha^(1/n)).

    Returns
    -------
    float
        In the unit of sigma; 0 where the copies prove nothing.

    References
    ----------
    Cohen et al. 2019, section 3.2.
    """
    proven = smoothing.alpha ** (1 / smoothing.estimation_samples)
    # One part in 1e9 for the rounding of float64 in each radius.
    return smoothing.sigma * NormalDist().inv_cdf(proven) * (1 + 1e-9) if proven > HALF else 0.0


def describe(settings: Certified) -> Measure:
    """Range, unit and meaning of the measure, up to the largest radius."""
    largest = settings.largest_radius
    # How often radii computed elsewhere are wrong is unknown.
    alpha = 0.0
    base = "the classifier before smoothing"
    if settings.smoothing is not None:
        largest = provable_radius(settings.smoothing)
        alpha = settings.smoothing.alpha
        if settings.smoothing.precision != "float32":
            base += f", which votes in {settings.smoothing.precision}"
    return Measure(
        title="Certified l2 radius of the smoothed classifier",
        value_range=(0.0, largest or 0.0),
        unit="l2 distance, pixels in [0, 1]",
        explanation=(
            "Radius within which no perturbation changes the prediction of the randomly smoothed classifier, for a "
            "right prediction; 0 for a wrong one or an abstention. Each radius holds with the confidence of its own "
            f"test, and says nothing about {base}."
        ),
        alpha=alpha,
    )


def find_mistakes(settings: Certified, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield settings that can prove nothing, and gradients of more copies than fit into a batch."""
    smoothing = settings.smoothing
    if smoothing is None:
        return
    if provable_radius(smoothing) <= 0:
        yield Mistake(
            ("smoothing",),
            f"{smoothing.estimation_samples} estimation_samples can prove nothing at alpha {smoothing.alpha:g}; give "
            "more",
        )
    if smoothing.sandwich and smoothing.sandwich.gradient_draws > smoothing.batch_size:
        yield Mistake(("smoothing", "sandwich"), f"gradient_draws must be at most batch_size ({smoothing.batch_size})")


def forward_passes(settings: Certified, _classes: int) -> float:
    """Noisy copies that select and estimate, and the gradients of the attack within the radius."""
    smoothing = settings.smoothing
    if smoothing is None:
        return 0
    passes = smoothing.selection_samples + smoothing.estimation_samples
    if smoothing.precision != "float32":
        passes += 2 * smoothing.selection_samples
    if smoothing.sandwich is not None:
        passes += 3 * smoothing.sandwich.steps * smoothing.sandwich.gradient_draws
    return passes


def images_at_once(settings: Certified, batch_size: int, classes: int) -> int:
    """Most images in one pass: those of a batch, or noisy copies of them."""
    return max(batch_size, settings.smoothing.batch_size) if settings.smoothing else batch_size


KIND = Kind(
    name="certified",
    settings=Certified,
    named_by=("smoothing.sigma",),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    random_draws=True,
    gradients=lambda settings: settings.smoothing is not None and settings.smoothing.sandwich is not None,
    elsewhere=lambda settings: settings.largest_radius is not None,
    hint=(
        "a measure of this kind has largest_radius for values computed elsewhere, smoothing for all others, and "
        "sandwich: null where the model gives no gradients"
    ),
    function="gfscore.measures.certified.batch:measure_batch",
    imported="gfscore.measures.certified.radii:import_radii",
    columns=(
        Column("radius", "float64", "certified radius of the prediction, right or wrong; 0 for an abstention"),
        Column("abstained", "bool", "no class had a proven majority"),
        Column("draws", "int64", "noisy copies that decided; null where unknown"),
        Column("lower_bound", "float64", "lower confidence bound of the top class's probability; null where unknown"),
        Column(
            "drift",
            "float64",
            "share of the noisy copies of the selection that float32 gives another class; null where votes are in "
            "float32, or unknown",
        ),
        Column("attacked", "bool", "the certificate was attacked; null where unknown"),
        Column("refuted", "bool", "an attack on the smoothed classifier showed it wrong; null where unknown"),
    ),
    version=3,
    forward_passes=forward_passes,
    images_at_once=images_at_once,
    runtime=1440,
    value="radius within which the *smoothed* classifier cannot change; 0 if it is wrong or abstains",
    passes=(
        "noisy copies that select plus those that estimate, without gradients; a `precision` other than "
        "float32 adds twice those that select; the attack on the certificates (`sandwich`) adds steps x gradient draws"
    ),
)
