"""A verdict as a JUnit XML report, which pipelines show beside their tests."""

from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from gfscore.audit.verdicts.gate_rules import FAIL, INCONCLUSIVE
from gfscore.audit.verdicts.verdict import WORST_CLASS, Verdict
from gfscore.core import numbers
from gfscore.core.files import write_text
from gfscore.core.labels import readable_class
from gfscore.core.names import printable


def write_junit(audit: str, verdict: Verdict, path: Path | str) -> None:
    """Write the verdict on an audit as JUnit XML, atomically.

    Parameters
    ----------
    audit : str
        Name of the audit, and of the test suite.
    verdict : Verdict
        Each rule is a test case of each model that it judges: FAIL is a failure; INCONCLUSIVE a failure where it stops
        a pipeline, else a skipped test. A model that the configuration left out is a skipped test.
    path : Path or str
        File to write or to replace.
    """
    suite = TestSuite(printable(audit))
    suite.timestamp = verdict.time
    suite.add_property("data", printable(verdict.dataset.name))
    suite.add_property("data sha256", verdict.dataset.digest)
    for rule in verdict.rules:
        limit = f"{rule.direction.replace('_', ' ')} {numbers.setting(rule.threshold)}"
        title = printable(rule.title)
        question = f"{title} of {printable(rule.measure)} {limit}"
        for model in rule.models:
            highest = rule.range[1]
            value = numbers.span(model.value, model.value_most, highest)
            outcome = f"{title} {value}, bounds {numbers.interval(model.low, model.high, highest)}"
            if rule.statistic == WORST_CLASS and model.worst_class:
                outcome += f" (class {printable(readable_class(model.worst_class))})"
            if model.verdict == INCONCLUSIVE:
                outcome += f"; {model.reason_undecided}"
            message = f"{model.verdict}: {outcome}. Rule: {printable(rule.words)}."

            name = printable(model.label)
            case = TestCase(f"{name}: {question}", classname=name)
            if model.verdict == FAIL:
                case.result = [Failure(message, FAIL)]
            elif model.verdict == INCONCLUSIVE:
                undecided = Failure if rule.on_inconclusive == "stop" else Skipped
                case.result = [undecided(message, INCONCLUSIVE)]
            else:
                case.system_out = message
            suite.add_testcase(case)
    for remark in verdict.excluded:
        suite.add_testcase(_case_without_verdict(remark.model, Skipped(printable(remark.reason), "excluded")))
    _write(suite, path)


def write_junit_error(audit: str, error: str, path: Path | str) -> None:
    """Write a JUnit XML report of an audit on which there is no verdict, because of an error in words."""
    suite = TestSuite(printable(audit))
    suite.add_testcase(_case_without_verdict(audit, Error(printable(error), "error")))
    _write(suite, path)


def _write(suite: TestSuite, path: Path | str) -> None:
    report = JUnitXml(suite.name)
    report.add_testsuite(suite)
    report.update_statistics()
    write_text(path, report.tostring().decode("utf-8"))


def _case_without_verdict(name: str, result: Error | Skipped) -> TestCase:
    case = TestCase(f"{printable(name)}: a verdict", classname=printable(name))
    case.result = [result]
    return case
