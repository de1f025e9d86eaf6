"""Reproducible and faster arithmetic of torch."""

import os

import numpy as np
import pytest
import torch

from gfscore.core.errors import InputError
from gfscore.networks import precision
from gfscore.networks.architectures import build_network
from gfscore.networks.classifier import from_network
from gfscore.networks.inference import extract_logits, measured_drift
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.margins import scores


def test_arithmetic_is_restored_even_after_an_error():
    def state():
        return (
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.allow_tf32,
            torch.backends.cuda.matmul.allow_tf32,
        )

    before = state()
    with pytest.raises(ZeroDivisionError), reproducible_arithmetic(threads=1):
        assert state() == (1, True, False, False)
        raise ZeroDivisionError
    assert state() == before


@pytest.mark.parametrize(("given", "expected"), [(None, ":4096:8"), (":16:8", ":16:8")])
def test_products_on_a_gpu_repeat_unless_the_user_chose_how(given, expected, monkeypatch):
    # Set in any case, so that what is set below is taken back.
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", given or "")
    if given is None:
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    with reproducible_arithmetic():
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == expected


def convnet():
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=4)
    return from_network(network, image_shape=(1, 8, 8), classes=4)


ON_THE_CPU = {"device": "cpu"}
HOW = {"batch_size": 4, **ON_THE_CPU}


def test_bfloat16_keeps_two_digits_and_its_drift_is_measured(images):
    classifier = convnet()
    exact = extract_logits(classifier, images, **HOW)[2]
    faster = {"precision": "bfloat16"}
    logits = extract_logits(classifier, images, **HOW, **faster)[2]
    assert logits.dtype == np.float32
    difference = np.abs(logits - exact).max()
    # 8 bits: each of a few layers rounds by up to 2^-9 of its numbers.
    assert 0 < difference < 0.05 * np.abs(exact).max()
    drift = measured_drift(classifier, images, logits, **ON_THE_CPU, **faster)
    assert drift["dtype"] == "bfloat16"
    # Eleven images are fewer than the sample, so all of them are compared.
    assert drift["drift_samples"] == "11"
    assert float(drift["drift_logit"]) == pytest.approx(difference, rel=1e-5)
    moved = np.abs(
        scores(logits, images.labels, activation="softmax") - scores(exact, images.labels, activation="softmax")
    )
    assert float(drift["drift_great_softmax"]) == pytest.approx(moved.max(), rel=1e-5)
    assert float(drift["drift_predictions"]) == np.mean(logits.argmax(1) != exact.argmax(1))
    assert all(type(value) is str for value in drift.values())
    # Nothing of it stays: float32 gives the same bits as before, and has no drift to measure.
    np.testing.assert_array_equal(extract_logits(classifier, images, **HOW)[2], exact)
    assert measured_drift(classifier, images, None, **ON_THE_CPU, precision="float32") == {}


def test_precisions_that_cannot_be_had_are_refused(images):
    with pytest.raises(InputError, match="tf32 exists on CUDA devices only; choose float32 or bfloat16"):
        extract_logits(convnet(), images, **HOW, precision="tf32")


@pytest.fixture
def settings_of_torch():
    """The arithmetic of torch is restored afterwards."""
    settings = [torch.backends.cudnn, *precision._operations()]
    before = [setting.fp32_precision for setting in settings]
    flags = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    yield
    torch.backends.cudnn.allow_tf32 = flags[0]
    torch.set_float32_matmul_precision(flags[1])
    for setting, value in zip(settings, before, strict=True):
        setting.fp32_precision = value


CHOSEN = {
    "products on a GPU": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "convolutions on a GPU": lambda: setattr(torch.backends.cudnn, "fp32_precision", "tf32"),
    "products on a processor": lambda: setattr(torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
    "all products": lambda: torch.set_float32_matmul_precision("medium"),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_arithmetic_that_the_code_of_a_model_has_chosen_is_set_aside_and_restored(chosen, settings_of_torch):
    CHOSEN[chosen]()
    operations = precision._operations()
    before = [operation.fp32_precision for operation in operations]
    with reproducible_arithmetic():
        assert {operation.fp32_precision for operation in operations} == {"ieee"}
        with precision.tensor_float(allowed=True):
            assert {operation.fp32_precision for operation in operations} == {"tf32"}
        assert {operation.fp32_precision for operation in operations} == {"ieee"}
    assert [operation.fp32_precision for operation in operations] == before
