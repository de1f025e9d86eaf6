"""Files as a user has them, made once."""

import pytest

from gfscore.networks.architecture_files import FOLDER_VARIABLE
from helpers import own_files


@pytest.fixture(scope="session")
def own(tmp_path_factory, real_data):
    """Folder with one network in every kind of model file and its images in every kind of data file."""
    folder = tmp_path_factory.mktemp("own")
    own_files.write_all(folder, real_data)
    return folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project in which audits are written: the working directory, with a folder of architectures."""
    (tmp_path / "architectures").mkdir()
    (tmp_path / "Snakefile").touch()
    # As the process that inspects sees the file of --architecture.
    (tmp_path / "architectures/my_networks.py").write_text(own_files.DEFINITION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "architectures"))
    return tmp_path
