"""gfscore adjust up to the file of its audit, and what it refuses."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from gfscore.audit.verdicts import verdict as verdicts
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.workflow.adjusting.command import RemediedModel, targets_of
from gfscore.workflow.command import ERROR, main
from gfscore.workflow.new_audit import command as new_audit

pytestmark = pytest.mark.seconds(15)


def adjust(*arguments):
    return main(["adjust", *map(str, arguments), "--dry-run"])


def remedy_in(project, name="net"):
    return yaml.safe_load((project / f"audits/{name}.yaml").read_text())["audits"][name]["remedy"]


@pytest.mark.usefixtures("in_this_process")
def test_the_audit_of_the_same_files_gets_a_remedy_and_keeps_what_was_edited(own, project):
    files = (own / "net.onnx", own / "images.npz")
    assert main(["audit", *map(str, files), "--dry-run"]) == 0
    path = project / "audits/net.yaml"
    path.write_text(path.read_text().replace("at_least: 0.3", "at_least: 0.2"))
    assert adjust(*files) == 0
    assert remedy_in(project) == {"objective": "worst_class", "most_loss": 0.03}
    assert "at_least: 0.2" in path.read_text()
    assert adjust(*files, "--objective", "floor", "--floor", "0.25", "--strength", "0.6") == 0
    assert remedy_in(project) == {"objective": "floor", "floor": 0.25, "strengths": [0.25, 0.5, 0.6, 0.75, 1]}
    assert "at_least: 0.2" in path.read_text()


@pytest.mark.usefixtures("in_this_process")
def test_an_audit_that_fails_names_the_command_until_it_has_a_remedy(own, project, capsys, monkeypatch):
    files = (str(own / "net.onnx"), str(own / "images.npz"))
    monkeypatch.setattr(new_audit, "run_workflow", lambda *_, **__: 0)
    for verdict, named in (("PASS", 0), ("FAIL", 1)):
        monkeypatch.setattr(verdicts, "read_verdict", lambda _, verdict=verdict: SimpleNamespace(verdict=verdict))
        assert main(["audit", *files]) == 0
        assert capsys.readouterr().out.count(f"gfscore adjust {files[0]} {files[1]}") == named
    assert adjust(*files) == 0
    capsys.readouterr()
    assert main(["audit", *files]) == 0
    assert "gfscore adjust" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--objective", "floor"], "--objective floor and --floor belong together"),
        (["--floor", "0.3"], "--objective floor and --floor belong together"),
        (["--objective", "floor", "--floor", "1.5"], "--floor 1.5"),
        (["--strength", "0"], "--strength 0"),
        (["--strength", "2"], "--strength 2"),
        (["--most-loss", "0"], "--most-loss 0"),
    ],
)
def test_options_that_do_not_fit_are_refused_at_once(project, capsys, arguments, message):
    assert adjust("net.onnx", "images.npz", *arguments) == ERROR
    assert message in capsys.readouterr().err
    assert not (project / "audits").exists()


@pytest.mark.usefixtures("in_this_process")
def test_places_that_do_not_fit_are_refused_before_anything_runs(own, project, capsys):
    files = (own / "net.onnx", own / "images.npz")
    assert adjust(*files, "--to", "new.pth") == ERROR
    assert "--to new.pth: net.onnx is written as a file that ends in .onnx" in capsys.readouterr().err
    (project / "new.onnx").write_text("mine")
    assert adjust(*files, "--to", "new.onnx") == ERROR
    assert "new.onnx: stands already; add --force" in capsys.readouterr().err
    assert adjust(*files, "--to", "new.onnx", "--force") == 0


def test_without_attacks_there_is_nothing_to_choose_offsets_under():
    sections = {"measures": {"near": {"kind": "minimal"}}, "audits": {"net": {"dataset": "net", "measures": ["near"]}}}
    with pytest.raises(InputError, match=r"audits/net\.yaml: has no attack, under which offsets could be chosen"):
        targets_of(sections, "net", None)


def test_each_network_goes_to_a_file_of_its_kind_and_a_folder_to_a_folder(tmp_path):
    hub = tmp_path / "vit"
    hub.mkdir()
    (hub / "config.json").touch()
    sections = {
        "measures": {"mine": {"kind": "adversarial"}},
        "models": {"data": {"Linf": {"a": {"path": "a.onnx"}, "vit": {"path": f"{hub}/model.safetensors"}}}},
        "audits": {"data": {"dataset": "data", "measures": ["mine"]}},
    }
    folder = Path("results/adjusted/data")
    expected = {"Linf/a": folder / "a-adjusted.onnx", "Linf/vit": folder / "vit-adjusted/model.safetensors"}
    assert targets_of(sections, "data", None) == expected
    with pytest.raises(InputError, match=r"--to b\.onnx: names one place for 2 models"):
        targets_of(sections, "data", Path("b.onnx"))


def test_offsets_of_a_network_are_added_to_its_logits(project, capsys):
    logits = np.random.default_rng(0).normal(size=(4, 3))
    np.savez("net.npz", logits=logits, labels=np.arange(4) % 3)
    write_json("chosen.json", {"offsets": [1.0, -0.5, -0.5], "classes": ["cat", "dog", "bird"]})
    command = ("net.npz", "--offsets", "chosen.json", "--strength", "0.5", "--to", "new.npz")
    assert adjust(*command) == 0
    with np.load("new.npz") as arrays:
        np.testing.assert_allclose(arrays["logits"], logits + np.array([0.5, -0.25, -0.25]))
    assert sha256_of_file("new.npz") in capsys.readouterr().out
    assert adjust(*command) == ERROR
    assert "new.npz: stands already" in capsys.readouterr().err
    assert adjust("net.onnx", "images.npz", "--offsets", "chosen.json") == ERROR
    assert "is for files of logits" in capsys.readouterr().err


def test_bounds_are_printed_rounded_outwards(capsys):
    changes = {"measure": "attack", "n": 900, "helps": True, "verdict_before": float("nan")}
    for key in ("worst", "mean", "clean", "rdi"):
        changes |= {f"{key}_before": 0.1, f"{key}_after": 0.2, f"{key}_low": 0.01999, f"{key}_high": 0.18001}
    classes = pd.DataFrame(columns=["class_name", "change", "low", "high"])
    point = {"worst": 0.2, "worst_low": 0.01999, "worst_high": 0.18001, "mean": 0.2, "mean_low": 0.0, "mean_high": 1.0}
    curve = pd.DataFrame([point | {"strength": strength} for strength in (0.0, 0.5, 1.0)])
    for strength, said in ((1.0, "surely by 0.0199 to 0.181"), (0.5, "worst class 0.200 (0.0199 to 0.181)")):
        RemediedModel("none/M", "", "", strength, pd.Series(changes), classes, curve).print_changes()
        printed = capsys.readouterr().out
        # The gate has no rule about this measure.
        assert said in printed and "verdict" not in printed


@pytest.mark.parametrize(("helps", "words"), [(True, "it gains, surely by 0.1"), (False, "no gain of the worst class")])
def test_a_share_of_the_offsets_says_that_the_gain_is_that_of_the_whole(capsys, helps, words):
    changes = pd.Series({"measure": "attack", "n": 90, "helps": helps, "worst_low": 0.1, "worst_high": 0.5})
    curve = pd.DataFrame({"strength": [0.0, 0.5, 1.0], "worst": [0.3, 0.25, 0.6], "mean": 0.7})
    curve = curve.assign(worst_low=0.1, worst_high=0.9, mean_low=0.6, mean_high=0.8)
    described = {"label": "none/M", "manifest": "", "dataset": "", "changes": changes, "classes": pd.DataFrame()}
    RemediedModel(**described, strength=0.5, curve=curve).print_changes()
    *_, scope, gain = capsys.readouterr().out.splitlines()
    assert scope.endswith("judged of strength 1 alone:") and words in gain
