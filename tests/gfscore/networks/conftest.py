"""Fixtures of classifiers."""

import pytest

from gfscore.networks.architecture_files import FOLDER_VARIABLE
from helpers import networks


@pytest.fixture
def architectures(tmp_path, monkeypatch):
    """Folder of architectures that the environment names."""
    folder = tmp_path / "architectures"
    networks.write_architectures(folder)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder
