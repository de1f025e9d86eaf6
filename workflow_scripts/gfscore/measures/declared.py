"""The measures: what each one says about a sample, in which range, unit and direction.

Imports nothing heavy, because config.yaml is checked against the ranges.
"""

from dataclasses import dataclass
from statistics import NormalDist

from gfscore.statistics.error_rates import error_rate
from gfscore.statistics.scale import SCALE
from gfscore.statistics.thresholds import threshold

NORMS = {"linf": "l_inf", "l2": "l2"}
"""Norm in config.yaml -> as text shows it."""

OF_LOGITS = ("clean", "great")
"""Kinds of measures that are computed from the logits of a model alone."""

HALF = 0.5
"""A class needs more than half of the smoothed probability before anything is certified."""


@dataclass(frozen=True)
class Measure:
    """What every consumer of a measure needs to know.

    `value_range` (lowest, highest) that intervals rely on; `unit` and `title` for axes; `binary` says that a sample has
    one end of the range or the other, nothing between; `test` holds the settings of the test or certification behind
    each value, None without one; `several_copies` says that its table holds several disturbed copies of each sample,
    whose mean is the sample's value. Every measure is oriented so that higher is better.
    """

    title: str
    value_range: tuple
    unit: str
    explanation: str
    binary: bool = False
    test: dict | None = None
    several_copies: bool = False

    @property
    def error_rate(self):
        """Largest probability that a sample's value is wrong because the test behind it errs, 0 without a test.

        Computed when asked for. Raises InputError where it is not below 0.5.
        """
        return 0.0 if self.test is None else error_rate(self.test)


def reference_measure(measures):
    """Name of the first measure that is computed from logits alone, or None; takes settings by name, each with kind."""
    return next((name for name, settings in measures.items() if settings["kind"] in OF_LOGITS), None)


def measure_of(settings):
    """Measure that an entry of config.yaml's section `measures` describes; `settings` holds its kind."""
    return KINDS[settings["kind"]](settings)


def _clean(_settings):
    return Measure(
        title="Clean accuracy",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
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


def _adversarial(settings):
    return Measure(
        title=f"Adversarial accuracy, {_ball(settings)}",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation=(
            "1 when the sample is classified correctly and every attack of the list fails, else 0. Attacks that fail "
            "prove nothing, so it is an upper bound on the share of robust samples."
        ),
    )


def _minimal(settings):
    return Measure(
        title=f"Distance to the nearest adversarial example found, {NORMS[settings['norm']]}",
        value_range=(0.0, float(settings["largest_distance"])),
        unit=f"{NORMS[settings['norm']]} distance, pixels in [0, 1]",
        explanation=(
            "Length of the smallest perturbation found that changes a right prediction; 0 when it is wrong already, "
            "and the largest distance searched where nothing was found. An upper bound on the true distance."
        ),
    )


def _certified(settings):
    return Measure(
        title="Certified l2 radius of the smoothed classifier",
        value_range=(0.0, largest_radius(settings)),
        unit="l2 distance, pixels in [0, 1]",
        explanation=(
            "Radius within which no perturbation changes the prediction of the randomly smoothed classifier, for a "
            "right prediction; 0 for a wrong one or an abstention. Each radius holds with the confidence of its own "
            "test, and says nothing about the classifier before smoothing."
        ),
        # A certificate is wrong with probability alpha; nobody said how often radii of elsewhere are.
        test=settings.get("smoothing"),
    )


def largest_radius(settings):
    """Upper end of the range of certified radii: as stated, or the most that so many noisy copies can prove.

    sigma Phi^-1(alpha^(1/n)) when all n copies agree. Source: Cohen et al. 2019, section 3.2.
    """
    if "largest_radius" in settings:
        return float(settings["largest_radius"])
    smoothing = settings["smoothing"]
    proven = smoothing["alpha"] ** (1 / smoothing["estimation_samples"])
    # One part in 1e9 for the rounding of float64 in each radius.
    return smoothing["sigma"] * NormalDist().inv_cdf(proven) * (1 + 1e-9) if proven > HALF else 0.0


def _probabilistic(settings):
    return Measure(
        title=f"Probabilistic robustness at kappa = {threshold(settings['kappa']):g}",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation=(
            "1 when a sequential test decides that at most a share kappa of the perturbed copies is classified "
            "otherwise, 0 when it decides the contrary or nothing within its budget."
        ),
        test=settings,
    )


def _corruption(_settings):
    return Measure(
        title="Accuracy under common corruptions",
        value_range=(0.0, 1.0),
        unit="share of corrupted copies",
        explanation="Share of the corrupted copies of a sample, over kinds and severities, classified correctly.",
        several_copies=True,
    )


def _targeted(settings):
    return Measure(
        title=f"Targets resisted, {_ball(settings)}",
        value_range=(0.0, 1.0),
        unit="share of the other classes",
        explanation=(
            "Share of the other classes that a targeted attack could not make the classifier predict. An upper bound: "
            "a stronger attack may succeed."
        ),
        several_copies=True,
    )


def _ball(settings):
    return f"{NORMS[settings['norm']]} {settings['eps']:g}"


KINDS = {
    "clean": _clean,
    "great": _great,
    "adversarial": _adversarial,
    "minimal": _minimal,
    "certified": _certified,
    "probabilistic": _probabilistic,
    "corruption": _corruption,
    "targeted": _targeted,
}
"""Function from settings to Measure, by kind. A measure's name in config.yaml is a label that is never parsed."""

SUMMARY = ("value", "class_mean", "rdi", "nrgc", "wcr", "fp")
"""Numbers that summarise the class values of a measure, in the order of every table: aggregate, then disparity."""

BETTER = dict.fromkeys(("value", "class_mean", "class", "wcr", "fp", "ihdi"), 1)
BETTER |= dict.fromkeys(("rdi", "nrgc", "rdi_over_mean", "group_gap", "falsification_rate"), -1)
"""Statistic -> 1 where the larger value is the better one, -1 where the smaller one is."""

UNCALIBRATED = "none"
"""Name in place of a calibration's: values at T = 1, and those of measures that have no temperature."""
