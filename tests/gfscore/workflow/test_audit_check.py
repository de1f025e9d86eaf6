"""The check of a finished audit finds every kind of edit, by name."""

import json
import shutil

import pytest
from pyarrow.parquet import ParquetFile

from gfscore import InputError
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.core.digests import write_checksummed, write_digests
from gfscore.core.files import write_json
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.workflow.audit_check import faults_of_audit, require_unchanged_audit
from gfscore.workflow.catalogue import CATALOGUE
from helpers.synthetic_audits import AUDIT, synthetic_audit


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished audit, with pages and figures that look like none: what is in them is not what is checked."""
    folder, audit = tmp_path_factory.mktemp("finished"), synthetic_audit(models=2, per_class=20)
    audit.write(folder)
    row = audit.of("model_summary").iloc[0]
    judged = {"threat": row["threat"], "model": row["model"], "value": float(row["wcr"])}
    rule = {"measure": row["measure"], "statistic": "wcr", "models": [judged]}
    write_json(folder / "verdict.json", {"rules": [rule]})
    write_json(folder / "models.json", {"included": [], "excluded": [], "guessing": []})
    made_from = [folder / "verdict.json", str(folder / "class_scores.parquet"), folder / "figures", ["one"], __file__]
    write_checksummed(folder / "report.html", "<p>report: FAIL</p>", files=made_from)
    write_checksummed(folder / "config.yaml", "run: [audit] # config.yaml")
    (folder / "figures").mkdir()
    for kind in ("svg", "pdf", "png"):
        (folder / f"figures/heatmap.{kind}").write_text(kind)
    write_digests(folder / "figures")
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "audit")


def replaced(path, old, new):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def flipped_bit(folder):
    path = folder / "class_scores.parquet"
    column = ParquetFile(path).metadata.row_group(0).column(9)
    content = bytearray(path.read_bytes())
    # Among values of a column: flips in the headers between them need not change any.
    content[column.data_page_offset + 400] ^= 1
    path.write_bytes(content)


def with_other_value(folder):
    # As a data frame library would, by which the file gets checksums that are right.
    path = folder / "model_summary.parquet"
    frame = read_table(path, MODEL_SUMMARY)
    frame["wcr"] += 0.1
    write_table(path, MODEL_SUMMARY, frame, identity={"audit": AUDIT})


def of_another_audit(folder):
    path, table = folder / "vulnerability.parquet", CATALOGUE["vulnerability"]
    write_table(path, table, read_table(path, table), identity={"audit": "other"})


def test_a_finished_audit_has_no_fault(folder):
    assert faults_of_audit(folder) == []


EDITS = {
    "a CSV": (lambda f: replaced(f / "class_scores.csv", b"0.", b"1."), "class_scores.csv: edited or damaged: differs"),
    "a CSV cut off": (lambda f: replaced(f / "class_scores.csv", b"\n", b""), "class_scores.csv: edited or damaged"),
    "a CSV taken away": (lambda f: (f / "vulnerability.csv").unlink(), "vulnerability.csv: missing"),
    "a CSV added": (lambda f: (f / "more.csv").touch(), "more.csv: has no Parquet file beside it"),
    "a table": (flipped_bit, "class_scores.parquet: damaged"),
    "a table taken away": (lambda f: (f / "class_scores.parquet").unlink(), "class_scores.parquet: missing"),
    "a table written anew": (with_other_value, "model_summary.csv: edited or damaged: differs"),
    "a table against the verdict": (with_other_value, "verdict.json and model_summary.parquet are from different runs"),
    "a table of another audit": (of_another_audit, "vulnerability.parquet: of the audit 'other'"),
    "the verdict": (lambda f: replaced(f / "verdict.json", b"wcr", b"rdi"), "verdict.json: damaged, or edited by hand"),
    "the report": (lambda f: replaced(f / "report.html", b"FAIL", b"PASS"), "report.html: damaged, or edited by hand"),
    "a page without its last line": (
        lambda f: (f / "report.html").write_text("<p>PASS"),
        "its last line is no checksum",
    ),
    "a page taken away": (lambda f: (f / "report.html").unlink(), "report.html: missing"),
    "a figure": (
        lambda f: replaced(f / "figures/heatmap.png", b"png", b"gif"),
        "figures/heatmap.png: edited or damaged",
    ),
    "a figure taken away": (lambda f: (f / "figures/heatmap.pdf").unlink(), "figures/heatmap.pdf: missing"),
    "a figure added": (lambda f: (f / "figures/other.png").touch(), "figures/other.png: added"),
    "digests of figures": (
        lambda f: replaced(f / "figures/checksums.json", b"heatmap.png", b"heatmap.gif"),
        "figures/checksums.json: damaged, or edited by hand",
    ),
    "no digests of figures": (lambda f: (f / "figures/checksums.json").unlink(), "figures/checksums.json: missing"),
}


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_is_found(folder, kind):
    edit, fault = EDITS[kind]
    edit(folder)
    faults = faults_of_audit(folder)
    assert any(fault in found for found in faults), faults


def test_a_page_beside_a_newer_verdict_is_found(folder):
    verdict = folder / "verdict.json"
    write_json(verdict, json.loads(verdict.read_text()) | {"rule": "another"})
    fault = "report.html: made from another version of verdict.json than lies beside it"
    assert faults_of_audit(folder) == [f"{folder}/{fault}"]


def test_a_page_names_the_files_beside_it_alone(folder):
    lines = (folder / "report.html").read_text().splitlines()
    assert [line.split()[3] for line in lines[1:-1]] == ["class_scores.parquet,", "verdict.json,"]


def test_what_the_workflow_did_not_write_is_not_vouched_for(folder):
    require_unchanged_audit(folder)
    flipped_bit(folder)
    with pytest.raises(
        InputError, match=r"a crate may hold only files as the workflow wrote them; move .*your own files"
    ):
        require_unchanged_audit(folder)


def test_a_folder_that_is_no_audit_is_refused(tmp_path):
    with pytest.raises(InputError, match="nowhere: no such folder"):
        faults_of_audit(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no audit: neither a verdict nor tables"):
        faults_of_audit(tmp_path)
