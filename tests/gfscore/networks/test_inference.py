import os
import threading

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.networks import batches
from gfscore.networks.architectures import build_network
from gfscore.networks.batches import AHEAD, computed_ahead
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import device_of, move_to, out_of_memory, resolve_device
from gfscore.networks.inference import extract_logits, identity_of, measured_drift, require_fit
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.margins import scores


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return from_arrays(
        rng.random((11, 1, 8, 8)),
        rng.integers(0, 4, 11),
        sample_id=[f"s{i}" for i in range(11)],
        preprocessing="none",
    )


class Recorder(nn.Module):
    """Logits are the first four pixels; runs out of memory on batches beyond `limit`."""

    def __init__(self, limit=1000, error=torch.OutOfMemoryError):
        super().__init__()
        self.limit, self.error, self.sizes = limit, error, []

    def forward(self, x):
        self.sizes.append(len(x))
        if len(x) > self.limit:
            raise self.error("DefaultCPUAllocator: not enough memory: you tried to allocate")
        return x.flatten(1)[:, :4]


def first_pixels(images):
    return np.concatenate(list(images.batches(100))).reshape(len(images), -1)[:, :4]


@pytest.mark.parametrize("batch_size", [1, 4, 11, 100])
def test_logits_are_in_the_order_of_the_samples(images, batch_size):
    sample_id, labels, logits = extract_logits(Recorder(), images, batch_size=batch_size, device="cpu")
    assert sample_id.tolist() == [f"s{i}" for i in range(11)]
    np.testing.assert_array_equal(labels, images.labels)
    np.testing.assert_array_equal(logits, first_pixels(images))
    assert logits.dtype == np.float32


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
def test_the_batch_is_halved_when_memory_runs_out_and_stays_small(images, error):
    network = Recorder(limit=3, error=error)
    _, _, logits = extract_logits(network, images, batch_size=8, device="cpu")
    np.testing.assert_array_equal(logits, first_pixels(images))
    # Then some images once more, each alone.
    assert network.sizes == [8, 4, 2, 2, 2, 2, 2, 1] + 8 * [1]


TOO_MUCH = 1 << 55


@pytest.mark.parametrize(
    "take",
    [
        lambda: torch.empty(TOO_MUCH, dtype=torch.uint8),
        lambda: np.empty(TOO_MUCH, dtype=np.uint8),
        lambda: bytearray(TOO_MUCH),
    ],
    ids=["torch", "numpy", "Python"],
)
def test_memory_that_really_runs_out_halves_the_batch(take, images):
    class Greedy(Recorder):
        def forward(self, x):
            self.sizes.append(len(x))
            return take() if len(x) > 3 else x.flatten(1)[:, :4]

    network = Greedy()
    _, _, logits = extract_logits(network, images, batch_size=8, device="cpu")
    np.testing.assert_array_equal(logits, first_pixels(images))
    assert network.sizes[:3] == [8, 4, 2]


def test_errors_of_other_allocators_are_recognised_and_others_are_not():
    full = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    assert out_of_memory(RuntimeError(full))
    assert out_of_memory(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"))
    assert out_of_memory(Allocation("std::bad_alloc"))
    assert out_of_memory(torch.AcceleratorError("CUDA error: out of memory"))
    assert out_of_memory(RuntimeError("Triton Error [CUDA]: out of memory"))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_a_single_image_too_large_is_an_error(images):
    with pytest.raises(torch.OutOfMemoryError):
        extract_logits(Recorder(limit=0), images, batch_size=8, device="cpu")


@pytest.mark.parametrize("batch_size", [8, None])
def test_a_gpu_too_small_for_one_image_is_named_with_the_remedy(images, batch_size, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(InputError, match=r"net\.onnx: .* one image .*device: cpu"):
        extract_logits(Recorder(limit=0), images, batch_size=batch_size, device="cpu", where="net.onnx")


def test_a_gpu_too_small_for_the_weights_is_named_with_the_remedy():
    class Heavy(Recorder):
        def to(self, device):
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(InputError, match=r"net\.onnx: the weights .*device: cpu"):
        move_to(from_network(Heavy()), "cuda", where="net.onnx")


def test_one_image_may_take_what_is_left_of_the_gpu_where_its_part_does_not_hold_it(images, monkeypatch):
    network = Recorder(limit=0)

    def lift():
        network.limit = 1
        return True

    monkeypatch.setattr(batches, "lift_limit", lift)
    _, _, logits = extract_logits(network, images, batch_size=2, device="cpu")
    np.testing.assert_array_equal(logits, first_pixels(images))


def test_cuda_that_is_asked_for_and_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device is cuda"):
        device_of(from_network(Recorder()), "cuda")


def test_a_gpu_that_was_planned_for_and_is_not_there_is_said(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(from_network(Recorder()), "auto", gpu_percent=20) == "cpu"
    assert "planned" in capsys.readouterr().out


def test_other_errors_do_not_shrink_the_batch(images):
    class Broken(Recorder):
        def forward(self, x):
            self.sizes.append(len(x))
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    network = Broken()
    with pytest.raises(RuntimeError, match="shapes"):
        extract_logits(network, images, batch_size=8, device="cpu")
    assert network.sizes == [8]


class FromPixels(nn.Module):
    """Logits by a function of the first four pixels."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x.flatten(1)[:, :4])


def test_a_last_batch_of_one_image_that_loses_its_row_is_refused(images):
    squeezing = FromPixels(torch.squeeze)
    with pytest.raises(InputError, match=r"returns shape \(4,\) for 1 images, expected \(1, 4\).*squeeze"):
        extract_logits(squeezing, images, batch_size=5, device="cpu")
    # Where no batch has one image nothing is lost.
    _, _, logits = extract_logits(squeezing, images, batch_size=6, device="cpu")
    np.testing.assert_array_equal(logits, first_pixels(images))


@pytest.mark.parametrize(
    "function", [lambda z: z[:2], lambda z: z[..., None], lambda z: z.sum(), lambda z: z[:, : len(z)], torch.sum]
)
def test_anything_but_one_row_of_logits_per_image_is_refused(function, images):
    with pytest.raises(InputError, match=r"^m\.pt: returns shape .* for \d images, expected \(\d, [\dK]\)"):
        extract_logits(FromPixels(function), images, batch_size=4, device="cpu", where="m.pt")


def test_values_that_are_not_finite_are_not_masked(images):
    overflowing = FromPixels(lambda z: torch.where(z > 0.5, float("nan"), float("inf")))
    _, _, logits = extract_logits(overflowing, images, batch_size=8, device="cpu")
    assert np.isnan(logits).any()
    assert np.isinf(logits).any()


def test_the_network_is_used_in_eval_mode_without_gradients(images):
    class Probe(Recorder):
        def forward(self, x):
            self.state = self.training, torch.is_inference_mode_enabled(), torch.get_num_threads()
            return x.flatten(1)[:, :4]

    network = Probe().train()
    extract_logits(network, images, batch_size=8, device="cpu", threads=1)
    assert network.state == (False, True, 1)


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


def test_the_next_item_is_made_while_this_one_is_worked_on():
    asked = [threading.Event() for _ in range(3)]

    def made():
        for event in asked:
            event.set()
            yield event

    for number, event in enumerate(computed_ahead(made())):
        assert event is asked[number]
        # Without the other thread nobody would ask for the next item before this one is done with.
        assert asked[min(number + 1, 2)].wait(10)


def test_no_more_is_made_ahead_than_memory_is_meant_for():
    made = []

    def items():
        for number in range(10):
            made.append(number)
            yield number

    for number in computed_ahead(items()):
        assert len(made) <= number + 1 + AHEAD
    assert made == list(range(10))


def test_an_error_of_the_loading_thread_is_raised_here():
    def made():
        yield 1
        raise InputError("broken image")

    items = computed_ahead(made())
    # What was made before the error is still given.
    assert next(items) == 1
    with pytest.raises(InputError, match="broken image"):
        next(items)


def convnet():
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=4)
    return from_network(network, image_shape=(1, 8, 8), classes=4)


HOW = {"batch_size": 4, "device": "cpu", "threads": 1}


def test_bfloat16_keeps_two_digits_and_its_drift_is_measured(images):
    classifier = convnet()
    exact = extract_logits(classifier, images, **HOW)[2]
    faster = {"precision": "bfloat16", "compiled": False}
    logits = extract_logits(classifier, images, **HOW, **faster)[2]
    assert logits.dtype == np.float32
    difference = np.abs(logits - exact).max()
    # 8 bits: each of a few layers rounds by up to 2^-9 of its numbers.
    assert 0 < difference < 0.05 * np.abs(exact).max()
    drift = measured_drift(classifier, images, logits, **HOW, **faster)
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
    assert measured_drift(classifier, images, None, **HOW, precision="float32", compiled=False) == {}


def test_a_compiled_network_gives_the_same_logits(images, monkeypatch):
    compiled = []
    # The real compiler takes a minute; what is ours is that its network is run, and that it is compared.
    monkeypatch.setattr(torch, "compile", lambda network: compiled.append(network) or network)
    classifier = convnet()
    logits = extract_logits(classifier, images, **HOW, compiled=True)[2]
    assert compiled == [classifier.network]
    drift = measured_drift(classifier, images, logits, **HOW, precision="float32", compiled=True)
    assert drift["drift_logit"] == "0"
    assert drift["compiled"] == "true"


def test_precisions_that_cannot_be_had_are_refused(images):
    with pytest.raises(InputError, match="tf32 exists on CUDA devices only; choose float32 or bfloat16"):
        extract_logits(convnet(), images, **HOW, precision="tf32")


def test_a_classifier_for_other_images_or_classes_is_refused():
    classifier = convnet()
    dataset = {"dataset": "digits", "image_shape": [1, 8, 8], "classes": list("abcd")}
    require_fit(classifier, dataset, source="m.safetensors")
    require_fit(from_network(classifier.network), {**dataset, "classes": list("ab")}, source="says nothing")
    with pytest.raises(InputError, match=r"m\.safetensors: made for images of shape \[1, 8, 8\], but digits has \[3"):
        require_fit(classifier, {**dataset, "image_shape": [3, 8, 8]}, source="m.safetensors")
    with pytest.raises(InputError, match="made for 4 classes, but digits declares 3"):
        require_fit(classifier, {**dataset, "classes": list("abc")}, source="m.safetensors")


class Allocation(Exception):
    """onnxruntime's errors derive from Exception alone."""


def test_a_classifier_without_a_network_is_run_on_the_cpu_and_its_batch_halved_too(images):
    sizes = []

    def run(batch):
        sizes.append(len(batch))
        if len(batch) > 3:
            raise Allocation("BFCArena: Failed to allocate memory for requested buffer")
        return batch.reshape(len(batch), -1)[:, :4]

    classifier = Classifier("graph", (1, 8, 8), 4, None, run=run)
    assert device_of(classifier, "cuda") == "cpu"
    _, _, logits = extract_logits(classifier, images, batch_size=8, device="auto")
    np.testing.assert_array_equal(logits, first_pixels(images))
    assert sizes == [8, 4, 2, 2, 2, 2, 2, 1] + 8 * [1]


def test_identity_names_the_data_evaluated_and_is_text():
    dataset = {"dataset": "digits-generated", "digest": "d", "preprocessing": "none"}
    model = {"dataset": "digits", "threat": "none", "model": "ERM", "sha256": "s", "architecture": "small_convnet"}
    identity = identity_of(dataset, model, device="cpu")
    assert identity == {
        "dataset": "digits-generated",
        "threat": "none",
        "model": "ERM",
        "dataset_digest": "d",
        "checkpoint_sha256": "s",
        "architecture": "small_convnet",
        "preprocessing": "none",
        "dtype": "float32",
        "device": "cpu",
        "torch": torch.__version__,
    }
    assert all(type(value) is str for value in identity.values())
    with_own = identity_of(dataset, model, device="cpu", preprocessing="bgr, white 255")
    assert with_own["preprocessing"] == "none; bgr, white 255"


def test_the_automatic_device_is_one_that_exists():
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == "cpu"
