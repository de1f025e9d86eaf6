import copy

import pytest

from gfscore.errors import InputError, unknown
from gfscore.workflow.configuration import require_valid
from shipped_configuration import SCHEMA, refusal


def test_the_shipped_configuration_is_valid(config):
    require_valid(config, SCHEMA)


def paths_of(data, path=()):
    """Every key of nested mappings, as a path."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from paths_of(value, (*path, key))


def test_an_unknown_key_is_refused_at_every_level(config):
    """No section takes a key that nobody reads, except where keys are names."""
    names = {("audits",), ("datasets",), ("models",), ("measures",), ("models", "digits"), ("models", "digits", "none")}
    mappings = [(), *paths_of(config)]
    tried = 0
    for path in mappings:
        changed = copy.deepcopy(config)
        part = changed
        for key in path:
            part = part[key]
        if not isinstance(part, dict) or path in names or path[-1:] in [("arguments",)]:
            continue
        if path[-1:] == ("coefficients",):
            part["zzz"] = "text"
        else:
            part["zzz"] = 1
        assert "zzz" in refusal(changed), path
        tried += 1
    assert tried > 50


def test_every_value_must_be_written(config):
    del config["great"]["stability_window"]
    del config["audits"]["digits"]["gate"]
    text = refusal(config)
    assert "great: stability_window missing" in text
    assert "audits: digits: gate missing" in text


def test_all_mistakes_are_listed_at_once(config):
    config["inference"]["batch_size"] = 0
    config["intervals"]["method"] = "hoefding"
    text = refusal(config)
    assert "inference: batch_size: 0 is less than the minimum of 1" in text
    assert "did you mean 'hoeffding'" in text


def test_a_misspelt_model_gets_the_nearest_name(config):
    config["audits"]["digits"]["models"][3] = "digits/none/PGDD"
    assert "audits: digits: models: model 'digits/none/PGDD' is unknown; did you mean 'digits/none/PGD'?" in refusal(
        config
    )


def test_models_of_another_zoo_are_refused(config):
    config["models"]["other"] = {"none": {"ERM": config["models"]["digits"]["none"]["ERM"]}}
    config["audits"]["digits"]["models"] = ["other/none/ERM"]
    assert "'other/none/ERM' is unknown" in refusal(config)


def test_calibration_needs_a_measure_with_a_temperature(config):
    config["audits"]["digits"]["calibration"] = {"measure": "clean", "objectives": ["likelihood"], "split": None}
    assert "measure 'clean' has no temperature" in refusal(config)
    config["audits"]["digits"]["calibration"]["measure"] = "great-sigmoid-of-softmax"
    assert "calibration: measure 'great-sigmoid-of-softmax' is unknown" in refusal(config)


def test_a_gate_judges_a_measure_of_the_audit(config):
    config["audits"]["digits"]["gate"][0]["measure"] = "great-softmx"
    assert "did you mean 'great-softmax'" in refusal(config)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"statistic": "wrc"}, "value 'wrc' is unknown; did you mean 'wcr'?"),
        ({"at_most": 0.3}, "a rule needs one threshold, either at_least or at_most"),
        ({"at_least": 1.3}, "at_least 1.3 is outside the measure's range 0 to 1.25331"),
        ({"statistic": "nrgc", "at_least": 0.95}, "at_least 0.95 is outside the range of nrgc 0 to 0.9"),
        ({"statistic": "fp", "at_least": -0.7}, "at_least -0.7 is outside the range of fp -0.626657 to 1.25331"),
        ({"statistic": "class"}, "the statistics class and falsification_rate, and no other, name a class"),
        ({"class": "3"}, "the statistics class and falsification_rate, and no other, name a class"),
        ({"statistic": "class", "class": "33"}, "class '33' is unknown; did you mean '3'?"),
        ({"looks": {"planned": 2, "this": 3}}, "looks: this is 3, but 2 were planned; a further look needs fresh"),
        ({"on_inconclusive": "go"}, "on_inconclusive"),
    ],
)
def test_a_gate_rule_says_one_thing_that_can_be_judged(config, changes, expected):
    config["audits"]["digits"]["gate"][0] |= changes
    assert expected in refusal(config)


def test_a_gate_may_judge_every_statistic_in_either_direction(config):
    rule = config["audits"]["digits"]["gate"][0]
    threshold = {"measure": rule["measure"], "confidence": 0.9, "looks": {"planned": 3, "this": 2}}
    threshold["on_inconclusive"] = "pass"
    config["audits"]["digits"]["gate"] = [
        threshold | {"statistic": statistic, direction: 0.5}
        for statistic in ("wcr", "rdi", "nrgc", "fp", "value", "class_mean")
        for direction in ("at_least", "at_most")
    ] + [threshold | {"statistic": "class", "class": "3", "at_least": 0.5}]
    require_valid(config, SCHEMA)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"measure": "clean"}, "'clean' is no attack-free score; name a measure of kind great"),
        ({"at_least": 0.1, "at_most": None}, "less is better; give its threshold as at_most"),
        ({"at_most": 1.5}, "at_most 1.5 is outside the range of falsification_rate 0 to 1"),
        ({"class": "33"}, "class '33' is unknown; did you mean '3'?"),
    ],
)
def test_a_falsification_rate_is_at_most_something_and_of_a_score(config, changes, expected):
    audit = config["audits"]["digits"]
    audit["measures"] = ["clean", "great-softmax", "minimal-l2"]
    rule = audit["gate"][0] | {"statistic": "falsification_rate", "at_most": 0.2}
    del rule["at_least"]
    audit["gate"] = [rule, rule | {"class": "3"}]
    require_valid(config, SCHEMA)
    audit["gate"] = [{key: value for key, value in (rule | changes).items() if value is not None}]
    assert expected in refusal(config)


def test_a_falsification_rate_needs_distances_and_right_labels(config):
    audit = config["audits"]["digits"]
    audit["measures"] = ["clean", "great-softmax"]
    rule = audit["gate"][0] | {"statistic": "falsification_rate", "at_most": 0.2}
    del rule["at_least"]
    audit["gate"] = [rule]
    assert "needs one measure of kind minimal with norm l2 in the audit, and there are 0" in refusal(config)
    config["measures"]["minimal-linf"] = config["measures"]["minimal-l2"] | {"norm": "linf"}
    audit["measures"].append("minimal-linf")
    assert "and there are 0" in refusal(config)
    audit["measures"].append("minimal-l2")
    require_valid(config, SCHEMA)
    config["datasets"]["digits"]["label_error_rate"] = 0.01
    assert "takes labels as right, but dataset 'digits' has a label_error_rate" in refusal(config)


@pytest.mark.parametrize("name", ["../up", "a/b", "a b", "<b>", "$(x)", "'", "", ".hidden", "-rf"])
def test_names_that_could_leave_the_folder_or_the_page_are_refused(config, name):
    config["audits"][name] = config["audits"]["digits"]
    assert "may hold only letters" in refusal(config)


def test_label_error_rates_are_one_per_class(config):
    config["datasets"]["digits"]["label_error_rate"] = [0.1, 0.2]
    assert "2 rates for 10 classes" in refusal(config)


def test_from_generator_needs_a_generator(config):
    config["datasets"]["digits"]["label_error_rate"] = "from_generator"
    assert "label_error_rate" in refusal(config)


def test_every_key_of_the_schema_is_described_and_used():
    def undescribed(part, path):
        if isinstance(part, dict):
            for name, inner in part.get("properties", {}).items():
                shared = "$ref" in inner or "const" in inner
                if not shared and "description" not in inner and "properties" not in inner:
                    yield (*path, name)
            for key, inner in part.items():
                yield from undescribed(inner, (*path, key))

    assert not list(undescribed(SCHEMA, ()))


def test_unknown_lists_what_exists_when_nothing_is_near():
    assert unknown("model", "zzz", ["a", "b"]) == "model 'zzz' is unknown; known: a, b"
    assert unknown("model", "zzz", []) == "model 'zzz' is unknown; known: none"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (10**400, r"great: temperatures: high: an integer of 401 digits"),
        (-(2**63), r"high: an integer of 19 digits is larger"),
        (float("inf"), r"high: inf is no finite number"),
        (float("nan"), r"high: nan is no finite number"),
    ],
)
def test_numbers_that_nothing_can_compute_with_are_named(config, value, message):
    config["great"]["temperatures"]["high"] = value
    with pytest.raises(InputError, match=message):
        require_valid(config, SCHEMA)
