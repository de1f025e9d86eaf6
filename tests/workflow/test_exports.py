"""The report archive and the exports of a finished audit."""

import json
import os
import re
import subprocess
import zipfile

import pytest
import yaml

from gfscore.workflow.audit_check import faults_of_audit
from helpers.validators import faults_of_crate

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(40)]

WITHOUT_NETWORK = ("unshare", "--net")


@pytest.fixture(scope="module")
def offline():
    """Command that runs another where no network is."""
    done = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"unshare --net is not permitted: {done.stderr}")
    return WITHOUT_NETWORK


def test_report_archive_needs_no_network_and_is_built_from_config(audited, offline):
    audited.snakemake("report", "--report", "results/report.zip", within=offline)
    assert (audited.path / "results/report.zip").stat().st_size > 100_000
    with zipfile.ZipFile(audited.path / "results/report.zip") as archive:
        page = archive.read("report/report.html").decode()
        names = [name.rpartition("/")[2] for name in archive.namelist()]
    audit = audited.config()["audits"]["digits"]
    assert audit["title"] in page
    for measure in ("clean", "great-softmax"):
        assert f"class_heatmap_{measure}.png" in names
    assert not re.search(r'(src|href)="https?://', page)


def test_exports_are_made_of_a_finished_audit(audited):
    ran = audited.ran("exports")
    assert set(ran) == {"export_audit"}
    folder = audited.path / "results/audits/digits/exports"
    models = [name.split("/")[-1] for name in audited.config()["audits"]["digits"]["models"]]
    assert {path.stem for path in (folder / "model-cards").iterdir() if path.suffix} == {
        f"none__{name}" for name in models
    }
    card = (folder / "model-cards/none__PGD.md").read_text(encoding="utf-8")
    findings = json.loads(audited.read("results/audits/digits/verdict.json"))["findings"]
    assert findings and card.count("\n- ") >= len(findings)
    assert yaml.safe_load(card.split("---\n")[1])["model-index"][0]["name"] == "PGD"
    assert "\\toprule" in (folder / "latex/great-softmax-models.tex").read_text(encoding="utf-8")
    metadata = (folder / "ro-crate/ro-crate-metadata.json").read_text(encoding="utf-8")
    assert str(audited.path) not in metadata
    assert (folder / "ro-crate/results/audits/digits/class_scores.parquet").is_file()
    assert "#execution-of-judge_audit/digits" in metadata and "#step-train_model" in metadata
    # What the configuration does not state is left out: author, publisher and agent.
    unstated = {"ro-crate-1.1_22.2", "ro-crate-1.1_22.3", "process-run-crate-0.5_8.6"}
    assert {fault["check"] for fault in faults_of_crate(folder / "ro-crate")} == unstated
    assert audited.ran("exports") == {}
    assert faults_of_audit(folder.parent) == []
    with (folder.parent / "report.html").open("a") as page:
        page.write(" ")
    assert {fault.partition(": ")[2] for fault in faults_of_audit(folder.parent)} == {
        "damaged, edited, or of an earlier version: its last line is no checksum"
    }
    done = audited.snakemake("exports", "--forcerun", "export_audit", "--allowed-rules", "export_audit", check=False)
    assert done.returncode == 1
    assert "a crate may hold only files as the workflow wrote them" in done.text
