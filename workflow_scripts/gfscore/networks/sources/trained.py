"""Classifiers that the workflow trains, and the settings of the training methods."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import (
    Closed,
    Count,
    Device,
    Name,
    Norm,
    Number,
    Positive,
    Seed,
    Share,
    Sparse,
    Text,
    longer_than_white,
    refusal,
)
from gfscore.networks.model_source import LogitsSettings, ModelSource

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

    of_radius: ClassVar[float] = 1.25

    def complete(self, attack: "Attack") -> None:
        """As in Ball, with the step size, by default `of_radius` times the radius."""
        super().complete(attack)
        self.step_size = self.step_size or self.of_radius * (self.eps or EPS)


class Steps(OneStep):
    """Several steps, by default of a quarter of the radius (Madry et al. 2018)."""

    step_size: Positive | None = Field(None, description="Length of one step; null for a quarter of the radius.")
    steps: Count = Field(7, description="Gradient steps.")

    of_radius = 0.25


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

    scale: list[Positive] = Field(
        [0.08, 1.0], min_length=2, max_length=2, description="Smallest and largest share of the image's area in a crop."
    )
    ratio: list[Positive] = Field(
        [0.75, 1.3333], min_length=2, max_length=2, description="Smallest and largest aspect ratio of the crop."
    )
    flip: Share = Field(0.5, description="Probability of a horizontal flip.")
    colour_jitter: Share = Field(0.4, description="Largest relative change of brightness, contrast and saturation.")


class Recipe(Closed):
    """Training procedure, in place of one cycle of the learning rate in float32."""

    schedule: Literal["cosine"] = Field(
        "cosine", description="Schedule of the learning rate after the warm-up: half a cosine down to 0."
    )
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
    """Settings of all training methods."""

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


class Erm(Training):
    """Empirical risk minimisation on unperturbed images."""

    method: Literal["ERM"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class Warp(Closed):
    """Random affine transformations of the training images."""

    rotation: Annotated[Number, Field(ge=0)] = Field(10, description="Largest rotation in degrees.")
    shift: Annotated[Number, Field(ge=0)] = Field(0.06, description="Largest translation relative to the side.")
    scale: Annotated[Number, Field(ge=0)] = Field(0.1, description="Largest relative change of size.")
    flip: bool = Field(False, description="Whether images are flipped horizontally with probability 0.5.")


class ErmDa(Training):
    """Empirical risk minimisation with data augmentation by affine transformations."""

    method: Literal["ERM_DA"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: Warp = Field(default_factory=Warp)


class Fgsm(Training):
    """Adversarial training by single gradient steps from a random start."""

    method: Literal["FGSM"]
    threat: OneStep = Field(default_factory=OneStep)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class Pgd(Training):
    """Adversarial training by PGD."""

    method: Literal["PGD"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class TradesCoefficients(Closed):
    """Coefficients of TRADES."""

    beta: Number = Field(6, description="Weight of the divergence between clean and adversarial outputs.")


class Trades(Training):
    """TRADES: cross-entropy of clean images plus the divergence between clean and adversarial outputs."""

    method: Literal["TRADES"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: TradesCoefficients = Field(default_factory=TradesCoefficients)


class MartCoefficients(Closed):
    """Coefficients of MART."""

    lam: Number = Field(5, description="Weight of the divergence, which is larger for misclassified images.")


class Mart(Training):
    """MART: adversarial training with more weight on misclassified images."""

    method: Literal["MART"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: MartCoefficients = Field(default_factory=MartCoefficients)


class PrlCoefficients(Closed):
    """Coefficients of PRL."""

    rho: Annotated[Number, Field(gt=0, le=1)] = Field(0.1, description="Share of the neighbours with the largest loss.")
    samples: Count = Field(10, description="Random neighbours per image.")


class Prl(Training):
    """Probabilistically robust learning: the mean loss of the worst share of random neighbours."""

    method: Literal["PRL"]
    threat: Ball = Field(default_factory=Ball)
    coefficients: PrlCoefficients = Field(default_factory=PrlCoefficients)


class WorstClassCoefficients(Closed):
    """Coefficients of WORST_CLASS."""

    rate: Number = Field(0.03, description="Learning rate of the class weights.")
    floor: Share = Field(0.1, description="Share of the weight that remains uniform.")


class WorstClass(Training):
    """Adversarial training by PGD with class weights that favour the worst class."""

    method: Literal["WORST_CLASS"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: WorstClassCoefficients = Field(default_factory=WorstClassCoefficients)


AnyTraining = Annotated[
    Erm | ErmDa | Fgsm | Pgd | Trades | Mart | Prl | WorstClass,
    Field(discriminator="method", description="Training method and its settings."),
]


class Trained(LogitsSettings):
    """A classifier that the workflow trains."""

    source: Literal["trained"] = "trained"
    train_on: Name = Field(description="Dataset to train on.")
    evaluate_on: Name | None = Field(
        None,
        description="Dataset of the recorded clean and robust accuracy; by default that of the zoo, or its only one.",
    )
    training: AnyTraining
    attack: Attack = Field(default_factory=Attack, description="PGD that measures robust accuracy.")

    @model_validator(mode="after")
    def _threats_are_complete(self) -> Self:
        threat = self.training.threat
        if threat is not None:
            # Copied, since all entries share the default object.
            threat = threat.model_copy()
            threat.complete(self.attack)
            self.training.threat = threat
            _require_small(threat, "training", "threat")
        _require_small(self.attack, "attack")
        return self


def _require_small(ball: "Ball | Attack", *keys: str) -> None:
    # An l-inf perturbation longer than 1 is longer than from black to white.
    if ball.norm != "linf":
        return
    for name in ("eps", "step_size"):
        size = getattr(ball, name, None)
        if size and size > 1:
            raise refusal(longer_than_white(size), *keys, name)


SOURCE = ModelSource(
    name="trained",
    settings=Trained,
    gives="gradients",
    fitted_by="train_model",
    claims=lambda entry: "training" in entry,
    opened_by="gfscore.networks.trained",
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
