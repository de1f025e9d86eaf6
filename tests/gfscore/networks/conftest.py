"""Fixtures of classifiers."""

import pytest

import flat_models
from gfscore.networks.architecture_files import FOLDER_VARIABLE


@pytest.fixture
def architectures(tmp_path, monkeypatch):
    """Folder of architectures that the environment names."""
    folder = tmp_path / "architectures"
    flat_models.write_architectures(folder)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder
