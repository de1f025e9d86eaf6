"""The gate's remedy for an audit that is not current any more."""

import json

import pytest

from gfscore.workflow.gate import judge_anew
from gfscore.workflow.resolved_file import FILES


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["config.yaml"], "run make audit,"),
        (["audits/mine.yaml"], "run make audit CONFIG=audits/mine.yaml,"),
        (["audits/my net.yaml"], "run make audit CONFIG='audits/my net.yaml',"),
        (["config.yaml", "one.yaml"], "run snakemake with --configfile config.yaml one.yaml,"),
    ],
)
def test_the_command_runs_the_configuration_of_the_audit(tmp_path, monkeypatch, files, command):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/audits/mine"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"{FILES}{json.dumps(files)}\n")
    assert judge_anew("mine").startswith(command)
