"""Probabilistic robustness: whether a sequential test decides that few random neighbours are classified otherwise."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Distance, beyond_white
from gfscore.core.errors import InputError
from gfscore.core.numbers import setting
from gfscore.core.settings import Closed
from gfscore.images.corruptions.parameters import PARAMETERS, Corruptions, Severities
from gfscore.measures.declaration import Column, CopiesAtOnce, Kind, Measure, Mistake, NetworkSettings
from gfscore.statistics.error_rates import SequentialTest, threshold

LARGEST_BUDGET = 100_000
"""Draws of a test up to which its error rate is found in seconds; beyond, the step that tests looks at it."""

Clip = Annotated[bool, Field(description="Whether neighbours are clipped to [0, 1].")]


class LinfBall(Closed):
    """Uniform in an l_inf ball."""

    family: Literal["linf_ball"]
    eps: Annotated[Distance, Field(description="Radius of the ball, or a fraction such as 8/255.")] = 8 / 255
    clip: Clip = True


class L2Ball(Closed):
    """Uniform in an l2 ball."""

    family: Literal["l2_ball"]
    eps: Annotated[Distance, Field(description="Radius of the ball.")] = 0.5
    clip: Clip = True


class Gaussian(Closed):
    """Gaussian noise."""

    family: Literal["gaussian"]
    sigma: Annotated[Distance, Field(description="Standard deviation of the noise.")] = 0.1
    clip: Clip = True


class OneCorruption(Closed):
    """One of several corruptions, at random."""

    family: Literal["corruption"]
    corruptions: Corruptions = Field(default_factory=lambda: list(PARAMETERS))
    severities: Severities = Field(default_factory=lambda: [1, 2, 3, 4, 5])
    # As image files are; a setting all the same, as it is part of the identity of tables.
    clip: Annotated[Literal[True], Field(description="Corrupted copies are always clipped to [0, 1].")] = True


Neighbours = LinfBall | L2Ball | Gaussian | OneCorruption
"""Settings of a distribution of neighbours."""


class Probabilistic(NetworkSettings):
    """Probabilistic robustness."""

    kind: Literal["probabilistic"] = "probabilistic"
    kappa: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | Literal["SIL1", "SIL2", "SIL3", "SIL4"],
        Field(
            description="Largest tolerated share of changed neighbours, or SIL1..SIL4 for 1e-1..1e-4: numbers borrowed "
            "from IEC 61508, not conformity with it."
        ),
    ] = 0.01
    alpha: Annotated[float, Field(gt=0, lt=0.5, description="Error probability of each call.")] = 0.05
    test: Annotated[
        Literal["anytime", "repeated_exact"],
        Field(description="anytime keeps alpha; repeated_exact, as printed in the paper, does not."),
    ] = "anytime"
    budget: Annotated[int, Field(ge=1, le=10_000_000, description="Most neighbours drawn per image.")] = 3000
    perturbation: Annotated[
        Neighbours,
        Field(discriminator="family", description="What a neighbour is."),
    ] = LinfBall(family="linf_ball")
    reference: Annotated[
        Literal["prediction", "label"],
        Field(description="Changed against what: the prediction (stable) or the label (correct and stable)."),
    ] = "prediction"
    batch_size: CopiesAtOnce = 1024

    @property
    def sequential_test(self) -> SequentialTest:
        """The test that decides about each image."""
        return SequentialTest(kappa=self.kappa, alpha=self.alpha, name=self.test, budget=self.budget)


def describe(settings: Probabilistic) -> Measure:
    """Range, unit and meaning of the measure at its threshold."""
    return Measure(
        title=f"Probabilistic robustness at kappa = {setting(threshold(settings.kappa))}",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        undecided=True,
        explanation=(
            "1 when a sequential test decides that at most a share kappa of the perturbed copies is classified "
            "otherwise, 0 when it decides the contrary or nothing within its budget."
        ),
        test=settings.sequential_test,
    )


def find_mistakes(settings: Probabilistic, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield distances beyond white and, if `thorough`, tests that can decide nothing or err too often."""
    if isinstance(settings.perturbation, LinfBall):
        for key, words in beyond_white(settings.perturbation.model_dump(), ("eps",)):
            yield Mistake(("perturbation", key), words)
    if not thorough:
        return
    test = settings.sequential_test
    try:
        # Without scipy, as in an environment of Snakemake alone, the step itself finds the mistake.
        with suppress(ImportError):
            test.require_budget()
            if settings.budget <= LARGEST_BUDGET:
                test.error_rate()
    except InputError as error:
        yield Mistake((), str(error))


KIND = Kind(
    name="probabilistic",
    settings=Probabilistic,
    named_by=("perturbation.family", "perturbation.eps", "perturbation.sigma", "kappa"),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    random_draws=True,
    function="gfscore.measures.probabilistic.neighbourhoods:measure_batch",
    columns=(
        Column("state", "string", "robust, not_robust or undecided"),
        Column("changes", "int64", "perturbed copies that were classified otherwise"),
        Column("draws", "int64", "perturbed copies classified"),
    ),
    version=4,
    forward_passes=lambda settings, classes: settings.budget,
    images_at_once=lambda settings, batch_size, classes: max(batch_size, settings.batch_size),
    value=(
        "1 if a statistical test decides that at most a share kappa of its random neighbours is classified otherwise"
    ),
    passes="up to budget; 377 when no neighbour changes at kappa 0.01 and alpha 0.05",
)
