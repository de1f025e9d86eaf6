"""gfscore audit up to the file that it writes: once, again, otherwise, and by make's variables."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from gfscore.workflow.command import ERROR, main
from gfscore.workflow.new_audit import command
from gfscore.workflow.new_audit.request import Request
from helpers.configurations import ROOT


def audit(*arguments):
    return main(["audit", *map(str, arguments), "--dry-run"])


@pytest.mark.usefixtures("in_this_process")
def test_a_second_call_runs_what_stands_and_another_one_shows_what_would_change(own, project, capsys, monkeypatch):
    assert audit(own / "net.onnx", own / "images.npz") == 0
    written = project / "audits/net.yaml"
    said = capsys.readouterr().out
    assert "57.4%" in said
    edited = written.read_text().replace("at_least: 0.3", "at_least: 0.2")
    written.write_text(edited)
    with monkeypatch.context() as patched:
        patched.setattr(command, "inspected", lambda request: pytest.fail("looked at the files again"))
        assert audit(own / "net.onnx", own / "images.npz") == 0
    assert written.read_text() == edited
    assert audit(own / "net.onnx", own / "images.npz", "--eps", "4/255") == ERROR
    said = capsys.readouterr()
    assert "+  adversarial-linf-4of255" in said.out and "FORCE=1" in said.err
    assert written.read_text() == edited
    assert audit(own / "net.onnx", own / "images.npz", "--eps", "4/255", "--force") == 0
    assert "adversarial-linf-4of255" in written.read_text()


@pytest.mark.usefixtures("in_this_process")
def test_the_file_of_an_architecture_is_copied_and_no_other_is_overwritten(own, project, capsys):
    (project / "architectures/my_networks.py").unlink()
    arguments = (own / "weights.pth", own / "images.npz", "--architecture", f"{own}/my_networks.py:marabou")
    assert audit(*arguments) == 0
    copied = project / "architectures/my_networks.py"
    assert copied.read_text() == (own / "my_networks.py").read_text()
    copied.write_text("# of somebody else\n")
    (project / "audits/weights.yaml").unlink()
    assert audit(*arguments) == ERROR
    assert "architectures/my_networks.py: another file of this name" in capsys.readouterr().err
    assert copied.read_text() == "# of somebody else\n" and not (project / "audits/weights.yaml").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_file_in_architectures_whose_name_no_module_can_have_is_copied_there(own, project):
    file = (project / "architectures/my_networks.py").rename(project / "architectures/my-networks.py")
    arguments = ("--architecture", "architectures/my-networks.py:marabou")
    assert audit(own / "weights.pth", own / "images.npz", *arguments) == 0
    entry = yaml.safe_load((project / "audits/weights.yaml").read_text())["models"]["weights"]["none"]["weights"]
    assert entry["architecture"] == "architectures.my_networks:marabou"
    assert (project / "architectures/my_networks.py").read_text() == file.read_text()


@pytest.mark.usefixtures("in_this_process")
def test_make_passes_its_variables_by_the_environment(own, project, monkeypatch):
    with_blank = project / "my net.onnx"
    os.link(own / "net.onnx", with_blank)
    values = {"MODEL": "my net.onnx", "DATA": str(own / "images.npz"), "EPS": "2/255", "MINUTES": "7", "AUDIT": "mine"}
    values |= {"OUTPUT": "scores", "PROBABILITIES": "no"}
    for name in ("MODEL", "DATA", *command.MAKE):
        monkeypatch.setenv(name, values.get(name, ""))
    assert audit("--of-make") == 0
    written = yaml.safe_load((project / "audits/mine.yaml").read_text())
    entry = written["models"]["mine"]["none"]["my-net"]
    assert entry["path"] == "my net.onnx" and entry["output"] == "scores"
    assert "adversarial-linf-2of255" in written["measures"]


def test_a_flag_of_make_that_is_neither_yes_nor_no_is_refused(own, project, monkeypatch, capsys):
    monkeypatch.setenv("MODEL", str(own / "net.onnx"))
    monkeypatch.setenv("TRUST_CODE", "perhaps")
    assert audit("--of-make") == ERROR
    assert "TRUST_CODE=perhaps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a model and its data"),
        (["a.onnx", "b", "--eps", "1,2,3,4"], "4 radii"),
        (["a.onnx", "b", "--eps", "8/255,8/255"], "stands twice"),
        (["a.onnx", "b", "--eps", "8"], r"pixels are in \[0, 1\]"),
        (["a.onnx", "b", "--eps", "much"], "no number"),
        (["a.onnx", "b", "--minutes", "0"], "--minutes 0"),
        (["a.onnx", "b", "--name", "a/b"], "letters, digits"),
        (["a.onnx", "b", "--size", "0"], "--size 0"),
        (["a.onnx", "b", "--size", "100000"], "--size 100000"),
        (["a.onnx", "b"], "a.onnx: there is no such file"),
        (
            ["net.onx", "b"],
            "net.onx: no such file, and no network of timm or torchvision has this name",
        ),
        (["rsnet18.a1_in1k", "b"], "rsnet18.a1_in1k: no such file, and no network .*; did you mean .*resnet18"),
        (["keras:resnet18", "b"], "networks are timm:NAME and torchvision:NAME"),
        (["Snakefile", "b"], "Snakefile: no kind of model ends in nothing"),
        (["architectures", "b"], "architectures: a folder without models"),
        (["resnet18"], "images are missing"),
        (["resnet18", "b"], "b: there is no such file or folder"),
        (["resnet18.a1_in1k", "empty"], "empty: an empty folder"),
        (["resnet18", "empty", "--architecture", "a.py:net"], "a.py: there is no such file; correct --architecture"),
    ],
)
def test_what_no_file_need_be_opened_for_is_refused_at_once(project, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(command, "inspected", lambda request: pytest.fail("libraries were loaded to look at files"))
    (project / "empty").mkdir()
    assert audit(*arguments) == ERROR
    assert re.search(message, capsys.readouterr().err)
    assert not (project / "audits").exists()


def test_paths_are_checked_before_a_library_of_networks_is_loaded():
    code = (
        "import sys; from gfscore.workflow.new_audit.paths import require_paths; "
        "from gfscore.workflow.new_audit.request import Request; require_paths(Request(('resnet18',), '.')); "
        "print(sorted({'numpy', 'pandas', 'timm', 'torch', 'torchvision'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_elsewhere_than_in_the_project_nothing_happens(project, capsys):
    (project / "Snakefile").unlink()
    assert audit("a.onnx", "b") == ERROR
    assert "in the folder of the project" in capsys.readouterr().err


def test_a_process_that_dies_is_told(own, project, monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", str(project))
    (project / "gfscore").mkdir()
    assert audit(own / "net.onnx", own / "images.npz") == ERROR
    assert "the process that looked at it ended by itself" in capsys.readouterr().err


def test_a_request_survives_its_text():
    request = Request(("a", "b"), None, eps=("8/255",), labels="x,y", minutes=2.5)
    assert Request.from_json(request.to_json()) == request


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["MODLE=net.onnx", "DATA=images"], "no such option: MODLE; there are .* MODEL "),
        (["MODEL=net.onnx", "DATA=images", "EPSILON=2/255"], "no such option: EPSILON; "),
        (["DATA=images"], "DATA without MODEL; "),
        (["MODEL=", "DATA="], "DATA without MODEL; "),
    ],
)
def test_a_misspelt_option_of_make_is_refused_where_it_would_be_left_out(options, message):
    planned = subprocess.run(
        ["make", "--dry-run", "audit", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert planned.returncode
    assert re.search(message, planned.stderr)


@pytest.mark.parametrize("level", ["0", "1"])
def test_make_takes_every_option_of_its_own_and_variables_of_a_make_around_it(level):
    options = ["CONFIG=mine.yaml", "RUN=mine", "VENV=env", "MODEL=net.onnx", "DATA=images", "EPS=2/255"]
    environment = os.environ | {"MAKELEVEL": level, "DATA": "of the shell"}
    if level == "1":
        options.append("VERSION=1.2")
    command = ["make", "--dry-run", "audit", *options]
    assert "gfscore.workflow.command audit" in subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
