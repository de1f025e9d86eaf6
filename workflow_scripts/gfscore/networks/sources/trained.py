"""Classifiers that the workflow trains itself: the settings of their training, method by method."""

from collections.abc import Mapping
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
"""Radius of perturbations where an entry states none."""


class Ball(Closed):
    """Perturbations in a ball; a radius and a norm that are left out are those of the entry's `attack`."""

    norm: Norm | None = Field(None, description="Norm of the perturbation.")
    eps: Positive | None = Field(None, description="Radius of the ball, pixels in [0, 1].")

    def complete(self, attack: "Attack") -> None:
        """Fill in what is left out, from the attack that the training is measured by."""
        self.norm = self.norm or attack.norm
        self.eps = self.eps or attack.eps


class OneStep(Ball):
    """Single steps from a random start, of 1.25 radii (Wong et al. 2020) unless stated."""

    step_size: Positive | None = Field(None, description="Length of the step; null for 1.25 radii.")

    def complete(self, attack: "Attack") -> None:
        """As Ball, and the step."""
        super().complete(attack)
        self.step_size = self.step_size or 1.25 * (self.eps or EPS)


class Steps(Ball):
    """Several steps, of a quarter of the radius (Madry et al. 2018) unless stated."""

    step_size: Positive | None = Field(None, description="Length of one step; null for a quarter of the radius.")
    steps: Count = Field(7, description="Gradient steps.")

    def complete(self, attack: "Attack") -> None:
        """As Ball, and the step."""
        super().complete(attack)
        self.step_size = self.step_size or (self.eps or EPS) / 4


class Attack(Closed):
    """The PGD that measures robust accuracy after a training."""

    norm: Norm = Field("linf", description="Norm of the perturbation.")
    eps: Positive = Field(EPS, description="Radius of the ball, pixels in [0, 1].")
    step_size: Positive = Field(
        default_factory=lambda earlier: earlier.get("eps", EPS) / 10,
        description="Length of one step: a tenth of the radius where it is left out.",
    )
    steps: Count = Field(20, description="Gradient steps.")
    restarts: Count = Field(1, description="Random starts; a sample must survive all.")
    seed: Seed = 0


class Augmentation(Closed):
    """timm's random changes of the training images, each image by itself."""

    scale: list[Positive] = Field(
        [0.08, 1.0], min_length=2, max_length=2, description="Smallest and largest share of an image that a crop keeps."
    )
    ratio: list[Positive] = Field(
        [0.75, 1.3333], min_length=2, max_length=2, description="Smallest and largest width over height of the crop."
    )
    flip: Share = Field(0.5, description="Probability of a mirror image.")
    colour_jitter: Share = Field(0.4, description="Largest relative change of brightness, contrast and saturation.")


class Recipe(Closed):
    """How a training proceeds, in place of one cycle of the learning rate in float32."""

    schedule: Literal["cosine"] = Field(
        "cosine", description="Course of the learning rate after the warm-up: half a cosine down to 0."
    )
    warmup_epochs: Annotated[Number, Field(ge=0)] = Field(0, description="Epochs of linear warm-up.")
    clip_norm: Positive | None = Field(None, description="Largest l2 norm of the gradient; null for any.")
    mixed_precision: bool = Field(
        False,
        description="Whether to compute in 16 bits where that is safe: float16 on a GPU, bfloat16 on the CPU.",
    )
    augmentation: Augmentation | None = Field(None, description="Random changes of the images; null for none.")


class NoCoefficients(Closed):
    """A method without coefficients."""


class Training(Sparse):
    """Settings of every training method."""

    method: str
    architecture: Annotated[
        Text, Field(pattern=r"^(small_convnet|patch_mixer|residual_network|timm/[A-Za-z0-9_]+)$")
    ] = Field(
        "small_convnet",
        description="Network: small_convnet, patch_mixer, residual_network, or timm/<name> of the timm collection, "
        "untrained.",
    )
    arguments: dict[str, Any] = Field({}, description="The architecture's own settings.")
    epochs: Count = Field(30, description="Passes over the training data.")
    batch_size: int = Field(64, ge=1, le=1_000_000, description="Images per step.")
    learning_rate: Positive = Field(0.005, description="Largest learning rate of the schedule.")
    weight_decay: Annotated[Number, Field(ge=0)] = Field(0.0001, description="Decoupled weight decay.")
    seed: Seed = 1
    device: Device = Field(
        "cpu",
        description="Where it is trained and its accuracies are measured; cuda needs a GPU and falls back nowhere.",
    )
    threat: Any = None
    coefficients: Any = Field(default_factory=NoCoefficients)
    recipe: Recipe | None = Field(
        None, description="How the training proceeds; without it by one cycle of the learning rate."
    )

    absent = frozenset({"recipe"})


class Erm(Training):
    """Images as they are."""

    method: Literal["ERM"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class Warp(Closed):
    """Random affine maps of the training images."""

    rotation: Annotated[Number, Field(ge=0)] = Field(10, description="Largest rotation in degrees.")
    shift: Annotated[Number, Field(ge=0)] = Field(0.06, description="Largest shift as a share of the side.")
    scale: Annotated[Number, Field(ge=0)] = Field(0.1, description="Largest relative change of size.")
    flip: bool = Field(False, description="Whether half of the images are mirrored.")


class ErmDa(Training):
    """Images rotated, moved, scaled, mirrored."""

    method: Literal["ERM_DA"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: Warp = Field(default_factory=Warp)


class Fgsm(Training):
    """Single steps from a random start."""

    method: Literal["FGSM"]
    threat: OneStep = Field(default_factory=OneStep)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class Pgd(Training):
    """PGD examples."""

    method: Literal["PGD"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


class TradesCoefficients(Closed):
    """Coefficients of TRADES."""

    beta: Number = Field(6, description="Weight of the divergence between images and examples.")


class Trades(Training):
    """Images, and examples whose output differs most from theirs."""

    method: Literal["TRADES"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: TradesCoefficients = Field(default_factory=TradesCoefficients)


class MartCoefficients(Closed):
    """Coefficients of MART."""

    lam: Number = Field(5, description="Weight of the divergence, larger on images that are misclassified.")


class Mart(Training):
    """PGD examples, more on images that are misclassified."""

    method: Literal["MART"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: MartCoefficients = Field(default_factory=MartCoefficients)


class PrlCoefficients(Closed):
    """Coefficients of PRL."""

    rho: Annotated[Number, Field(gt=0, le=1)] = Field(0.1, description="Share of the neighbours that counts.")
    samples: Count = Field(10, description="Neighbours per image.")


class Prl(Training):
    """The worst share of random neighbours."""

    method: Literal["PRL"]
    threat: Ball = Field(default_factory=Ball)
    coefficients: PrlCoefficients = Field(default_factory=PrlCoefficients)


class WorstClassCoefficients(Closed):
    """Coefficients of WORST_CLASS."""

    rate: Number = Field(0.03, description="Rate at which weight moves to the worst class.")
    floor: Share = Field(0.1, description="Share of the weight that stays uniform.")


class WorstClass(Training):
    """PGD examples, weighted towards the worst class."""

    method: Literal["WORST_CLASS"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: WorstClassCoefficients = Field(default_factory=WorstClassCoefficients)


AnyTraining = Annotated[
    Erm | ErmDa | Fgsm | Pgd | Trades | Mart | Prl | WorstClass,
    Field(discriminator="method", description="How it is trained."),
]


class Trained(LogitsSettings):
    """A classifier that the workflow trains."""

    source: Literal["trained"] = "trained"
    train_on: Name = Field(description="Dataset to train on.")
    evaluate_on: Name | None = Field(
        None,
        description="Dataset on which clean and robust accuracy are recorded: that of the zoo, or the only one for it.",
    )
    training: AnyTraining
    attack: Attack = Field(default_factory=Attack, description="PGD that measures robust accuracy.")

    balls: ClassVar[tuple[str, ...]] = ("eps", "step_size")

    @model_validator(mode="after")
    def _threats_are_complete(self) -> Self:
        threat = self.training.threat
        if threat is not None:
            # A default is one object for all entries.
            self.training.threat = threat = threat.model_copy()
            threat.complete(self.attack)
        for at, ball in ((("training", "threat"), threat), (("attack",), self.attack)):
            for key in self.balls if ball is not None and ball.norm == "linf" else ():
                if (size := getattr(ball, key, None)) and size > 1:
                    raise refusal(longer_than_white(size), *at, key)
        return self


def _claims(entry: Mapping[str, Any]) -> bool:
    return "training" in entry


SOURCE = ModelSource(
    name="trained",
    settings=Trained,
    gives="gradients",
    fitted_by="train_model",
    claims=_claims,
    opened_by="gfscore.networks.trained",
)
