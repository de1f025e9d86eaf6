"""The gate's remedy for an audit that is not current any more."""

import json
from pathlib import Path

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.bundling.bundles import write_bundle
from gfscore.workflow.gate import current_verdict, judge_anew
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


@pytest.mark.parametrize("audit", ["", "digits/", "results/audits/digits", ".."])
def test_what_is_no_name_of_an_audit_is_refused_as_such(audit):
    with pytest.raises(InputError, match="not the name of an audit"):
        current_verdict(audit)
    with pytest.raises(InputError, match="not the name of an audit"):
        write_bundle(audit, "bundle")


def test_a_bundle_is_named_as_such(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("handed-on").mkdir()
    Path("handed-on/statement.json").write_text("{}")
    with pytest.raises(InputError, match="handed-on: a bundle; gfscore verify checks it"):
        current_verdict("handed-on")
