"""Names and contents that nobody chooses on purpose: what is written of them, and what is said."""

import os
import subprocess

import numpy as np
import pytest
import yaml

from gfscore.core.names import shell_word
from gfscore.workflow.command import ERROR, main
from gfscore.workflow.new_audit import command

BREAKS = {"line feed": "\n", "carriage return": "\r", "NEL": "\x85", "U+2028": "\u2028", "U+2029": "\u2029"}
FORGED = "measures: []"
"""A section that a line break in a comment would begin."""


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """The process that looks at files finds the package."""
    from pathlib import Path

    import gfscore

    monkeypatch.setenv("PYTHONPATH", str(Path(gfscore.__file__).parents[1]))


@pytest.fixture
def logits():
    labels = np.arange(200) % 4
    return 3.0 * np.eye(4)[labels] + np.random.default_rng(0).normal(size=(200, 4)), labels


def audit(*arguments):
    return main(["audit", *map(str, arguments), "--dry-run"])


def refusal(capsys, *arguments):
    """What stands on the error stream of a command that is refused and writes nothing: one line."""
    assert audit(*arguments) == ERROR
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and "Traceback" not in said
    return said


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("sign", BREAKS.values(), ids=BREAKS)
def test_a_line_break_in_a_name_begins_no_line_of_the_file(project, logits, sign, capsys, monkeypatch):
    values, labels = logits
    name = f"a{sign}{FORGED}{sign}#.npz"
    np.savez(project / name, logits=values, labels=labels)
    assert audit(name, "--name", "odd") == 0
    text = (project / "audits/odd.yaml").read_text(encoding="utf-8")
    assert all(line.isprintable() for line in text.split("\n"))
    written = yaml.safe_load(text)
    assert "measures" not in written and list(written) == ["datasets", "models", "audits"]
    (model,) = written["models"]["odd"]["none"].values()
    assert model["path"] == name == written["datasets"]["odd"]["path"]
    # The same command again runs what stands.
    monkeypatch.setattr(command, "inspected", lambda request: pytest.fail("looked at the files again"))
    assert audit(name, "--name", "odd") == 0


@pytest.mark.usefixtures("in_this_process")
def test_names_that_yaml_reads_as_numbers_or_truth_are_names(project, logits):
    values, labels = logits
    for name in ("1", "no", "1e5", "null"):
        np.savez(project / f"{name}.npz", logits=values, labels=labels)
        assert audit(f"{name}.npz") == 0
        written = yaml.safe_load((project / f"audits/{name}.yaml").read_text())
        assert list(written["audits"]) == [name] == list(written["models"][name]["none"])


@pytest.mark.parametrize("word", ["plain", "two words", "it's", "", "a\nb", "$'x'\r", "é\u2028\\n'", "\x85", "a\x07b"])
def test_a_command_on_one_line_is_read_back_by_bash(word):
    written = shell_word(word)
    assert written.isprintable()
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", f"printf %s {written}"], capture_output=True, check=True, env=environment)
    assert done.stdout.decode() == word


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("what", ["model", "data", "class folder"])
def test_a_name_that_is_no_utf_8_is_refused_by_name(project, own, what, capsys):
    odd = os.fsdecode(b"caf\xe9")
    files = [own / "net.onnx", own / "images"]
    if what == "model":
        files[0] = project / f"{odd}.onnx"
        files[0].write_bytes((own / "net.onnx").read_bytes())
    else:
        files[1] = project / (odd if what == "data" else "images")
        for folder in (own / "images").iterdir():
            (files[1] / folder.name).parent.mkdir(exist_ok=True)
            (files[1] / folder.name).symlink_to(folder)
        if what == "class folder":
            (files[1] / odd).symlink_to(own / "images/cat")
    said = refusal(capsys, *files)
    assert "caf" in said and "UTF-8" in said and "rename" in said
    assert not (project / "audits").exists()


OBJECTS = np.array([{"no": "number"}] * 200, dtype=object)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("array", ["logits", "labels", "x", "y"])
def test_an_array_of_objects_is_refused_by_file_and_array(project, own, logits, array, capsys):
    values, labels = logits
    if array in ("logits", "labels"):
        stored, files = {"logits": values, "labels": labels}, ["odd.npz"]
    else:
        stored, files = {"x": np.zeros((200, 3, 32, 32), np.uint8), "y": labels}, [own / "net.onnx", "odd.npz"]
    np.savez(project / "odd.npz", **(stored | {array: OBJECTS}))
    said = refusal(capsys, *files)
    assert "odd.npz" in said and f"array {array} " in said and "astype" in said


@pytest.mark.usefixtures("in_this_process")
def test_labels_of_objects_without_images_are_refused(project, logits, capsys):
    np.savez(project / "net.npz", logits=logits[0])
    np.save(project / "labels.npy", OBJECTS)
    said = refusal(capsys, "net.npz", "labels.npy")
    assert "labels.npy" in said and "astype" in said


@pytest.mark.parametrize(
    "raised", ["RuntimeError('of this file')", "SystemExit('of this file')", "KeyError('of this file')"]
)
def test_an_exception_of_a_users_code_is_told_in_one_line_with_the_file(project, own, raised, capsys):
    (project / "mine.py").write_text(f"def small():\n    raise {raised}\n")
    said = refusal(capsys, own / "weights.pth", own / "images.npz", "--architecture", "mine.py:small")
    assert ("weights.pth" in said or "mine:small" in said) and "of this file" in said
    assert not (project / "audits").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_function_that_its_file_does_not_define_is_refused_by_both_names(project, own, capsys):
    (project / "mine.py").write_text("def small():\n    pass\n")
    said = refusal(capsys, own / "weights.pth", own / "images.npz", "--architecture", "mine.py:large")
    assert "mine.py" in said and "large" in said
    assert not (project / "audits").exists() and not list((project / "architectures").glob("mine.py"))


@pytest.mark.usefixtures("in_this_process")
def test_a_network_whose_answers_depend_on_the_batch_is_refused_at_the_look(project, own, capsys):
    module = (own / "my_networks.py").read_text() + (
        "\n\nclass Centred(nn.Sequential):\n"
        "    def forward(self, images):\n"
        "        logits = super().forward(images)\n"
        "        return logits - logits.mean(dim=0)\n"
        "\n\ndef centred():\n"
        "    return Centred(*marabou())\n"
    )
    (project / "centred.py").write_text(module)
    files = [own / "weights.pth", own / "images.npz"]
    said = refusal(capsys, *files, "--architecture", "centred.py:centred", "--preprocessing", "none")
    assert "weights.pth" in said and "batch" in said
    assert not (project / "audits").exists()


def test_an_exception_that_nobody_foresaw_names_the_files(project, logits, capsys):
    """A folder in the place of a file, as archives are unpacked by some systems."""
    (project / "net.npz").mkdir()
    (project / "net.npz/config.json").write_text("[" * 100_000)
    assert "net.npz" in refusal(capsys, "net.npz")
