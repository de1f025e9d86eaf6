"""Thresholds of probabilistic robustness, error rates of its tests, and whether their budgets suffice.

Imports nothing heavy at the top, because it validates config.yaml.
"""

from collections.abc import Mapping
from typing import Any

from gfscore.core.errors import InputError, unknown
from gfscore.core.numbers import setting, upper_bound

ANYTIME = "anytime"
"""The test whose error rate is at most alpha at any budget."""

USELESS = 0.5
"""Error rate of a coin toss, from which on a decision carries no information."""


PRESETS = {"SIL1": 1e-1, "SIL2": 1e-2, "SIL3": 1e-3, "SIL4": 1e-4}
"""Largest tolerated share of changed neighbours, by name.

The numbers are the upper ends of the bands of IEC 61508 for the probability of a dangerous failure on demand. They
imply neither conformity with that standard nor a safety integrity level: the standard concerns a whole safety function
over its life, whereas here artificial perturbations of one input are drawn.
"""


def threshold(kappa: float | str) -> float:
    """Value of kappa in [0, 1], given as a number or as the name of a preset. Raises InputError for other values."""
    if isinstance(kappa, str):
        if kappa not in PRESETS:
            raise InputError(unknown("kappa", kappa, PRESETS))
        return PRESETS[kappa]
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, or be one of {', '.join(PRESETS)}; got {kappa!r}")
    return float(kappa)


def error_rate(settings: Mapping[str, Any]) -> float:
    """Largest probability, below 0.5, that a decision or certificate of a measure with these settings is wrong.

    Takes alpha, and for tests other than `anytime` also kappa, test and budget; the worst case over all neighbourhoods
    is p = kappa. Raises InputError if the rate is not below 0.5, for which there are no bounds.
    """
    if settings.get("test", ANYTIME) == ANYTIME:
        return float(settings["alpha"])
    # Imported late, because declarations of measures must be light.
    from gfscore.statistics.sequential_tests import wrong_call_rate

    kappa = threshold(settings["kappa"])
    rate = wrong_call_rate(kappa=kappa, **{key: settings[key] for key in ("alpha", "budget", "test")})
    if rate >= USELESS:
        raise InputError(
            f"test {settings['test']} at kappa {kappa:g}, alpha {settings['alpha']:g} and budget {settings['budget']} "
            f"decides wrongly with a probability of up to {upper_bound(rate)}, so its decisions give no bounds; use "
            f"the test {ANYTIME}, or a smaller alpha or budget"
        )
    return rate


def require_budget(settings: Mapping[str, Any]) -> None:
    """Raise InputError for a budget within which no image could be decided as robust."""
    from gfscore.statistics.sequential_tests import clean_draws

    kappa, alpha, test, budget = threshold(settings["kappa"]), settings["alpha"], settings["test"], settings["budget"]
    if kappa > 0 and budget < (needed := clean_draws(kappa=kappa, alpha=alpha, test=test)):
        raise InputError(
            f"budget {budget} is too small: at kappa {kappa:g} and alpha {alpha:g} the test {test} needs "
            f"{needed} draws without a change to decide that an image is robust; raise the budget to several times that"
        )


def caution(measure: str, settings: Mapping[str, Any]) -> str | None:
    """Warning about a measure whose test exceeds its level alpha; None for any other measure.

    Takes the measure's name and its settings, which include its kind.
    """
    if settings["kind"] != "probabilistic" or settings.get("test", ANYTIME) == ANYTIME:
        return None
    return (
        f"{measure} uses {settings['test']}, the exact-binomial paper's test, which does not keep its level: repeated "
        f"after every draw it decides wrongly with a probability of up to {upper_bound(error_rate(settings))}, not "
        f"{setting(settings['alpha'])}. Bounds allow for that; the test {ANYTIME} keeps its level"
    )
