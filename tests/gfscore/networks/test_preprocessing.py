"""What is done to pixels before they reach a network."""

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.preprocessing import description, preprocess, preprocessed
from helpers.networks import FLAT_IMAGES, FLAT_PREPROCESSING


def test_pixels_are_reordered_scaled_and_normalised_in_this_order():
    settings = {
        **FLAT_PREPROCESSING,
        "channel_order": "bgr",
        "value_range": 255,
        "mean": [104, 117, 123],
        "std": [1, 2, 4],
    }
    module = preprocessed(nn.Identity(), settings, where="m")
    expected = (255 * FLAT_IMAGES[:, ::-1] - np.reshape([104, 117, 123], (3, 1, 1))) / np.reshape([1, 2, 4], (3, 1, 1))
    np.testing.assert_allclose(module(torch.from_numpy(FLAT_IMAGES)).numpy(), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(preprocess(FLAT_IMAGES, settings, where="m"), expected, rtol=1e-5, atol=1e-4)
    assert description(settings) == "bgr, white 255, mean 104 117 123, std 1 2 4"
    assert module.state_dict() == {}


def test_gradients_go_through_the_preprocessing():
    settings = {**FLAT_PREPROCESSING, "channel_order": "bgr", "value_range": 255, "std": [1, 2, 4]}
    images = torch.from_numpy(FLAT_IMAGES).requires_grad_()
    preprocessed(nn.Identity(), settings, where="m")(images).sum().backward()
    np.testing.assert_allclose(images.grad[0, :, 0, 0], [255 / 4, 255 / 2, 255])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean": [0.5]}, r"m: mean \[0.5\] must hold 3 finite numbers"),
        ({"std": [1, 0, 1]}, r"m: std \[1, 0, 1\] must hold 3 finite numbers, std positive ones"),
        ({"image_shape": [1, 8, 8], "channel_order": "bgr"}, "bgr needs 3 channels"),
    ],
)
def test_wrong_preprocessing_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        preprocessed(nn.Identity(), {**FLAT_PREPROCESSING, **changes}, where="m")
