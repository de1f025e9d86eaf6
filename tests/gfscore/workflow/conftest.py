"""What tests of the configuration change, and files as a user has them."""

import io
import json
import sys
from functools import cached_property
from pathlib import Path

import pytest

import gfscore
from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.show.page.sections.contents import DrawnChart
from gfscore.workflow.new_audit import command, inspection, shown_images, tried_proofs
from gfscore.workflow.new_audit.request import Inspection
from helpers import own_files
from helpers.configurations import shipped_configuration


@pytest.fixture(scope="session", autouse=True)
def pictures_of_equal_charts_are_drawn_once():
    """Every check of a bundle draws its page again, nearly always of the same tables.

    What a picture is made of is the key: its frame to the last digit, and its words. That another process draws the same
    page is tested by whole runs of the workflow.
    """
    draw, drawn = DrawnChart.pictures.func, {}

    def pictures(chart):
        frame = chart.page_frame
        key = (chart.chart.name, chart.id, repr(chart.words), repr(list(frame.dtypes)), frame.to_csv())
        if key not in drawn:
            drawn[key] = draw(chart)
        return drawn[key]

    kept = cached_property(pictures)
    kept.__set_name__(DrawnChart, "pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DrawnChart, "pictures", kept)
        yield


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


@pytest.fixture(autouse=True)
def quick_look(monkeypatch):
    """A look in this process gives passes little time, and searches for no proofs, which have tests of their own."""
    monkeypatch.setattr(shown_images, "MEASURING", 0.02)
    monkeypatch.setattr(tried_proofs, "MOST_ACTIVATIONS", 0)


@pytest.fixture
def in_this_process(monkeypatch):
    """The look runs in this process, whose libraries are loaded already."""

    def inspected(request):
        monkeypatch.setattr(sys, "stdin", io.StringIO(request.to_json()))
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
