"""The steps build_report and build_index: what the page holds and where it is from, and no page of an old verdict."""

import pytest

from build_index import build_index
from build_report import build_report
from gfscore import InputError
from gfscore.core.digests import require_checksum
from gfscore.core.software import software
from helpers.synthetic_audits import AUDIT, synthetic_audit

IDENTITY = {"dataset": "toy", "threat": "none", "dataset_digest": "d" * 64, "torch": "2.13.0", "device": "cpu"}


@pytest.fixture
def audit():
    return synthetic_audit(models=2, classes=3, per_class=20, permutations=19, measures=("great-softmax",))


def written(audit, folder, **identity):
    return audit.write(folder, made_from=[{**IDENTITY, **identity, "model": model["model"]} for model in audit.models])


def build(audit, folder, path):
    build_report(folder, path, audit.page_settings(title="An audit"))
    require_checksum(path)
    return path.read_text(encoding="utf-8")


def test_the_page_says_of_what_and_when_the_verdict_is(audit, tmp_path):
    page = build(audit, written(audit, tmp_path, architecture_sha256="a" * 64), tmp_path / "report.html")
    known = ("An audit", "a" * 64, "c" * 64, "d" * 64, "model_1", "2.13.0", "1 January 2026, 12:00 UTC")
    assert [text for text in (*known, software()["version"], software()["commit"] or "") if text not in page] == []
    assert str(tmp_path) not in page


def test_the_index_says_of_what_and_when_each_verdict_is(audit, tmp_path):
    build_index([written(audit, tmp_path).verdict_file], tmp_path / "index.html", titles={AUDIT: "An audit"})
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    known = ("An audit", "1 January 2026, 12:00 UTC", "d" * 12, software()["version"], f"audits/{AUDIT}/report.html")
    assert [text for text in known if text not in page] == []


def test_no_page_shows_a_verdict_on_other_files(audit, tmp_path):
    folder = written(audit, tmp_path)
    folder.table_file("class_scores").write_bytes(b"other")
    with pytest.raises(InputError, match="class_scores"):
        build(audit, folder, tmp_path / "report.html")
    with pytest.raises(InputError, match="class_scores"):
        build_index([folder.verdict_file], tmp_path / "index.html", titles={AUDIT: "An audit"})


def test_an_audit_without_temperature_search_has_no_temperature(tmp_path):
    audit = synthetic_audit(models=2, classes=3, per_class=20, permutations=19, measures=("clean",))
    page = build(audit, written(audit, tmp_path), tmp_path / "report.html")
    assert "digest of the model set" not in page
    assert 'id="temperature"' not in page


def test_missing_and_repeated_samples_stand_above_the_picture(audit, tmp_path):
    said = {"missing": "only 50 of 60 samples have a value", "repeated": "90 rows of the dataset are 60 images"}
    rule = audit.verdict.rules[0].model_copy(update=said)
    audit.verdict = audit.verdict.model_copy(update={"rules": [rule]})
    page = build(audit, written(audit, tmp_path), tmp_path / "report.html")
    top = page[: page.index('id="evidence"')]
    assert all(words[1:] in top for words in said.values())


def test_without_a_rule_too(audit, tmp_path):
    audit.verdict = audit.verdict.model_copy(update={"rules": []})
    audit.class_scores = audit.class_scores.assign(n=20, n_missing=5, n_rows=30)
    page = build(audit, written(audit, tmp_path), tmp_path / "report.html")
    assert "45 of 60 samples in 90 rows" in page[: page.index('id="evidence"')]
