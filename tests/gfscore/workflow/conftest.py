"""What tests of the configuration change, and files as a user has them."""

import io
import json
import sys
from pathlib import Path

import pytest

import gfscore
from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.workflow.new_audit import command, inspection
from gfscore.workflow.new_audit.request import Inspection
from helpers import own_files
from helpers.configurations import shipped_configuration


@pytest.fixture
def config():
    """Every shipped audit, complete; the demo is to run."""
    return shipped_configuration()


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
    # The process that inspects finds the package.
    monkeypatch.setenv("PYTHONPATH", str(Path(gfscore.__file__).parents[1]))
    return tmp_path


@pytest.fixture
def in_this_process(monkeypatch):
    """The look runs in this process, whose libraries are loaded already."""

    def inspected(request):
        monkeypatch.setattr(sys, "stdin", io.StringIO(request.text()))
        reply = Path("reply.json")
        with monkeypatch.context() as patched:
            patched.setenv(FOLDER_VARIABLE, "replaced by the look")
            inspection.main(reply)
        values = json.loads(reply.read_text(encoding="utf-8"))
        reply.unlink()
        if "error" in values:
            raise InputError(values["error"])
        return Inspection(**values)

    monkeypatch.setattr(command, "inspected", inspected)
