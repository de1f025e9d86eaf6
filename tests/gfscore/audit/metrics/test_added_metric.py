"""A new metric is one new file: everything that shows metrics shows it."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import gfscore.audit.metrics
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.workflow.sources import sources_of

pytestmark = pytest.mark.seconds(15)

ROOT = Path(__file__).resolve().parents[4]
METRICS_FOLDER = Path(gfscore.audit.metrics.__file__).parent.relative_to(ROOT / "workflow_scripts")
EXAMPLE = ROOT / "docs/examples/theil.py"
UNBOUNDED = EXAMPLE.read_text(encoding="utf-8").replace("    over_box=over_box,\n", "")
"""The same without an interval."""


LOOKING = {"score_models", "tabulate_audit", "judge_audit", "plot_figures", "build_report", "build_index"}
LOOKING |= {"export_audit", "gate", "import_release"}
"""Steps that look through all metrics; import_release verifies a bundle."""


with_bounds = pytest.mark.parametrize("audited", ["with bounds"], indirect=True)


def copied(folder):
    """Copy of the package and of its scripts in a folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(ROOT / "workflow_scripts", folder / "workflow_scripts", ignore=ignored)


def run(scripts, *command):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [scripts, ROOT / "tests", ROOT / "tools"]))}
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=scripts, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["with bounds", "without bounds"])
def audited(tmp_path_factory, request):
    """Folder of an audit by a copy of the package with the Theil index, whether it has bounds, and the scripts."""
    folder = tmp_path_factory.mktemp("added")
    scripts, bounded = copied(folder), request.param == "with bounds"
    text = EXAMPLE.read_text(encoding="utf-8") if bounded else UNBOUNDED
    (scripts / METRICS_FOLDER / "theil.py").write_text(text, encoding="utf-8")
    run(scripts, str(ROOT / "tests/helpers/added_metric.py"), str(folder))
    return folder, bounded, scripts


def test_its_columns_stand_together_and_move_no_others(audited):
    folder, bounded, _ = audited
    summary = pd.read_parquet(folder / "model_summary.parquet")
    own = ["theil", *(["theil_low", "theil_high"] if bounded else []), "theil_permuted", "theil_p"]
    others = [name for name in MODEL_SUMMARY.column_names if name.partition("_")[0] != "theil"]
    assert [name for name in summary if name not in own] == others
    # Appended metrics stand behind all other columns, in the order of their names.
    start = summary.columns.get_loc("theil")
    assert list(summary.columns[start : start + len(own)]) == own
    assert start > summary.columns.get_loc("rdi_detectable")
    assert (pd.read_csv(folder / "model_summary.csv").columns == summary.columns).all()
    assert summary[["theil", "theil_permuted", "theil_p"]].notna().all(axis=None)
    if bounded:
        fresh = summary[summary["calibration"] == "none"]
        assert ((fresh["theil_low"] <= fresh["theil"]) & (fresh["theil"] <= fresh["theil_high"])).all()


def test_its_title_stands_where_those_of_the_others_do(audited):
    folder, _, _ = audited
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "Theil index</th>" in report and "<dt>Theil index</dt>" in report
    assert "| Theil index of the classes |" in (folder / "card.md").read_text(encoding="utf-8")


def test_the_page_has_it_at_every_temperature(audited):
    folder, bounded, _ = audited
    page = (folder / "report.html").read_text(encoding="utf-8")
    packed = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    own = data["ranking"]["great-softmax"]["metrics"]["theil"]
    assert ("low" in own) == bounded and None not in own["value"]
    assert data["temperatures"]["metrics"]["theil"]["shape"] == data["temperatures"]["metrics"]["rdi"]["shape"]


def test_the_gate_judges_it_where_it_has_bounds(audited):
    folder, bounded, _ = audited
    gate = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    judged = {rule["statistic"]: rule for rule in verdict["rules"]}
    assert ("theil" in gate["statistics"]) == ("theil" in judged) == bounded
    assert ("theil" in gate["refused"]) != bounded
    if bounded:
        assert judged["theil"]["title"] == "Theil index" and judged["theil"]["direction"] == "at_most"


def test_its_columns_are_explained(audited):
    folder, bounded, _ = audited
    rows = (folder / "tables.md").read_text(encoding="utf-8").splitlines()
    assert "| `theil` | float64 | Theil index of the classes |" in rows
    assert ("| `theil_low` | float64 | Theil index of the classes, lower bound |" in rows) == bounded


@with_bounds
def test_it_does_what_every_metric_must_do(audited):
    _, _, scripts = audited
    path = [f"pythonpath={scripts} {ROOT / 'tests'}", "addopts=--import-mode=importlib"]
    options = [*(option for value in path for option in ("-o", value)), "-p", "no:cacheprovider", "-q", "-k", "theil"]
    contract = str(ROOT / "tests/gfscore/audit/metrics/test_contract.py")
    assert " passed" in run(scripts, "-m", "pytest", contract, "--rootdir", str(ROOT), *options)


@with_bounds
def test_it_is_code_of_the_steps_that_look_through_the_metrics_and_of_no_other(audited):
    _, _, scripts = audited
    own, every = (scripts / METRICS_FOLDER / f"{name}.py" for name in ("theil", "nrgc"))
    using = {path.stem for path in scripts.glob("*.py") if own in sources_of(path)}
    assert using == {path.stem for path in scripts.glob("*.py") if every in sources_of(path)} == LOOKING


def test_a_file_without_its_metric_is_named(tmp_path):
    scripts = copied(tmp_path)
    (scripts / METRICS_FOLDER / "theil.py").write_text("METRICS = None\n")
    environment = os.environ | {"PYTHONPATH": str(scripts)}
    command = [sys.executable, "-c", f"import {gfscore.audit.metrics.__name__}"]
    done = subprocess.run(command, env=environment, cwd=scripts, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "theil.py: holds no metric" in done.stderr
