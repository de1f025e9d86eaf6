"""Every measure beside the truth that it ought to tell about the planted images, and what it promises.

Promises: a value never below the truth (what attacks fail to find may exist), never above it (certificates), neither
(sequential tests, up to alpha on each side), or nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gfscore.images.corruptions.parameters import parameters_of
from gfscore.measures import KINDS
from gfscore.statistics.draws import seeds_of_samples
from gfscore.statistics.proportions import allowed_refutations
from studies.known_truth import planted as truth

NEVER_BELOW, NEVER_ABOVE, ALPHA, NOTHING = "never below", "never above", "wrong at most alpha", "nothing"

EPS = 0.025
"""l_inf radius of the attacks; on the planted images it is as far as an l2 radius of 0.194."""

SIGMA, NOISE = 0.12, 0.08
"""Standard deviation of the smoothing, and of the Gaussian neighbours."""

BALL = 0.14
"""l_inf radius of the uniform neighbours, whose standard deviation is then about that of the Gaussian ones."""

KAPPA, TEST_ALPHA, CERTIFICATE_ALPHA = 0.01, 0.05, 0.001

ROUNDING = 1e-6
"""What float32 images and logits leave of exact distances between 0.03 and 0.6."""


@dataclass(frozen=True)
class Case:
    """One measure with its settings.

    Attributes
    ----------
    name : str
        Name of the measure on the page.
    kind : str
        A key of gfscore.measures.KINDS.
    settings : dict
        Those of its settings that it computes by.
    truth : callable
        Of Planted: the true value of each sample, (N,), in the measure's unit.
    promise : str
        One of NEVER_BELOW, NEVER_ABOVE, ALPHA, NOTHING.
    alpha : float
        Error probability of the promise, where there is one.
    tolerance : float
        Within which a value counts as the truth; promises are held to ROUNDING.
    expected : bool
        Whether the truth is an average over noise, which a single measurement scatters around.
    """

    name: str
    kind: str
    settings: dict
    truth: Callable
    promise: str
    alpha: float = 0.0
    tolerance: float = ROUNDING
    expected: bool = False

    def measure(self, classifier, images, labels, *, seed):
        """Columns of the measure, one row per sample: value, averaged over conditions, and the measure's own."""
        kind = KINDS[self.kind]
        settings = kind.parse(self.settings)
        if kind.needs == "logits":
            return kind.load()(classifier.logits(images), labels, settings=settings)
        seeds = seeds_of_samples(seed, self.kind, range(len(images)))
        columns = kind.load()(classifier, images, labels, settings=settings, seeds=seeds)
        rows = columns.get("row", np.arange(len(labels)))
        by_sample = {name: column for name, column in columns.items() if len(column) == len(labels)}
        by_sample["value"] = np.bincount(rows, columns["value"]) / np.bincount(rows)
        return by_sample

    def broken_promises(self, columns, truth):
        """How many values contradict the promise, an int."""
        value = columns["value"]
        if self.promise == NEVER_BELOW:
            return int((value < truth - ROUNDING).sum())
        if self.promise == NEVER_ABOVE:
            return int((value > truth + ROUNDING).sum())
        if self.promise == ALPHA:
            robust = truth > 0
            wrongly_robust = (columns["state"] == "robust") & ~robust
            wrongly_not_robust = (columns["state"] == "not_robust") & robust
            return int(wrongly_robust.sum() + wrongly_not_robust.sum())
        return 0

    def allowed(self, samples):
        """How many broken promises chance explains, from the 99.9% quantile of the binomial distribution."""
        return allowed_refutations(samples, alpha=self.alpha) if self.alpha else 0


def _robust_in_ball(planted):
    return (truth.linf_distances(planted) > EPS).astype(np.float64)


def _targets_resisted(planted):
    # The class itself, at an infinite distance, is no target.
    return ((truth.linf_to_targets(planted) > EPS).sum(axis=1) - 1) / (planted.classes - 1)


def _right_under_noise(planted):
    side = min(planted.images.shape[2:])
    changes = []
    for severity in SEVERITIES:
        sigma = parameters_of("gaussian_noise", severity, side)
        changes.append(truth.gaussian_changes(planted, sigma=sigma))
    return 1 - np.mean(changes, axis=0)


SEVERITIES = [1, 3, 5]
PGD = {"name": "pgd", "steps": 20, "step_size": 0.003, "restarts": 1}
SQUARE = {"name": "square", "queries": 300}
SMOOTHING = {
    "sigma": SIGMA,
    "selection_samples": 50,
    "estimation_samples": 500,
    "alpha": CERTIFICATE_ALPHA,
    "batch_size": 4096,
    "sandwich": None,
}
_TEST = {
    "kappa": KAPPA,
    "alpha": TEST_ALPHA,
    "test": "anytime",
    "budget": 2000,
    "reference": "label",
    "batch_size": 4096,
}
_BALL = {"norm": "linf", "eps": EPS}


def _nearest(norm, *, largest_distance):
    return {
        "norm": norm,
        "largest_distance": largest_distance,
        "attacks": [{"name": "fmn", "steps": 50}],
        "bisection_steps": 12,
    }


def _probabilistic(family, **numbers):
    return _TEST | {"perturbation": {"family": family, "clip": False} | numbers}


CASES = (
    Case("clean accuracy", "clean", {}, lambda p: np.ones(len(p.labels)), NOTHING),
    Case("GREAT score, softmax", "great", {"activation": "softmax"}, truth.l2_distances, NOTHING),
    Case("GREAT score, sigmoid", "great", {"activation": "sigmoid"}, truth.l2_distances, NOTHING),
    Case("PGD", "adversarial", _BALL | {"attacks": [PGD]}, _robust_in_ball, NEVER_BELOW),
    Case("Square", "adversarial", _BALL | {"attacks": [SQUARE]}, _robust_in_ball, NEVER_BELOW),
    Case(
        "minimal l2 distance",
        "minimal",
        _nearest("l2", largest_distance=1.0),
        truth.l2_distances,
        NEVER_BELOW,
        tolerance=1e-3,
    ),
    Case(
        "minimal l_inf distance",
        "minimal",
        # Where every ball holds the grey image, surviving samples of several classes give an attack away.
        _nearest("linf", largest_distance=0.5),
        truth.linf_distances,
        NEVER_BELOW,
        tolerance=1e-3,
    ),
    Case(
        "certified radius",
        "certified",
        {"smoothing": SMOOTHING},
        truth.l2_distances,
        NEVER_ABOVE,
        alpha=CERTIFICATE_ALPHA,
    ),
    Case(
        "probabilistic, Gaussian",
        "probabilistic",
        _probabilistic("gaussian", sigma=NOISE),
        lambda p: (truth.gaussian_changes(p, sigma=NOISE) <= KAPPA).astype(np.float64),
        ALPHA,
        alpha=TEST_ALPHA,
    ),
    Case(
        "probabilistic, uniform",
        "probabilistic",
        _probabilistic("linf_ball", eps=BALL),
        lambda p: (truth.uniform_changes(p, eps=BALL) <= KAPPA).astype(np.float64),
        ALPHA,
        alpha=TEST_ALPHA,
    ),
    Case(
        "corruption: Gaussian noise",
        "corruption",
        {"corruptions": ["gaussian_noise"], "severities": SEVERITIES},
        _right_under_noise,
        NOTHING,
        expected=True,
    ),
    Case(
        "corruption: brightness, contrast",
        "corruption",
        {"corruptions": ["brightness", "contrast"], "severities": [1, 2, 3]},
        lambda p: np.ones(len(p.labels)),
        NOTHING,
    ),
    Case(
        "targets resisted",
        "targeted",
        _BALL | {"steps": 20, "step_size": 0.003, "restarts": 1},
        _targets_resisted,
        NEVER_BELOW,
    ),
)
