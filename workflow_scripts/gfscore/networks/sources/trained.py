"""Classifiers that the workflow trains."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import Name, longer_than_white, refusal
from gfscore.networks.model_source import LogitsSettings, ModelSource
from gfscore.networks.training_settings import Attack, Ball, Training, training_methods

if TYPE_CHECKING:
    AnyTraining = Training
else:
    AnyTraining = Annotated[
        reduce(or_, [method.settings for method in training_methods().values()]),
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
            norms = training_methods()[self.training.method].norms
            if threat.norm not in norms:
                words = f"{self.training.method} trains in balls of {', '.join(norms)} alone; set that here"
                raise refusal(f"{words}, or choose another method", "training", "threat", "norm")
            _require_small(threat, "training", "threat")
        _require_small(self.attack, "attack")
        return self


def _require_small(ball: Ball | Attack, *keys: str) -> None:
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
    fitted_by="gfscore.training.loop:fit",
    claims=lambda entry: "training" in entry,
    opened_by="gfscore.networks.trained",
    adjusted_by="gfscore.networks.adjusted_files.weights",
)
