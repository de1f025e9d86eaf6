"""Thresholds of probabilistic robustness, error rates of its tests, and whether their budgets suffice.

Declarations of measures and the check of config.yaml import this module, so it loads nothing heavy: the tests
themselves (`sequential_tests`) are imported by the functions that evaluate them.
"""

from dataclasses import dataclass

from gfscore.core.errors import InputError, unknown_name
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
            raise InputError(unknown_name("kappa", kappa, PRESETS))
        return PRESETS[kappa]
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, or be one of {', '.join(PRESETS)}; got {kappa!r}")
    return float(kappa)


@dataclass(frozen=True, kw_only=True)
class SequentialTest:
    """Test of the hypothesis that at most a share kappa of the neighbours of an image is classified otherwise.

    Parameters
    ----------
    kappa : float or str
        Largest tolerated share of changed neighbours, or the name of a preset.
    alpha : float
        Error probability of a call, which the test `anytime` keeps.
    name : {"anytime", "repeated_exact"}
        Key of `sequential_tests.TESTS`.
    budget : int
        Most neighbours of an image.
    """

    kappa: float | str
    alpha: float
    name: str
    budget: int

    def error_rate(self) -> float:
        """Largest probability that a decision is wrong, over all neighbourhoods: the worst case is p = kappa.

        In [0, 0.5). Raises InputError if the rate is not below 0.5, for which there are no bounds.
        """
        # Known without scipy, which an environment of Snakemake alone lacks.
        if self.name == ANYTIME:
            return float(self.alpha)
        from gfscore.statistics.sequential_tests import wrong_call_rate

        kappa = threshold(self.kappa)
        rate = wrong_call_rate(kappa=kappa, alpha=self.alpha, budget=self.budget, test=self.name)
        if rate >= USELESS:
            raise InputError(
                f"test {self.name} at kappa {kappa:g}, alpha {self.alpha:g} and budget {self.budget} decides wrongly "
                f"with a probability of up to {upper_bound(rate)}, so its decisions give no bounds; use the test "
                f"{ANYTIME}, or a smaller alpha or budget"
            )
        return rate

    def require_budget(self) -> None:
        """Raise InputError for a budget within which no image could be decided as robust."""
        from gfscore.statistics.sequential_tests import clean_draws

        kappa = threshold(self.kappa)
        if kappa == 0:
            return
        needed = clean_draws(kappa=kappa, alpha=self.alpha, test=self.name)
        if self.budget < needed:
            raise InputError(
                f"budget {self.budget} is too small: at kappa {kappa:g} and alpha {self.alpha:g} the test {self.name} "
                f"needs {needed} draws without a change to decide that an image is robust; raise the budget to several "
                "times that"
            )


def warning_about_test(measure: str, test: SequentialTest | None) -> str | None:
    """Warning about a measure whose test is not `anytime` and so does not guarantee its level; None otherwise."""
    if test is None or test.name == ANYTIME:
        return None
    return (
        f"{measure} uses {test.name}, the exact-binomial paper's test, which does not keep its level: repeated "
        f"after every draw it decides wrongly with a probability of up to {upper_bound(test.error_rate())}, not "
        f"{setting(test.alpha)}. Bounds allow for that; the test {ANYTIME} keeps its level"
    )
