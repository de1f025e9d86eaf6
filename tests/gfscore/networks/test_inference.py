from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks import batches
from gfscore.networks.architectures import build_network
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import device_of
from gfscore.networks.inference import extract_logits, identity_of, require_fit


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


def test_a_single_image_too_large_is_an_error(images):
    with pytest.raises(torch.OutOfMemoryError):
        extract_logits(Recorder(limit=0), images, batch_size=8, device="cpu")


@pytest.mark.parametrize("batch_size", [8, None])
def test_a_gpu_too_small_for_one_image_is_named_with_the_remedy(images, batch_size, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(InputError, match=r"net\.onnx: .* one image .*device: cpu"):
        extract_logits(Recorder(limit=0), images, batch_size=batch_size, device="cpu", where="net.onnx")


def test_what_ran_out_in_a_job_on_a_gpu_is_not_taken_for_the_memory_of_the_gpu(images, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for error in (
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        RuntimeError("GET was unable to find an engine to execute this computation"),
    ):
        with pytest.raises(type(error)):
            extract_logits(Recorder(limit=0, error=lambda _, error=error: error), images, batch_size=8, device="cpu")


@pytest.mark.parametrize("batch_size", [2, None])
def test_one_image_may_take_what_is_left_of_the_gpu_where_its_part_does_not_hold_it(batch_size, images, monkeypatch):
    network = Recorder(limit=0)

    def lift(subject):
        network.limit = 1
        return True

    monkeypatch.setattr(batches.GPU_SHARE, "lift_limit", lift)
    _, _, logits = extract_logits(network, images, batch_size=batch_size, device="cpu")
    np.testing.assert_array_equal(logits, first_pixels(images))


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
    extract_logits(replace(from_network(network), threads=2), images, batch_size=8, device="cpu")
    assert network.state == (False, True, 2)


def convnet():
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=4)
    return from_network(network, image_shape=(1, 8, 8), classes=4)


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
