"""Settings of trainings, and what a training method declares.

A method is one module of gfscore.training.methods with an object `METHOD`. Declarations import nothing heavy, because
the Snakefile reads them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import Field

from gfscore.core.discovery import declarations
from gfscore.core.mappings import by_name
from gfscore.core.settings import Closed, Count, Device, Norm, Number, Positive, Seed, Share, Sparse, Text

METHODS_PACKAGE = "gfscore.training.methods"
"""Package whose modules declare the training methods. It is in a higher layer, so it is found by its name."""

EPS = 8 / 255
"""Default radius of perturbations."""


class Ball(Closed):
    """Perturbations in a ball; norm and radius default to those of the entry's `attack`."""

    norm: Norm | None = Field(None, description="Norm of the perturbation.")
    eps: Positive | None = Field(None, description="Radius of the ball, pixels in [0, 1].")

    def complete(self, attack: "Attack") -> None:
        """Replace missing values by those of the attack that measures robust accuracy."""
        self.norm = self.norm or attack.norm
        self.eps = self.eps or attack.eps


class OneStep(Ball):
    """Single steps from a random start, by default of 1.25 times the radius (Wong et al. 2020)."""

    step_size: Positive | None = Field(None, description="Length of the step; null for 1.25 times the radius.")

    step_per_radius: ClassVar[float] = 1.25

    def complete(self, attack: "Attack") -> None:
        """Replace missing values: those of the ball by the attack's, the step size by a multiple of the radius."""
        super().complete(attack)
        self.step_size = self.step_size or self.step_per_radius * (self.eps or EPS)


class Steps(OneStep):
    """Several steps, by default of a quarter of the radius (Madry et al. 2018)."""

    step_size: Positive | None = Field(None, description="Length of one step; null for a quarter of the radius.")
    steps: Count = Field(7, description="Gradient steps.")

    step_per_radius = 0.25


class Attack(Closed):
    """PGD attack that measures robust accuracy after training."""

    norm: Norm = Field("linf", description="Norm of the perturbation.")
    eps: Positive = Field(EPS, description="Radius of the ball, pixels in [0, 1].")
    step_size: Positive = Field(
        default_factory=lambda earlier: earlier.get("eps", EPS) / 10,
        description="Length of one step, by default a tenth of the radius.",
    )
    steps: Count = Field(20, description="Gradient steps.")
    restarts: Count = Field(1, description="Random starts; a sample is robust if it withstands all.")
    seed: Seed = 0


class Augmentation(Closed):
    """timm's random augmentation of training images."""

    scale: list[Annotated[Number, Field(gt=0, le=1)]] = Field(
        [0.08, 1.0], min_length=2, max_length=2, description="Smallest and largest share of the image's area in a crop."
    )
    ratio: list[Positive] = Field(
        [0.75, 1.3333], min_length=2, max_length=2, description="Smallest and largest aspect ratio of the crop."
    )
    flip: Share = Field(0.5, description="Probability of a horizontal flip.")
    colour_jitter: Share = Field(0.4, description="Largest relative change of brightness, contrast and saturation.")


class Recipe(Closed):
    """Training procedure of an entry with `recipe`: after the warm-up the learning rate falls by half a cosine to 0.

    Without one, the learning rate has one cycle, in float32.
    """

    warmup_epochs: Annotated[Number, Field(ge=0)] = Field(0, description="Epochs of linear warm-up.")
    clip_norm: Positive | None = Field(None, description="Largest l2 norm of the gradient; null for no clipping.")
    mixed_precision: bool = Field(
        False,
        description="Whether to use automatic mixed precision: float16 on a GPU, bfloat16 on the CPU.",
    )
    augmentation: Augmentation | None = Field(None, description="Augmentation of the images; null for none.")


class NoCoefficients(Closed):
    """A method without coefficients."""


class Training(Sparse):
    """Settings of every training method; its own class narrows the types of method, threat and coefficients."""

    method: str
    architecture: Annotated[
        Text, Field(pattern=r"^(small_convnet|patch_mixer|residual_network|timm/[A-Za-z0-9_]+)$")
    ] = Field(
        "small_convnet",
        description="Network: small_convnet, patch_mixer, residual_network, or timm/<name> of the timm collection, "
        "untrained.",
    )
    arguments: dict[str, Any] = Field({}, description="Arguments of the architecture.")
    epochs: Count = Field(30, description="Passes over the training data.")
    batch_size: int = Field(64, ge=1, le=1_000_000, description="Images per step.")
    learning_rate: Positive = Field(0.005, description="Largest learning rate of the schedule.")
    weight_decay: Annotated[Number, Field(ge=0)] = Field(0.0001, description="Decoupled weight decay.")
    seed: Seed = 1
    device: Device = Field(
        "cpu",
        description="Device of training and of the accuracies; cuda fails without a GPU.",
    )
    threat: Any = None
    coefficients: Any = Field(default_factory=NoCoefficients)
    recipe: Recipe | None = Field(None, description="Training procedure; null for one cycle of the learning rate.")

    absent = frozenset({"recipe"})


# ---- training methods ----


@dataclass(frozen=True, kw_only=True)
class TrainingMethod:
    """A training method.

    Attributes
    ----------
    name : str
        The value of `method` in entries.
    trains_on : str
        What its loss is computed on, in a few words.
    settings : type of Training
        The pydantic model of entries: a literal `method`, and its own `threat` and `coefficients`.
    objective : callable
        objective(setup, coefficients) -> gfscore.training.objectives.Objective: made once for each training. `setup`
        has the number of classes, the threat, a generator and the network, `coefficients` are those of the settings.
    baseline : str
        Name of the method that this one modifies in favour of the worst class, and is compared with; empty for none.
    norms : tuple of str
        Norms of the balls that it trains in.
    """

    name: str
    trains_on: str
    settings: type[Training]
    objective: Callable[..., Any]
    baseline: str = ""
    norms: tuple[Norm, ...] = ("linf", "l2")


@cache
def training_methods() -> dict[str, TrainingMethod]:
    """All training methods by name."""
    return by_name(declarations(METHODS_PACKAGE, "METHOD").values())
