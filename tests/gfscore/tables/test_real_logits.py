"""The core on real logits: eight standard CIFAR-10 networks on all 10,000 test images."""

import numpy as np
import pytest

from gfscore import audit_logits
from gfscore.statistics import SCALE
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import scores

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
# Clean accuracies in percent that were published with the logits.
ACCURACIES = {
    "vgg_15_BN_64": 93.18,
    "resnet_basic_110": 94.06,
    "resnet_preact_bottleneck_164": 94.28,
    "densenet_BC_100_12": 95.62,
    "pyramidnet_basic_110_270": 96.21,
    "wrn_28_10": 96.24,
    "resnext_29_8x64d": 96.46,
    "shake_shake_26_2x64d_SSI_cutout16": 97.30,
}


@pytest.fixture(scope="module")
def logits_of(real_data):
    def read(name):
        with np.load(real_data / f"cifar10/logits/{name}.npz") as file:
            return file["logits"], file["labels"]

    return read


@pytest.mark.parametrize(("name", "accuracy"), ACCURACIES.items())
def test_accuracy_is_the_published_one_and_cat_is_the_weakest_class(logits_of, name, accuracy):
    audit = audit_logits(*logits_of(name), class_names=CIFAR10)
    assert 100 * audit.metrics.loc["model", "accuracy"] == pytest.approx(accuracy, abs=1e-9)
    assert audit.metrics.loc["model", "wcr_class"] == "cat"
    assert set(audit.classes["n"]) == {1000}


@pytest.mark.parametrize("name", ACCURACIES)
def test_undefended_networks_score_near_the_top_although_attacks_fool_them(logits_of, name):
    """Between 1.14 and 1.20 of B = 1.2533: the score does not measure resistance to attacks."""
    assert 1.13 < scores(*logits_of(name), activation="softmax").mean() < 1.21 < SCALE


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_curves_agree_with_direct_evaluation(logits_of, activation):
    logits, labels = logits_of("vgg_15_BN_64")
    curves = sweep_class_scores(logits, labels, 10, activation=activation, low=0.01, high=10.0)
    for temperature in (0.0123, 0.4567, 1.0, 2.7, 9.87):
        direct = scores(logits, labels, activation=activation, temperature=temperature)
        expected = [direct[labels == k].mean() for k in range(10)]
        assert curves(np.array([temperature]))[0] == pytest.approx(expected, abs=1e-9)
