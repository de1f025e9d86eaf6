"""An audit logged to MLflow comes back from it as it is."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from gfscore import InputError, log_to_mlflow
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.show.exports.mlflow_runs import IN_ITS_PLACE, NOT_IN_A_NAME
from helpers.finished_audits import BAND, finished_audit
from helpers.validators import of_validator

pytestmark = pytest.mark.seconds(10)


PAGE = Path(__file__).parents[4] / "docs/figures-and-exports.md"


def test_the_documented_call_makes_a_run_of_numbers_tables_and_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit()
    folder = Path("results/audits/toy")
    (lines,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    run = of_validator("mlflow_run.py", lines.replace("audits/digits", "audits/toy"), str(tmp_path / "store"))
    assert (run["name"], run["status"]) == ("toy", "FINISHED")
    summary = pd.read_csv(folder / "model_summary.csv").query("calibration == 'none'")
    for row in summary.itertuples():
        assert run["metrics"][f"none/{row.model}/{row.measure}/value"] == pytest.approx(row.value)
        assert run["metrics"][f"none/{row.model}/{row.measure}/rdi"] == pytest.approx(row.rdi)
    verdict = read_verdict(folder / "verdict.json")
    assert run["tags"]["gfscore.verdict"] == verdict.verdict
    assert run["tags"]["gfscore.data.sha256"] == verdict.dataset.digest
    assert {"report.html", "verdict.json", "class_scores.csv", "class_scores.parquet", "config.yaml"} <= set(
        run["files"]
    )
    assert (Path(run["folder"]) / "report.html").read_bytes() == (folder / "report.html").read_bytes()


def test_what_undecided_samples_leave_open_is_a_metric_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(bands=[([3, 5, 5], [9, 12, 15]), ([0, 0, 0], [15, 15, 15])], page=False)
    lines = "from gfscore.show.exports.mlflow_runs import log_to_mlflow\nrun_id = log_to_mlflow('results/audits/toy')"
    metrics = of_validator("mlflow_run.py", lines, str(tmp_path / "store"))["metrics"]
    assert (metrics[f"none/bad/{BAND}/value"], metrics[f"none/bad/{BAND}/value_most"]) == (0, 1)
    ends = (metrics[f"none/good/{BAND}/wcr"], metrics[f"none/good/{BAND}/wcr_most"])
    assert ends == pytest.approx((3 / 15, 9 / 15))
    assert "none/good/clean/value_most" not in metrics
    # Of both ends of these nothing is known but their intervals.
    assert not [name for name in metrics if BAND in name and not re.search("/(value|wcr)(_most)?$", name)]
    assert "none/good/clean/rdi" in metrics


def test_names_of_two_models_are_two_metrics():
    names = ["none/net+1/clean/value", "none/net_1/clean/value", "none/net-1/clean/value", "none/net.1/clean/value"]
    written = {NOT_IN_A_NAME.sub(IN_ITS_PLACE, name) for name in names}
    # As MLflow validates them.
    assert len(written) == len(names) and all(re.fullmatch(r"[/\w.\- :]*", name) for name in written)


def test_a_folder_without_an_audit_and_a_missing_library_are_said(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no finished audit"):
        log_to_mlflow(tmp_path)
    (tmp_path / "verdict.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match="MLflow is not installed"):
        log_to_mlflow(tmp_path)
