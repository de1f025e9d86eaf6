"""The brightest-band classifier, and twins of it that decide alike on every image but give other logits.

(Where two bands are exactly equally bright, as after rounding pixels, they may differ: a tie counts as an error.)
Distances, certificates and probabilities of change are those of the decisions, so they are the same for all of them.
"""

import torch
from torch.nn.functional import one_hot

from gfscore.networks.classifier import from_network
from studies.known_truth.planted import BAND, SHAPE

SURE, SATURATING, OVERCONFIDENCE = 10.0, 1e4, 30.0
"""Factors of the logits: of the twin that is surer, of the one whose softmax is 0 or 1 in float32, and of the one that
is surer of its weak class only."""

STEP = 0.02
"""Height of the steps in the logits of the twin without gradients."""

TWINS = {
    "plain": "logits as they are",
    "surer": f"all logits times {SURE:g}",
    "sure of the weak class": f"logits times {OVERCONFIDENCE:g} where the weak class is predicted",
    "saturated": f"all logits times {SATURATING:g}: the softmax is 0 or 1 in float32, its gradient 0",
    "steps": "logits rounded to steps, which still tell how close an attack is; gradient 0 everywhere",
    "labels only": "one logit 10, the others 0: nothing but the decision; gradient 0 everywhere",
}
"""Twin -> what it does to the logits."""


def make_classifier(twin, *, classes, weak):
    """Classifier of images (n, 3, 10, 10), by its name in TWINS; `weak` is the planted weak class."""

    class Bands(torch.nn.Module):
        """Logits (n, K): brightness of each band above grey, times sqrt(m), then what the twin makes of it."""

        def forward(self, images):
            brightness = (images - 0.5).sum((1, 3))[:, :classes]
            return _TWIN_LOGITS[twin](brightness / BAND**0.5, weak)

    return from_network(Bands(), architecture=f"brightest band, {twin}", image_shape=SHAPE, classes=classes)


def _sure_of_weak(logits, weak):
    predicted_weak = logits.argmax(1, keepdim=True) == weak
    return logits * (1 + (OVERCONFIDENCE - 1) * predicted_weak)


def _steps(logits, _weak):
    # A quarter of a step decides between logits that share one, as before rounding.
    return (logits / STEP).round() * STEP + _decision(logits) * STEP / 4


def _labels_only(logits, _weak):
    return 10 * _decision(logits) + 0 * logits


def _decision(logits):
    return one_hot(logits.argmax(1), logits.shape[1]).to(logits.dtype)


_TWIN_LOGITS = {
    "plain": lambda logits, _weak: logits,
    "surer": lambda logits, _weak: SURE * logits,
    "sure of the weak class": _sure_of_weak,
    "saturated": lambda logits, _weak: SATURATING * logits,
    "steps": _steps,
    "labels only": _labels_only,
}
