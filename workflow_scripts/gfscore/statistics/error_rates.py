"""Thresholds of probabilistic robustness, error rates of its tests, and whether their budgets suffice.

Declarations of measures and the check of config.yaml import this module, so it loads nothing heavy: the tests
themselves (`sequential_tests`) are imported by the functions that evaluate them.
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
    """Value of kappa in [0, 1], given as a number or as the name of a preset.

    Raises
    ------
    InputError
        For another number or name.
    """
    if isinstance(kappa, str):
        if kappa not in PRESETS:
            raise InputError(unknown("kappa", kappa, PRESETS))
        return PRESETS[kappa]
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, or be one of {', '.join(PRESETS)}; got {kappa!r}")
    return float(kappa)


def error_rate(settings: Mapping[str, Any]) -> float:
    """Largest probability that a decision or certificate of a measure is wrong, over all neighbourhoods.

    Parameters
    ----------
    settings : mapping
        alpha; for tests other than `anytime` also kappa, test and budget: the worst case is p = kappa.

    Returns
    -------
    float
        In [0, 0.5).

    Raises
    ------
    InputError
        If the rate is not below 0.5, for which there are no bounds.
    """
    alpha = settings["alpha"]
    test = settings.get("test", ANYTIME)
    if test == ANYTIME:
        return float(alpha)
    from gfscore.statistics.sequential_tests import wrong_call_rate

    kappa = threshold(settings["kappa"])
    budget = settings["budget"]
    rate = wrong_call_rate(kappa=kappa, alpha=alpha, budget=budget, test=test)
    if rate >= USELESS:
        raise InputError(
            f"test {test} at kappa {kappa:g}, alpha {alpha:g} and budget {budget} decides wrongly with a probability "
            f"of up to {upper_bound(rate)}, so its decisions give no bounds; use the test {ANYTIME}, or a smaller "
            "alpha or budget"
        )
    return rate


def require_budget(settings: Mapping[str, Any]) -> None:
    """Raise InputError for a budget within which no image could be decided as robust."""
    from gfscore.statistics.sequential_tests import clean_draws

    kappa = threshold(settings["kappa"])
    alpha = settings["alpha"]
    test = settings["test"]
    budget = settings["budget"]
    if kappa == 0:
        return
    needed = clean_draws(kappa=kappa, alpha=alpha, test=test)
    if budget < needed:
        raise InputError(
            f"budget {budget} is too small: at kappa {kappa:g} and alpha {alpha:g} the test {test} needs "
            f"{needed} draws without a change to decide that an image is robust; raise the budget to several times that"
        )


def caution(measure: str, settings: Mapping[str, Any]) -> str | None:
    """Warning about a measure whose test exceeds its level alpha; None for any other measure.

    `settings` of the measure include its kind.
    """
    test = settings.get("test", ANYTIME)
    if settings["kind"] != "probabilistic" or test == ANYTIME:
        return None
    return (
        f"{measure} uses {test}, the exact-binomial paper's test, which does not keep its level: repeated "
        f"after every draw it decides wrongly with a probability of up to {upper_bound(error_rate(settings))}, not "
        f"{setting(settings['alpha'])}. Bounds allow for that; the test {ANYTIME} keeps its level"
    )
