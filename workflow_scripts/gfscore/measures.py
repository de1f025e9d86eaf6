"""The measures: what each one says about a sample, in which range, unit and direction."""

from dataclasses import dataclass

from gfscore.margins import SCALE


@dataclass(frozen=True)
class Measure:
    """What every consumer of a measure needs to know.

    `value_range` (lowest, highest) that intervals rely on; `unit` and `title` for axes. Every measure is oriented so
    that higher is better.
    """

    title: str
    value_range: tuple
    unit: str
    explanation: str


KINDS = {
    "clean": Measure(
        title="Clean accuracy",
        value_range=(0.0, 1.0),
        unit="share of samples",
        explanation="1 when the undisturbed sample is classified correctly, else 0. A tie at the top is an error.",
    ),
    "great": Measure(
        title="Attack-free margin score (GREAT)",
        value_range=(0.0, SCALE),
        unit="score, 0 to 1.2533",
        explanation=(
            "How clearly the true class wins over the best other class after the activation, scaled by sqrt(pi/2); "
            "0 when misclassified. Needs only logits. It is not a certified radius."
        ),
    ),
}
"""Measure by kind. A measure of config.yaml is one kind with settings; its name is a label that is never parsed."""

SUMMARY = ("value", "class_mean", "rdi", "nrgc", "wcr", "fp")
"""Numbers that summarise the class values of a measure, in the order of every table: aggregate, then disparity."""
