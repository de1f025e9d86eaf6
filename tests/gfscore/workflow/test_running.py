"""Snakemake as the commands run it."""

import subprocess
import sys

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow import running


@pytest.mark.parametrize("option", [["--configfile", "good.yaml", "bad.yaml"], ["--configfiles=bad.yaml"]])
def test_a_file_that_is_no_yaml_is_named_with_its_line_before_snakemake_starts(option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *given, **how: pytest.fail("Snakemake was started"))
    (tmp_path / "good.yaml").write_text("run: [digits]\n")
    (tmp_path / "bad.yaml").write_text("run: [digits]\naudits: {\n")
    options = [*option, "--config", "run=[digits]", "--", "gate"]
    with pytest.raises(InputError, match=r"bad.yaml, line 3: not YAML"):
        running.run_workflow(options)
    assert running.main(options) == running.FAILED
    assert capsys.readouterr().err.startswith("error: bad.yaml, line 3: not YAML")


def test_snakemake_gets_the_options_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text("run: [digits]\n")
    commands = []
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(subprocess, "run", lambda command, **how: commands.append(command) or done)
    assert running.main(["--configfile", "good.yaml", "--dry-run"]) == 0
    assert commands[0][:3] == [sys.executable, "-m", "snakemake"]
    assert commands[0][-3:] == ["--configfile", "good.yaml", "--dry-run"]
