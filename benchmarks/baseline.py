"""The paper's formulas, written down sample by sample: what the kernels are compared with.

Scores each sample in a Python loop over float32 activations, recomputes them at every temperature, and takes the Gini
coefficient by a double loop. Kept simple on purpose; it is not used by the workflow.
"""

import math

import numpy as np


def activations(logits, *, activation, temperature):
    """Sigmoid or softmax of z / T, (N, K) float32."""
    z = (logits / temperature).astype(np.float32)
    if activation == "sigmoid":
        return 1 / (1 + np.exp(-z))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def class_scores(logits, labels, *, activation, temperature):
    """Mean score of each class, one sample after the other."""
    s = activations(logits, activation=activation, temperature=temperature)
    scores = {}
    for row, label in zip(s, labels, strict=True):
        rival = max(value for j, value in enumerate(row) if j != label)
        scores.setdefault(int(label), []).append(math.sqrt(math.pi / 2) * max(float(row[label] - rival), 0))
    return [sum(scores[k]) / len(scores[k]) for k in sorted(scores)]


def gini(values):
    """Gini coefficient by the double sum of its definition."""
    k, mean = len(values), sum(values) / len(values)
    return sum(abs(a - b) for a in values for b in values) / (2 * k * k * mean)
