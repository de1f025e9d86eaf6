"""Attributes and groups in config.yaml: what is refused, and with which words."""

import pytest

from gfscore.workflow.configuration import require_valid
from shipped_configuration import SCHEMA, refusal


def attributes(config):
    return config["datasets"]["digits"]["attributes"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"source": "digit"}, "datasets: digits: attributes: source 'digit' is unknown; did you mean 'digits'?"),
        ({"fixed_on": "digits-trian"}, "fixed_on: dataset 'digits-trian' is unknown; did you mean 'digits-train'?"),
        ({"missing": "ignore"}, "datasets: digits: attributes: missing: value 'ignore' is unknown"),
        ({"key": "id"}, "datasets: digits: attributes: key 'key' is unknown"),
        ({"columns": ["loops", "loops"]}, "columns: 'loops' stands more than once"),
        ({"columns": ["sample_id"]}, "columns: 'sample_id' is the column of the samples' names in every table; rename"),
        (
            {"columns": [{"column": "loops", "cut": [2, 1], "names": ["a", "b", "c"]}]},
            "columns: loops: thresholds must ascend, got [2, 1]",
        ),
        (
            {"columns": [{"column": "loops", "cut": [1], "names": ["a", "b", "c"]}]},
            "columns: loops: 1 thresholds make 2 groups; name each",
        ),
        (
            {"columns": [{"column": "loops", "cut": [1], "names": ["m", "m\u200b"]}]},
            r"columns: loops: names: 'm' and 'm\u200b' differ in blanks or Unicode spelling alone; rename one",
        ),
        ({"columns": [{"column": "loops", "cuts": [1], "names": ["a", "b"]}]}, "datasets: digits: attributes: columns"),
    ],
)
def test_attributes_that_cannot_be_read_are_refused(config, change, expected):
    attributes(config).update(change)
    assert expected in refusal(config)


def test_classes_that_look_alike_are_refused(config):
    config["datasets"]["digits"]["classes"][:2] = ["cat", "cat\u200b"]
    assert r"datasets: digits: classes: 'cat' and 'cat\u200b' differ in blanks" in refusal(config)


def test_quantiles_need_samples_of_their_own(config):
    entry = {"column": "age", "quantiles": [0.5], "names": ["young", "old"]}
    table = {"source": "table", "path": "people.csv", "key": "sample_id", "columns": [entry], "missing": "drop"}
    config["datasets"]["digits"]["attributes"] = table
    config["audits"]["digits"]["groups"] = None
    assert "columns: age: quantiles are for the source digits; give `cut`" in refusal(config)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"attributes": ["slnt"]}, "audits: digits: groups: attribute 'slnt' is unknown; did you mean 'slant'?"),
        ({"balanced": {"attribute": "loop", "seed": 0}}, "groups: attribute 'loop' is unknown; did you mean 'loops'?"),
        ({"positive": "11"}, "groups: positive: class '11' is unknown"),
        ({"minimum_cell": 0}, "minimum_cell"),
        ({"zzz": 1}, "zzz"),
    ],
)
def test_groups_that_are_not_there_are_refused(config, change, expected):
    config["audits"]["digits"]["groups"].update(change)
    assert expected in refusal(config)


def test_groups_need_attributes_and_right_labels(config):
    config["datasets"]["digits"]["label_error_rate"] = 0.01
    assert "the rate of wrong labels within a group is unknown; set label_error_rate: null" in refusal(config)
    config["datasets"]["digits"] |= {"label_error_rate": None, "attributes": None}
    assert "groups: dataset 'digits' has no attributes; describe them in its entry" in refusal(config)


def test_the_gate_names_an_attribute_that_is_compared(config):
    audit = config["audits"]["digits"]
    rule = {key: value for key, value in audit["gate"][0].items() if key != "at_least"}
    audit["gate"] = [rule | {"statistic": "group_gap", "attribute": "slant", "at_most": 0.3}]
    require_valid(config, SCHEMA)
    for changes, expected in (
        ({"attribute": "size"}, "group_gap needs an `attribute` that `groups` of the audit names"),
        ({"statistic": "rdi"}, "the statistic group_gap, and no other, names an attribute"),
        ({"at_most": 1.3}, "at_most 1.3 is outside the range of group_gap 0 to 1.25331"),
        ({"class": "3"}, "the statistics class and falsification_rate, and no other, name a class"),
    ):
        audit["gate"] = [rule | {"statistic": "group_gap", "attribute": "slant", "at_most": 0.3} | changes]
        assert expected in refusal(config)
    audit["gate"] = [rule | {"statistic": "group_gap", "at_most": 0.3}]
    assert "group_gap needs an `attribute`" in refusal(config)
    audit["groups"] = None
    audit["gate"] = [rule | {"statistic": "group_gap", "attribute": "slant", "at_most": 0.3}]
    assert "group_gap needs an `attribute`" in refusal(config)
