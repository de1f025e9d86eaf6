import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.networks.architectures import build_network
from gfscore.networks.batch_invariance import SAMPLES, spread_over
from gfscore.networks.classifier import Classifier
from gfscore.networks.inference import extract_logits

HOW = {"batch_size": 16, "device": "cpu"}


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(37)]
    return from_arrays(rng.random((37, 1, 8, 8)), np.arange(37) % 4, sample_id=names, preprocessing="none")


class Then(nn.Module):
    """A convolutional network whose logits go through a function."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=4)
        self.function = function

    def forward(self, x):
        return self.function(self.network(x))


def moved(logits, share):
    """Something that the rest of the batch adds, a share of what the logits span."""
    return logits + share * (logits.max() - logits.min()) * (len(logits) > 1)


def noise(logits, share):
    return logits + share * (logits.max() - logits.min()) * torch.randn_like(logits)


RANDOM = [lambda z: nn.functional.dropout(z, 0.5), lambda z: noise(z, 0.05), torch.rand_like]


@pytest.mark.parametrize("function", RANDOM)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_logits_that_chance_decides_are_refused(function, precision, images):
    how = {**HOW, "precision": precision, "where": "zoo/m.pt"}
    with pytest.raises(InputError, match=r"^zoo/m\.pt: the logits of one image differ by .* from run to run .*drop"):
        for _ in range(5):
            extract_logits(Then(function), images, **how)


OF_THE_BATCH = [
    lambda z: z - z.mean(0),
    lambda z: nn.functional.batch_norm(z, None, None, training=True) if len(z) > 1 else z,
    lambda z: z * len(z),
    lambda z: moved(z, 0.3),
]


@pytest.mark.parametrize("function", OF_THE_BATCH)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_logits_that_other_images_decide_are_refused(function, precision, images):
    with pytest.raises(
        InputError, match=r"differ by .* between a batch and the image alone .* depend on the other images"
    ):
        extract_logits(Then(function), images, **HOW, precision=precision)


def test_plain_arithmetic_lets_no_small_noise_pass(images):
    with pytest.raises(InputError, match="from run to run"):
        extract_logits(Then(lambda z: noise(z, 0.01)), images, **HOW)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z,
        lambda z: 0 * z,
        # Far from 0, and near what float32 holds: rounding is all that is left of the differences.
        lambda z: z + 1e6,
        lambda z: z * 1e36,
        # What a network that rounds to whole numbers makes of another order of sums.
        lambda z: moved(z, 0.02),
        lambda z: z * torch.where(z > 0, float("inf"), 1.0),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_rounding_is_no_reason_to_refuse(function, precision, images):
    _, _, logits = extract_logits(Then(function), images, **HOW, precision=precision)
    assert logits.shape == (37, 4)


def test_classifiers_without_a_network_are_compared_too(images):
    def run(batch, of_the_batch):
        logits = batch.reshape(len(batch), -1)[:, :4]
        return logits - of_the_batch * logits.mean(axis=0)

    fine = Classifier("ONNX graph", (1, 8, 8), 4, None, run=lambda batch: run(batch, 0))
    extract_logits(fine, images, **HOW)
    other = Classifier("ONNX graph", (1, 8, 8), 4, None, run=lambda batch: run(batch, 1))
    with pytest.raises(InputError, match=r"the classifier \(ONNX graph\): .* between a batch and the image alone"):
        extract_logits(other, images, **HOW)


def test_a_few_images_are_compared_and_they_are_spread():
    assert spread_over(10_000, SAMPLES)[[0, -1]].tolist() == [0, 9_999]
    assert len(spread_over(10_000, SAMPLES)) == SAMPLES
    assert spread_over(3, SAMPLES).tolist() == [0, 1, 2]


def test_fault_in_the_first_batch_ends_the_work_there(images):
    class Counting(Then):
        passes = 0

        def forward(self, x):
            self.passes += 1
            return super().forward(x)

    network = Counting(lambda z: z - z.mean(0))
    with pytest.raises(InputError, match="between a batch and the image alone"):
        extract_logits(network, images, batch_size=8, device="cpu")
    assert network.passes < 20


def test_a_network_that_changes_its_input_is_refused_for_that(images):
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 10)

        def forward(self, x):
            x -= 0.5
            return self.linear(x.flatten(1))

    with pytest.raises(InputError, match="modifies its input images"):
        extract_logits(Centred(), images, batch_size=64, device="cpu")


def test_a_network_that_returns_more_than_logits_is_refused(images):
    class Pair(nn.Module):
        def forward(self, x):
            return x.flatten(1), x

    with pytest.raises(InputError, match="returns a tuple; make it"):
        extract_logits(Pair(), images, batch_size=64, device="cpu")
