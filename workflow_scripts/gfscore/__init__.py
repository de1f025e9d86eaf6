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

Shares and accuracies are fractions 0..1. Data flows one way: logits, samples, classes, disparity, verdict. The folders
are layers; each imports from those below it, and never from one on its own line (a contract that `make lint` checks):

- `workflow`: what Snakemake asks, and what a job does around its step; `notebook`: audits of arrays, without files;
- `show`: charts, the page, exports, and the words in them;
- `audit`: samples to classes, disparity, calibration, comparison, agreement, groups, verdict;
- `training`, `projection`, `remedies`: what makes networks and mappers, what moves images along a mapper's dimensions,
  and what chooses numbers that are added to a model's logits;
- `measures`: what gives one number per sample;
- `attacks`, `proofs`: what measures and training share;
- `networks`, `images`: classifiers and labelled images of every source;
- `tables`, `statistics`: Parquet tables; numbers in, numbers out;
- `core`: errors, names, numbers as text, files written whole.

The names exported here are loaded on first use, so that importing one module does not load the others.
"""

from importlib import import_module

VERSION = "0.1.0"

_EXPORTS = {
    "Audit": "notebook.audits",
    "ClassBounds": "statistics.class_bounds",
    "GateVerdict": "notebook.audits",
    "InputError": "core.errors",
    "attack": "notebook.attacks_in_memory",
    "audit_logits": "notebook.audits",
    "audit_values": "notebook.audits",
    "class_samples": "statistics.classes",
    "detectable_rdi": "audit.metrics.rdi",
    "log_to_mlflow": "show.exports.mlflow_runs",
    "samples_for_half_width": "statistics.intervals",
    "samples_for_interval": "audit.verdicts.planning",
    "samples_for_rule": "audit.verdicts.planning",
}

__all__ = [
    "Audit",
    "ClassBounds",
    "GateVerdict",
    "InputError",
    "attack",
    "audit_logits",
    "audit_values",
    "class_samples",
    "detectable_rdi",
    "log_to_mlflow",
    "samples_for_half_width",
    "samples_for_interval",
    "samples_for_rule",
]


def __getattr__(name):
    """Load an exported name on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'gfscore' has no attribute {name!r}")
    return getattr(import_module(f"gfscore.{_EXPORTS[name]}"), name)
