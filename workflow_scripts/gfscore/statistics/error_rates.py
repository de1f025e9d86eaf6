"""Whether decisions about probabilistic robustness can be reached, and how often they are wrong.

Imports nothing heavy by itself, because config.yaml is checked with it.
"""

from collections.abc import Mapping
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.numbers import setting, upper_bound
from gfscore.statistics.thresholds import threshold

ANYTIME = "anytime"
"""The test that keeps its alpha at any budget."""

USELESS = 0.5
"""Error rate from which on a decision says no more than a coin."""


def error_rate(settings: Mapping[str, Any]) -> float:
    """Largest probability, below 0.5, that a decision or certificate of a measure with these settings is wrong.

    Takes alpha, and for other tests than `anytime` also kappa, test and budget: over all neighbourhoods, of which the
    worst one has p at kappa. Raises InputError where the rate is not below 0.5, for which there are no bounds.
    """
    if settings.get("test", ANYTIME) == ANYTIME:
        return float(settings["alpha"])
    # Here and not above, because measures are read where nothing heavy is imported.
    from gfscore.statistics.sequential_tests import wrong_call_rate

    kappa = threshold(settings["kappa"])
    rate = wrong_call_rate(kappa=kappa, **{key: settings[key] for key in ("alpha", "budget", "test")})
    if rate >= USELESS:
        raise InputError(
            f"test {settings['test']} at kappa {kappa:g}, alpha {settings['alpha']:g} and budget {settings['budget']} "
            f"decides wrongly with a probability of up to {upper_bound(rate)}, so that nothing can be bounded by its "
            f"decisions; take the test {ANYTIME}, or a smaller alpha or budget"
        )
    return rate


def require_budget(settings: Mapping[str, Any]) -> None:
    """Raise InputError for a budget within which a measure with these settings could call no image robust."""
    from gfscore.statistics.sequential_tests import clean_draws

    kappa, alpha, test, budget = threshold(settings["kappa"]), settings["alpha"], settings["test"], settings["budget"]
    if kappa > 0 and budget < (needed := clean_draws(kappa=kappa, alpha=alpha, test=test)):
        raise InputError(
            f"budget {budget} is too small: at kappa {kappa:g} and alpha {alpha:g} the test {test} needs "
            f"{needed} draws without a change to call an image robust; raise the budget to several times that"
        )


def caution(measure: str, settings: Mapping[str, Any]) -> str | None:
    """Sentence on a measure, by its name, whose test exceeds its level; None for any other measure.

    Takes the measure's settings, with its kind.
    """
    if settings["kind"] != "probabilistic" or settings.get("test", ANYTIME) == ANYTIME:
        return None
    return (
        f"{measure} uses {settings['test']}, the exact-binomial paper's test, which does not keep its level: repeated "
        f"after every draw it decides wrongly with a probability of up to {upper_bound(error_rate(settings))}, not "
        f"{setting(settings['alpha'])}. Bounds allow for that; the test {ANYTIME} keeps its level"
    )
