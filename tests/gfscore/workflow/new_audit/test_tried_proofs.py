"""Proofs that a new audit has by itself where they are worth their time."""

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.request import Request

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture
def quick_look():
    """How many proofs are tried, and what follows from them, is tested here."""


def network(activation):
    """Logits are 10 times the mean of a channel; with ReLU the margin within eps of an image is exactly known."""
    convolution = nn.Conv2d(3, 3, 1)
    with torch.no_grad():
        convolution.weight.copy_(10 * torch.eye(3)[:, :, None, None])
        convolution.bias.zero_()
    return nn.Sequential(convolution, activation, nn.AvgPool2d(8), nn.Flatten())


def looked_at(activation, eps):
    """A look at 60 images, each of .1 but for .7 in the channel of its class, that are proven within less than .3."""
    labels = np.arange(60) % 3
    images = np.full((60, 3, 8, 8), 0.1, dtype=np.float32)
    images[np.arange(60), labels] = 0.7
    images += np.random.default_rng(0).uniform(-0.02, 0.02, images.shape).astype(np.float32)
    np.savez("data.npz", x=images, y=labels)
    torch.onnx.export(
        network(activation), torch.zeros(1, 3, 8, 8), "net.onnx", input_names=["x"], output_names=["z"],
        dynamic_axes={"x": {0: "n"}, "z": {0: "n"}}, dynamo=False,
    )  # fmt: skip
    found = inspect(Request(("net.onnx",), "data.npz", eps=eps, preprocessing="none"), lambda line: None)
    (line,) = [line for line in found.lines if line.startswith("proofs")]
    return line, yaml.safe_load(found.text)


def test_proofs_are_of_the_first_radius_and_of_the_samples_that_are_attacked():
    line, audit = looked_at(nn.ReLU(), ("0.1", "0.05"))
    assert "12 of 12 images proven" in line and "40% of the time" in line
    measures = audit["measures"]
    assert audit["audits"]["net"]["measures"] == ["clean", "great-softmax", *measures]
    assert [name for name in measures if name.startswith("proven")] == ["proven-linf-0.1"]
    assert measures["proven-linf-0.1"].get("subset") == measures["adversarial-linf-0.1"].get("subset")
    assert audit["audits"]["net"]["gate"] == [{"measure": "robust-linf-0.1", "at_least": 0.3}]


def test_no_proofs_where_none_of_the_tried_images_is_proven():
    line, audit = looked_at(nn.ReLU(), ("0.5",))
    assert "none of 12 images was proven" in line and "l_inf 0.5" in line and "--eps" in line
    assert not any(name.startswith("proven") for name in audit["measures"])
    assert audit["audits"]["net"]["gate"] == [{"measure": "adversarial-linf-0.5", "at_least": 0.3}]


def test_no_proofs_where_an_operator_has_no_bounds():
    line, audit = looked_at(nn.GELU(), ("0.1",))
    assert line == "proofs    none: there are no bounds for the operator gelu (net)"
    assert not any(name.startswith("proven") for name in audit["measures"])
