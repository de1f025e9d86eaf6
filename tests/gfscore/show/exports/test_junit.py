"""A verdict as JUnit XML, read by an independent parser."""

from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml, Skipped

from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.show.exports.junit import write_junit, write_junit_error
from helpers.finished_audits import finished_audit

MODEL = {
    "threat": "Linf", "value": 0.2, "low": 0.1, "high": 0.28, "worst_class": "cat & <dog>", "samples": None,
    "classes_without_samples": [], "samples_needed_per_class": None, "further_samples_needed": None,
    "value_most": 0.4, "open_samples": None,
}  # fmt: skip

RULE = {
    "measure": "adversarial-linf", "statistic": "wcr", "class": None, "attribute": None, "direction": "at_least",
    "threshold": 0.3, "confidence": 0.95, "looks": {"planned": 1, "this": 1}, "alpha": 0.05,
    "interval": "clopper_pearson", "range": (0, 1), "title": "worst-class mean", "words": "every class", "verdict": "FAIL",
    "without_samples": None, "missing": None, "repeated": None,
}  # fmt: skip

VERDICT = {
    "verdict": "FAIL", "sentence": "", "stops": True, "note": "", "warned": [], "guessing": [], "software": {},
    "time": "2026-01-02T03:04:05+00:00", "dataset": {"name": "digits", "digest": "ab" * 32, "rows": 898}, "models": {},
    "made_from": {},
}  # fmt: skip


def report_of(tmp_path, words, *, on_inconclusive="stop", excluded=()):
    models = [{**MODEL, "model": f"net{number}", "verdict": word} for number, word in enumerate(words)]
    rule = {**RULE, "on_inconclusive": on_inconclusive, "models": models}
    verdict = Verdict.model_validate({**VERDICT, "rules": [rule], "excluded": list(excluded)})
    write_junit("digits", verdict, tmp_path / "gate.xml")
    return JUnitXml.fromfile(str(tmp_path / "gate.xml"))


@pytest.mark.parametrize(("on_inconclusive", "undecided"), [("stop", Failure), ("pass", Skipped)])
def test_each_rule_is_a_test_of_each_model(tmp_path, on_inconclusive, undecided):
    report = report_of(tmp_path, ["PASS", "FAIL", "INCONCLUSIVE"], on_inconclusive=on_inconclusive)
    [suite] = report
    passed, failed, open_case = suite
    assert (suite.name, suite.tests, suite.timestamp) == ("digits", 3, "2026-01-02T03:04:05+00:00")
    assert passed.is_passed
    assert isinstance(failed.result[0], Failure)
    assert isinstance(open_case.result[0], undecided)
    assert report.failures == 1 + (undecided is Failure)
    assert report.skipped == (undecided is Skipped)
    # what was measured, its interval and its class stand in the message, whatever characters they have
    for text in ("worst-class mean 0.200 to 0.400, bounds 0.100 to 0.280", "(class cat & <dog>)"):
        assert text in failed.result[0].message
    assert failed.classname == "Linf/net1"


def test_a_class_of_imagenet_is_called_by_its_name(tmp_path):
    model = {**MODEL, "model": "net", "verdict": "PASS", "worst_class": "n04525038"}
    rule = {**RULE, "on_inconclusive": "stop", "models": [model]}
    write_junit("digits", Verdict.model_validate({**VERDICT, "rules": [rule], "excluded": []}), tmp_path / "gate.xml")
    [suite] = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert "(class velvet (n04525038))" in next(iter(suite)).system_out


def test_a_report_on_one_class_is_read_whatever_the_class_is_called(tmp_path):
    rule = {
        **RULE,
        "on_inconclusive": "stop",
        "title": "mean of ca\x1bt",
        "models": [{**MODEL, "model": "net", "verdict": "FAIL"}],
    }
    write_junit("digits", Verdict.model_validate({**VERDICT, "rules": [rule], "excluded": []}), tmp_path / "gate.xml")
    [suite] = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert "mean of ca\ufffdt" in next(iter(suite)).name


def test_no_bound_is_above_the_range_of_the_statistic(tmp_path):
    end = 1.2533141373155001
    model = {**MODEL, "model": "net", "verdict": "PASS", "value": 1.0, "value_most": 1.0, "high": end}
    rule = {**RULE, "on_inconclusive": "stop", "range": (0, end), "models": [model]}
    write_junit("digits", Verdict.model_validate({**VERDICT, "rules": [rule], "excluded": []}), tmp_path / "gate.xml")
    [suite] = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert "1.00, bounds 0.100 to 1.2533" in next(iter(suite)).system_out


def test_an_undecided_model_says_what_leaves_it_so(tmp_path):
    held = {"count": 17, "if_lowest": "FAIL", "if_highest": "PASS", "cause": True}
    rule = {**RULE, "on_inconclusive": "stop"}
    rule["models"] = [{**MODEL, "model": "net", "verdict": "INCONCLUSIVE", "open_samples": held}]
    write_junit("digits", Verdict.model_validate({**VERDICT, "rules": [rule], "excluded": []}), tmp_path / "gate.xml")
    [suite] = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert "17 open samples" in next(iter(suite)).result[0].message


def test_a_model_that_was_excluded_is_skipped_as_the_gate_passes_without_it(tmp_path):
    report = report_of(tmp_path, ["PASS"], excluded=[{"model": "Linf/other", "reason": "accuracy \x1b differs"}])
    assert (report.errors, report.failures, report.skipped) == (0, 0, 1)
    [skipped] = [case for case in next(iter(report)) if case.is_skipped]
    assert skipped.classname == "Linf/other" and "accuracy" in skipped.result[0].message


def test_no_verdict_is_an_error_not_an_old_report(tmp_path):
    report_of(tmp_path, ["PASS"])
    write_junit_error("digits", "logits.npz: not the file that digits was judged on", tmp_path / "gate.xml")
    report = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert (report.tests, report.errors) == (1, 1)
    assert "logits.npz" in next(iter(next(iter(report)))).result[0].message


def test_only_a_rule_on_the_worst_class_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(page=False)
    write_junit("toy", read_verdict("results/audits/toy/verdict.json"), "junit.xml")
    for case in Path("junit.xml").read_text(encoding="utf-8").split("<testcase ")[1:]:
        assert ("(class " in case) == ("of great-softmax at least" in case)
