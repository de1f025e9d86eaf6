"""The command gfscore: what its exit status says."""

import errno
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gfscore import VERSION
from gfscore.core.files import read_json, write_json
from gfscore.workflow import gate
from gfscore.workflow.command import STATES, main
from helpers.finished_audits import finished_audit

SCRIPTS = Path(__file__).parents[3] / "workflow_scripts"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("finished"))
        finished_audit()
        return Path.cwd()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("attacked"))
        finished_audit(attacked=True, page=False)
        return Path.cwd()


@pytest.fixture
def here(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(finished, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("verdict", "stops", "status"),
    [("PASS", False, 0), ("FAIL", True, 1), ("INCONCLUSIVE", True, 2), ("INCONCLUSIVE", False, 0)],
)
@pytest.mark.usefixtures("here")
def test_gate_ends_with_the_verdict(verdict, stops, status):
    path = "results/audits/toy/verdict.json"
    write_json(path, read_json(path) | {"verdict": verdict, "stops": stops})
    assert main(["gate", "toy"]) == status


@pytest.mark.usefixtures("here")
def test_gate_says_that_another_version_judged(capsys):
    path = "results/audits/toy/verdict.json"
    verdict = read_json(path)
    status = main(["gate", "toy"])
    assert capsys.readouterr().err == ""
    write_json(path, verdict | {"software": verdict["software"] | {"version": "0.0.1"}})
    assert main(["gate", "toy"]) == status
    said = capsys.readouterr()
    assert said.err.startswith(f"judged by gfscore 0.0.1, this is {VERSION}")
    assert said.out.startswith("toy: ")


@pytest.mark.usefixtures("here")
def test_gate_is_an_error_where_anything_that_the_verdict_rests_on_is_another(capsys):
    assert main(["gate", "other"]) == 3
    logits = np.load("given/good.npy")
    np.save("given/good.npy", -logits)
    assert main(["gate", "toy"]) == 3
    assert "given/good.npy" in capsys.readouterr().err
    np.save("given/good.npy", logits)
    verdict = read_json("results/audits/toy/verdict.json")
    write_json("results/audits/toy/verdict.json", verdict | {"verdict": "FINE", "stops": True})
    assert main(["gate", "toy"]) == 3, "a failure of the command is no FAIL"
    with Path("results/scores/toy.parquet").open("ab") as file:
        file.write(b"more")
    assert main(["gate", "toy"]) == 3


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (gzip.BadGzipFile("not a gzipped file"), "not a gzipped file"),
        (PermissionError(errno.EACCES, "Permission denied", "results/a.json"), "results/a.json: Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError(), "OSError"),
        (RuntimeError("unforeseen"), "unforeseen"),
    ],
)
def test_a_gate_that_fails_says_why_and_leaves_no_report_of_an_earlier_run(
    tmp_path, monkeypatch, capsys, error, expected
):
    def failing(_audit):
        raise error

    monkeypatch.setattr(gate, "current_verdict", failing)
    report = tmp_path / "gate.xml"
    report.write_text("an earlier one")
    assert main(["gate", "toy", "--junit", str(report)]) == 3
    for text in (capsys.readouterr().err, report.read_text()):
        assert expected in text and "None" not in text
        assert ("disk" in text) == ("No space left" in text)


NETWORKS = {
    "weights": ("given/good.safetensors", lambda path: path.write_bytes(b"evil")),
    "weights that are gone": ("given/bad.safetensors", Path.unlink),
    "images": (
        "images.npz",
        lambda path: np.savez(path, x=np.zeros((45, 1, 2, 2), np.float32), y=np.load("labels.npy")),
    ),
    "images that are gone": ("images.npz", Path.unlink),
    "a rule": ("config.yaml", lambda path: path.write_text(path.read_text().replace("at_least: 0.1", "at_least: 0.7"))),
    "a check": (
        "config.yaml",
        lambda path: path.write_text(path.read_text() + "checks: {published_accuracy: exclude}\n"),
    ),
    "an audit that is asked for no more": ("config.yaml", lambda path: path.write_text("run: []\n")),
    "a manifest": ("results/checkpoints/toy/none/good.json", lambda path: write_json(path, read_json(path) | {"a": 1})),
}


@pytest.mark.parametrize("replaced", NETWORKS)
def test_gate_names_the_file_of_a_network_of_images_or_of_the_rules(attacked, tmp_path, monkeypatch, capsys, replaced):
    name, change = NETWORKS[replaced]
    monkeypatch.chdir(shutil.copytree(attacked, tmp_path / "copy"))
    verdict = read_json("results/audits/toy/verdict.json")
    assert main(["gate", "toy"]) == (STATES[verdict["verdict"]] if verdict["stops"] else 0)
    change(Path(name))
    assert main(["gate", "toy"]) == 3
    assert name in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_gate_says_both_the_rule_of_the_verdict_and_the_one_of_now(capsys):
    path = Path("config.yaml")
    path.write_text(path.read_text().replace("at_least: 0.1", "at_least: 0.7"))
    assert main(["gate", "toy"]) == 3
    said = capsys.readouterr().err
    assert "0.7" in said and "0.1" in said
    path.write_text(
        path.read_text()
        .replace("at_least: 0.7", "at_least: 0.1")
        .replace("toy:\n    dataset", "toy:\n    title: Other\n    dataset")
    )
    assert main(["gate", "toy"]) != 3, "a title changes no verdict"


@pytest.mark.usefixtures("here")
def test_bundle_and_verify(capsys, tmp_path):
    assert main(["bundle", "toy", "--with", "logits"]) == 0
    assert main(["bundle", "toy"]) == 3
    assert main(["bundle", "toy", "--to", "of a person"]) == 0
    assert "verify 'of a person'" in capsys.readouterr().out
    folder = str(shutil.move("results/bundles/toy", tmp_path / "moved"))
    assert main(["verify", folder, "--require", "logits"]) == 0
    assert "not origin" in capsys.readouterr().out
    assert main(["verify", folder, "--require", "images"]) == 1
    assert main(["verify", str(tmp_path / "nowhere")]) == 3
    # An audit of results/ is none.
    capsys.readouterr()
    assert main(["verify", "results/audits/toy"]) == 1
    assert "results/audits/toy: no bundle; name the folder that holds statement.json" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["verify", folder, "--require", "everything"])
    assert stopped.value.code == 3


def test_a_command_that_is_interrupted_says_so_in_a_line_and_gives_no_verdict(monkeypatch, capsys):
    def interrupted(audit):
        raise KeyboardInterrupt

    monkeypatch.setattr(gate, "current_verdict", interrupted)
    assert main(["gate", "toy"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted; ")


def test_help_imports_nothing_heavy():
    code = "import sys; from gfscore.workflow.command import main; main(['--version'])"
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {code}"
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = run.stdout.split()
    assert "gfscore.workflow.command" in loaded
    assert not {"numpy", "pandas", "pyarrow", "torch", "scipy"} & set(loaded)
