"""The attack-free margin score (GREAT) of single samples."""

import math
from numbers import Real

import numpy as np

from gfscore.errors import InputError
from gfscore.measures import SCALE

# Rows are scored in blocks whose float64 copy stays in the processor's cache.
BLOCK_ELEMENTS = 1 << 17


def scores(logits, labels, *, activation, temperature=1.0):
    """Attack-free margin score g = B max(m, 0) of each sample.

    m = s_y - max_{j != y} s_j with s = act(z / T). Takes `logits` (N, K) finite, `labels` (N,) int,
    `activation` a key of ACTIVATIONS, `temperature` > 0. Returns (N,) float64 in [0, B], higher is better,
    0 for a misclassified sample and for a tie at the top. Not a certified radius (docs/limits.md).
    Raises InputError for a temperature that is not a positive number or an unknown activation.
    Source: GREAT Score (Li et al. 2024); GF-Score, Eq. 1.
    """
    require_temperature(temperature)
    _require_activation(activation)
    return _scores(_correct_blocks(np.asarray(logits), np.asarray(labels)), len(labels), activation, temperature)


def scores_by_temperature(logits, labels, *, activation):
    """Function from a temperature to the scores (N,) that `scores` gives: what no temperature changes is done once.

    Takes `logits`, `labels` and `activation` as `scores` does; holds a copy of the logits. Raises InputError for an
    unknown activation, and the function for a temperature that is not a positive number.
    """
    _require_activation(activation)
    blocks = list(_correct_blocks(np.asarray(logits), np.asarray(labels)))

    def scores_at(temperature):
        require_temperature(temperature)
        return _scores(blocks, len(labels), activation, temperature)

    return scores_at


def _scores(blocks, n, activation, temperature):
    result = np.zeros(n)
    # Quotients beyond the largest float64 become infinite, and the exponentials of those are right.
    with np.errstate(over="ignore"):
        for rows, sample in blocks:
            result[rows] = SCALE * ACTIVATIONS[activation](*sample, float(temperature))
    return result


def _correct_blocks(logits, labels):
    # Correctly classified rows of each block, and their logits, labels, own and rival logits. Elsewhere g = 0; leaving
    # those rows out keeps every exponent below non-positive.
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(labels), step):
        block = slice(start, start + step)
        own, rival = own_and_rival(logits[block], labels[block])
        correct = own > rival
        rows = start + np.flatnonzero(correct)
        # Class after class in memory, so that sums over classes run along it.
        yield rows, (np.asfortranarray(logits[rows]), labels[rows], own[correct], rival[correct])


def _require_activation(activation):
    if activation not in ACTIVATIONS:
        raise InputError(f"activation {activation!r} is unknown; choose one of {', '.join(ACTIVATIONS)}")


def require_temperature(temperature):
    """Raise InputError unless the temperature is a positive finite number."""
    if not (isinstance(temperature, Real) and 0 < temperature < math.inf):
        raise InputError(f"temperature must be a positive number, got {temperature!r}")


def own_and_rival(logits, labels):
    """Logit of the true class and largest logit of the others, both (N,) float64."""
    own, others = _split(logits, labels)
    return own, others.max(axis=1)


def predictions(logits, labels):
    """Predicted class of each sample, (N,) int32; a tie at the top counts against the true class.

    So a sample is correct exactly when its logit margin is positive, and the softmax score tends to B times accuracy
    as T -> 0.
    """
    own, others = _split(logits, labels)
    rival = others.argmax(axis=1)
    return np.where(own > others.max(axis=1), labels, rival).astype(np.int32)


def _split(logits, labels):
    # Logit of the true class, and all logits with that one out of the running.
    rows = np.arange(len(labels))
    others = np.array(logits, dtype=np.float64)
    own = others[rows, labels]
    others[rows, labels] = -np.inf
    return own, others


def _sigmoid_margin(own, rival, gap):
    # sig(own) - sig(rival) without cancellation; the gap own - rival >= 0 is given, since both may be infinite.
    from scipy.special import expit

    return expit(own) * expit(-rival) * -np.expm1(-gap)


def _softmax_margin(differences, labels):
    # `differences` (N, K) are (u_j - u_y) / T <= 0, with 0 at j = y: the denominator is at least 1.
    total = np.exp(differences).sum(axis=1)
    differences[np.arange(len(labels)), labels] = -np.inf
    return -np.expm1(differences.max(axis=1)) / total


def _sigmoid(logits, labels, own, rival, temperature):
    return _sigmoid_margin(own / temperature, rival / temperature, (own - rival) / temperature)


def _softmax(logits, labels, own, rival, temperature):
    # In place: fresh memory for every step costs as much as the exponentials.
    exponentials = logits - own[:, None]
    exponentials /= temperature
    np.exp(exponentials, out=exponentials)
    return -np.expm1((rival - own) / temperature) / exponentials.sum(axis=1)


def _sigmoid_of_softmax(logits, labels, own, rival, temperature):
    scale = np.exp(logits - own[:, None]).sum(axis=1) * temperature
    return _sigmoid_margin(1 / scale, np.exp(rival - own) / scale, -np.expm1(rival - own) / scale)


def _softmax_of_sigmoid(logits, labels, own, rival, temperature):
    differences = _sigmoid_margin(own[:, None], logits.astype(np.float64), own[:, None] - logits)
    return _softmax_margin(-differences / temperature, labels)


ACTIVATIONS = {
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "sigmoid-of-softmax": _sigmoid_of_softmax,
    "softmax-of-sigmoid": _softmax_of_sigmoid,
}
"""Output layers by name; the two composed ones are sigmoid(softmax(z) / T) and softmax(sigmoid(z) / T)."""
