"""Fixtures of classifiers."""

import numpy as np
import pytest

from gfscore.images.image_set import from_arrays
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from helpers import networks


@pytest.fixture
def architectures(tmp_path, monkeypatch):
    """Folder of architectures that the environment names."""
    folder = tmp_path / "architectures"
    networks.write_architectures(folder)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def images():
    """Eleven images 1x8x8 of four classes."""
    rng = np.random.default_rng(0)
    return from_arrays(
        rng.random((11, 1, 8, 8)),
        rng.integers(0, 4, 11),
        sample_id=[f"s{i}" for i in range(11)],
        preprocessing="none",
    )
