"""Images that several tests train on."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def colours():
    """120 images 3x8x16 of three classes, each bright in one channel."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    images = rng.uniform(0, 0.4, (120, 3, 8, 16)).astype(np.float32)
    images[np.arange(120), labels] += 0.6
    return images, labels
