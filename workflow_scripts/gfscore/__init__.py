"""Class-wise robustness and fairness of image classifiers, from cached logits.

Vocabulary, used everywhere in this package:

N, K, M, T
    Number of samples, of classes, of models; temperature (a positive number that divides the logits).
logits
    `(N, K)` float32, unnormalised class scores of a classifier.
labels
    `(N,)` int32, the true class of each sample, 0..K-1.
measure
    A rule that gives every sample one number, in a declared range and direction: `clean` (correct or not),
    `great` (attack-free margin score), and so on.
class value
    Mean of a measure over the samples of one class, `(K,)` float64; NaN where a class has no sample.
disparity
    A scalar made of the class values: RDI, NRGC, WCR, FP.
score
    The attack-free margin score (GREAT). It is not a certified radius: see docs/limits.md.

Shares and accuracies are fractions 0..1. Data flows one way: logits, samples, classes, disparity, verdict. Folders in
that order, each with its subject in its first line:

- what comes in: `datasets`, `attributes`, `corruptions`, `models`, `zoo`, `training`, `mappers`;
- measures of single samples: `scores`, `attacks`, `certificates`, `probabilistic`, `projection`;
- what they say: `bounds`, `calibration`, `classwise`, `groups`, `comparison`, `agreement`, `verdicts`;
- what is shown: `figures`, `report`, `dashboard`, `exports`;
- what all of them rest on: `files`, `tables`, `workflow`;
- what is compared with: `reference`, `reproduction`, `known_truth`.

The names exported here are loaded on first use, so that importing one module does not load the others.
"""

from importlib import import_module

VERSION = "0.1.0"

_EXPORTS = {
    "Audit": "audit",
    "ClassBounds": "bounds.class_bounds",
    "InputError": "errors",
    "audit_logits": "audit",
    "class_samples": "scores.classes",
    "detectable_rdi": "bounds.planner",
    "samples_for_half_width": "bounds.intervals",
    "samples_for_interval": "bounds.planner",
    "samples_for_rule": "bounds.planner",
}

__all__ = [
    "Audit",
    "ClassBounds",
    "InputError",
    "audit_logits",
    "class_samples",
    "detectable_rdi",
    "samples_for_half_width",
    "samples_for_interval",
    "samples_for_rule",
]


def __getattr__(name):
    """Load an exported name on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'gfscore' has no attribute {name!r}")
    return getattr(import_module(f"gfscore.{_EXPORTS[name]}"), name)
