"""The measures: what each one says about a sample, in which range, unit and direction.

Imports nothing heavy, because config.yaml is checked against the ranges.
"""

import math
from dataclasses import dataclass

SCALE = math.sqrt(math.pi / 2)
"""B = sqrt(pi/2), the upper end of the attack-free margin score's range [0, B]."""


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


def measure_of(settings):
    """Measure that an entry of config.yaml's section `measures` describes; `settings` holds its kind."""
    return KINDS[settings["kind"]](settings)


def _clean(_settings):
    return Measure(
        title="Clean accuracy",
        value_range=(0.0, 1.0),
        unit="share of samples",
        explanation="1 when the undisturbed sample is classified correctly, else 0. A tie at the top is an error.",
    )


def _great(_settings):
    return Measure(
        title="Attack-free margin score (GREAT)",
        value_range=(0.0, SCALE),
        unit="score, 0 to 1.2533",
        explanation=(
            "How clearly the true class wins over the best other class after the activation, scaled by sqrt(pi/2); "
            "0 when misclassified. Needs only logits. It is not a certified radius."
        ),
    )


def _certified(settings):
    return Measure(
        title="Certified l2 radius of the smoothed classifier",
        value_range=(0.0, float(settings["largest_radius"])),
        unit="l2 distance, pixels in [0, 1]",
        explanation=(
            "Radius within which no perturbation changes the prediction of the randomly smoothed classifier, for a "
            "right prediction; 0 for a wrong one or an abstention. Each radius holds with the confidence of its own "
            "test, and says nothing about the classifier before smoothing."
        ),
    )


KINDS = {"clean": _clean, "great": _great, "certified": _certified}
"""Function from settings to Measure, by kind. A measure's name in config.yaml is a label that is never parsed."""

SUMMARY = ("value", "class_mean", "rdi", "nrgc", "wcr", "fp")
"""Numbers that summarise the class values of a measure, in the order of every table: aggregate, then disparity."""
