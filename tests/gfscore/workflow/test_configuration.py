import copy
import re
import sys

import pytest
import yaml

from gfscore.audit.verdicts.gate_rules import direction_of
from gfscore.core.errors import InputError, unknown
from gfscore.workflow.configuration import require_valid
from gfscore.workflow.names import case_mistakes
from gfscore.workflow.schema_words import words_of_form
from shipped_configuration import ROOT, SCHEMA, refusal

RULE = SCHEMA["$defs"]["audit"]["properties"]["gate"]["items"]["properties"]
STATISTICS = RULE["statistic"]["enum"]


def test_the_shipped_configuration_is_valid(config):
    require_valid(config, SCHEMA)


def paths_of(data, path=()):
    """Every key of nested mappings, as a path."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from paths_of(value, (*path, key))


@pytest.mark.parametrize("key", ["size", "resize"])
def test_sides_that_no_image_should_get_are_refused_before_any_image_is_read(config, key):
    config["datasets"]["imagenet"]["preprocessing"][key] = 30_000
    assert f"datasets: imagenet: preprocessing: {key}: 30000 is greater than the maximum of 8192" in refusal(config)


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


def test_unknown_keys_are_listed_in_the_order_of_the_file(config):
    names = [f"key_{letter}" for letter in "hgfedcba"]
    config["great"] |= dict.fromkeys(names, 1)
    assert re.findall("key_[a-h]", refusal(config)) == names


def test_a_misspelt_model_gets_the_nearest_name(config):
    config["audits"]["digits"]["models"][3] = "digits/none/PGDD"
    assert "audits: digits: models: model 'digits/none/PGDD' is unknown; did you mean 'digits/none/PGD'?" in refusal(
        config
    )


def test_models_of_another_zoo_are_refused(config):
    config["models"]["other"] = {"none": {"ERM": config["models"]["digits"]["none"]["ERM"]}}
    config["audits"]["digits"]["models"] = ["other/none/ERM"]
    assert "model 'other/none/ERM' is of another zoo: dataset 'digits' evaluates models of 'digits'" in refusal(config)
    config["audits"]["digits"]["models"] = ["cifar10/L2/*", "other/none/EMR", "other/ERM"]
    text = refusal(config)
    assert "model 'cifar10/L2/*' is of another zoo" in text
    assert "'other/none/EMR' is unknown" in text
    assert "'other/ERM' is unknown" in text


def test_calibration_needs_a_measure_with_a_temperature(config):
    config["audits"]["digits"]["calibration"] = {"measure": "clean", "objectives": ["likelihood"], "split": None}
    assert "measure 'clean' has no temperature" in refusal(config)
    config["audits"]["digits"]["calibration"]["measure"] = "great-sigmoid-of-softmax"
    assert "calibration: measure 'great-sigmoid-of-softmax' is unknown" in refusal(config)


def test_a_gate_judges_a_measure_of_the_audit(config):
    config["audits"]["digits"]["gate"][0]["measure"] = "great-softmx"
    assert "did you mean 'great-softmax'" in refusal(config)


def test_a_misspelt_measure_of_the_audit_is_not_proposed_for_the_gate(config):
    audit = config["audits"]["digits"]
    audit["measures"] = ["great-softmx" if name == "great-softmax" else name for name in audit["measures"]]
    text = refusal(config)
    assert "measures: measure 'great-softmx' is unknown; did you mean 'great-softmax'?" in text
    assert "gate: measure of the audit 'great-softmax' is unknown; did you mean 'great-sigmoid'?" in text


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


def test_a_gate_may_judge_every_statistic_in_the_direction_in_which_it_is_better(config):
    rule = config["audits"]["digits"]["gate"][0]
    threshold = {"measure": rule["measure"], "confidence": 0.9, "looks": {"planned": 3, "this": 2}}
    threshold["on_inconclusive"] = "pass"
    config["audits"]["digits"]["gate"] = [
        threshold | {"statistic": statistic, direction_of(statistic): 0.5}
        for statistic in set(STATISTICS) - {"class", "falsification_rate", "group_gap"}
    ] + [threshold | {"statistic": "class", "class": "3", "at_least": 0.5}]
    require_valid(config, SCHEMA)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_gate_that_would_pass_the_worse_classifier_is_refused(config, statistic):
    less = statistic in ("rdi", "nrgc", "falsification_rate", "group_gap")
    direction, other, better = ("at_most", "at_least", "less") if less else ("at_least", "at_most", "more")
    audit = config["audits"]["digits"]
    rule = {key: value for key, value in audit["gate"][0].items() if key != "at_least"}
    audit["gate"] = [audit["gate"][0], rule | {"statistic": statistic, other: 0.1}]
    assert (
        f"audits: digits: gate: rule 2, {statistic} of great-softmax: {better} is better; give its threshold as "
        f"{direction}" in refusal(config)
    )


@pytest.mark.parametrize(
    ("measure", "changes", "expected"),
    [
        ("adversarial-linf", {"eps": 8}, "eps: 8 in l_inf"),
        (
            "adversarial-linf",
            {"attacks": [{"name": "pgd", "steps": 2, "step_size": 8, "restarts": 1}]},
            "pgd: step_size",
        ),
        ("targeted-linf", {"eps": 8.0}, "eps: 8 in l_inf"),
        ("targeted-linf", {"step_size": 8}, "step_size: 8 in l_inf"),
        ("probabilistic-linf", {"perturbation": {"family": "linf_ball", "eps": 8, "clip": True}}, "perturbation: eps"),
        ("minimal-l2", {"norm": "linf", "largest_distance": 8}, "largest_distance: 8 in l_inf"),
    ],
)
def test_a_radius_in_steps_of_a_byte_is_refused_with_its_share_of_white(config, measure, changes, expected):
    config["measures"][measure] |= changes
    text = refusal(config)
    assert f"measures: {measure}: " in text and expected in text
    assert "pixels are in [0, 1]; write 8/255 as 0.03137" in text


@pytest.mark.parametrize(
    ("measure", "changes"),
    [
        ("adversarial-linf", {"norm": "l2", "eps": 8}),
        ("adversarial-linf", {"eps": 1.0}),
        ("probabilistic-linf", {"perturbation": {"family": "l2_ball", "eps": 8, "clip": True}}),
        ("minimal-l2", {"largest_distance": 8}),
    ],
)
def test_a_radius_that_can_be_meant_is_accepted(config, measure, changes):
    config["measures"][measure] |= changes
    require_valid(config, SCHEMA)


def test_a_radius_that_is_no_step_of_a_byte_gets_no_number(config):
    config["measures"]["adversarial-linf"]["eps"] = 8.5
    assert "8.5 in l_inf is more than from black to white: pixels are in [0, 1]; give a share of" in refusal(config)


def test_a_model_is_not_trained_within_a_radius_of_steps_of_a_byte(config):
    entry = config["models"]["digits"]["none"]["PGD"] = copy.deepcopy(config["models"]["digits"]["none"]["PGD"])
    entry["training"]["threat"]["eps"] = 8
    entry["attack"]["step_size"] = 2
    text = refusal(config)
    assert "models: digits/none/PGD: training: threat: eps: 8 in l_inf" in text
    assert "models: digits/none/PGD: attack: step_size: 2 in l_inf" in text


@pytest.mark.parametrize(
    ("white", "mean", "remedy"),
    [(1, [125, 123, 114], "set value_range: 255, or divide mean and std by 255"), (255, [300, 1, 1], "correct mean")],
)
def test_a_mean_above_the_white_of_the_network_is_refused(config, white, mean, remedy):
    entry = config["models"]["cifar10"]["none"]["DINOv2_S14_probe"]
    entry |= {"mean": mean, "value_range": white}
    text = refusal(config)
    assert f"mean: {mean[0]} is above the white of the network, value_range: {white}; {remedy}" in text
    entry |= {"mean": [0.5, 1, -0.5]}
    require_valid(config, SCHEMA)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"classes": {0: "cat"}}, 'classes: {"0": "cat"} does not fit; give null or a list of texts'),
        ({"classes": [0, 1, 2]}, "classes: 0: 0 is no text to YAML; put quotes around what you wrote"),
        ({"classes": [True, False]}, "classes: 0: true is no text to YAML; put quotes around what you wrote"),
        ({"classes": [{(1, 2): 3}]}, "classes: 0: {(1, 2): 3} does not fit; give a text"),
        ({"subset": 100}, "subset: 100 does not fit; give null or a mapping with samples, seed"),
        ({"label_error_rate": "x"}, 'give null or a number or a list of numbers or "from_generator"'),
        ({"test_share": "1/2"}, "test_share: YAML does not divide; write 1/2 as 0.5"),
        ({"test_share": None}, "test_share: null does not fit; give a number"),
        ({"digest": "A" * 63}, "is no SHA-256 of 64 digits from 0 to f"),
    ],
)
def test_a_dataset_of_the_wrong_form_gets_what_to_write(config, changes, expected):
    config["datasets"]["digits"] |= changes
    assert expected in refusal(config)


def test_a_normalisation_of_the_wrong_form_gets_what_to_write(config):
    entry = config["models"]["cifar10"]["none"]["DINOv2_S14_probe"]
    entry |= {"mean": 0.5, "sha256": "0G" * 32}
    text = refusal(config)
    assert "mean: 0.5 does not fit; give null or a list of numbers" in text
    assert "sha256: '0G0G" in text and "is no SHA-256 of 64 digits from 0 to f" in text


def test_a_digest_may_be_pinned_in_upper_case(config):
    config["datasets"]["digits"]["digest"] = "0F" * 32
    config["models"]["cifar10"]["none"]["DINOv2_S14_probe"]["sha256"] = "0F" * 32
    require_valid(config, SCHEMA)


def test_of_several_forms_the_one_that_is_named_says_what_is_wrong(config):
    ball = config["measures"]["probabilistic-linf"]["perturbation"]
    del ball["eps"]
    assert "perturbation: eps missing" in refusal(config)
    config["datasets"]["imagenet"]["preprocessing"]["interpolation"] = "cubic"
    assert "preprocessing: interpolation: value 'cubic' is unknown; did you mean 'bicubic'?" in refusal(
        {**config, "measures": {**config["measures"], "probabilistic-linf": {"kind": "clean"}}}
    )
    ball |= {"family": "linf", "eps": 0.1}
    assert "perturbation: family 'linf' is unknown; did you mean 'linf_ball'?" in refusal(config)
    config["measures"]["minimal-l2"]["attacks"][0]["name"] = "carlini-wagner"
    assert "attacks: 0: binary_search_steps, step_size missing" in refusal(config)
    config["measures"]["certified-l2"]["largest_radius"] = 1
    assert "give a mapping with largest_radius or a mapping with smoothing, subset, seed, not both" in refusal(config)
    config["measures"]["probabilistic-linf"]["perturbation"] = 0.1
    assert "0.1 does not fit; give a mapping with family, eps, clip or a mapping with family, sigma" in refusal(config)


@pytest.mark.parametrize("gate", [None, []])
def test_a_gate_without_rules_is_refused(config, gate):
    config["audits"]["digits"]["gate"] = gate
    assert "audits: digits: gate: " in refusal(config)
    assert "holds no rule, but every audit has at least one" in refusal(config)


def test_every_choice_of_the_schema_has_words():
    def choices(part):
        if isinstance(part, dict | list):
            if isinstance(part, dict) and isinstance(part.get("oneOf"), list):
                yield part["oneOf"]
            for inner in part.values() if isinstance(part, dict) else part:
                yield from choices(inner)

    found = [form for forms in choices(SCHEMA) for form in forms]
    assert len(found) > 30
    assert all(words_of_form(form, SCHEMA["$defs"]) for form in found)


def test_names_that_differ_in_case_alone_are_refused_together(config):
    for section, name, other in [
        ("audits", "digits", "Digits"),
        ("datasets", "digits", "DIGITS"),
        ("measures", "clean", "Clean"),
        ("mappers", "digits-vae", "digits-VAE"),
        ("models", "digits", "Digits"),
    ]:
        config[section][other] = config[section][name]
        assert f"{section}: {name!r} and {other!r} differ in case alone" in refusal(config)
        del config[section][other]
    models = config["models"]["digits"]["none"]
    models["erm"] = models["ERM"]
    assert "models: digits/none: 'ERM' and 'erm' differ in case alone" in refusal(config)


def test_names_that_differ_in_case_alone_from_those_of_robustbench_are_refused(config):
    entry = config["models"]["digits"]["none"]["ERM"]
    config["models"]["CIFAR10"] = {"none": {"mine": entry}}
    config["models"]["cifar10"]["L2"] = {"wu2020adversarial": entry}
    text = refusal(config)
    assert "models: 'cifar10' and 'CIFAR10' differ in case alone" in text
    assert "models: cifar10/L2: 'wu2020adversarial' and 'Wu2020Adversarial' differ in case alone" in text
    # One that takes the place of RobustBench's is meant.
    config["models"]["cifar10"]["L2"] = {"Wu2020Adversarial": entry}
    del config["models"]["CIFAR10"]
    assert not [*case_mistakes(config)]


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
    config["measures"]["minimal-linf"] = config["measures"]["minimal-l2"] | {"norm": "linf", "largest_distance": 1.0}
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


def test_percent_and_repeated_names_are_told_how_to_write_them(config):
    config["intervals"]["confidence"] = 95
    config["run"] = ["digits", "digits"]
    text = refusal(config)
    assert "confidence: 95 is above 1; write 95 percent as 0.95" in text
    assert 'run: "digits" stands more than once; name it once' in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (999.0, "disparity: permutations: 999.0 has a decimal point; write 999"),
        (True, "disparity: permutations: true does not fit; give a whole number"),
        (10**12, "disparity: permutations: 1000000000000 is greater than the maximum of 1000000"),
    ],
)
def test_a_count_is_a_whole_number_that_fits_memory(config, value, message):
    config["disparity"]["permutations"] = value
    assert message in refusal(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 100}, "measures: probabilistic-linf: budget 100 is too small: .* needs 377 draws without a change"),
        (
            {"test": "repeated_exact", "alpha": 0.3},
            "probabilistic-linf: .* decides wrongly with a probability of up to",
        ),
    ],
)
def test_a_test_that_can_decide_nothing_is_refused_in_an_audit_that_runs(config, changes, message):
    config["measures"]["probabilistic-linf"] |= changes
    with pytest.raises(InputError, match=message):
        require_valid(config, SCHEMA)
    # A job trusts the run that started it.
    require_valid(config, SCHEMA, thorough=False)
    require_valid(config | {"run": ["cifar10-l2"]}, SCHEMA)


def test_where_snakemake_stands_alone_the_step_finds_such_a_test(config, monkeypatch):
    config["measures"]["probabilistic-linf"]["budget"] = 100
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    require_valid(config, SCHEMA)


def test_a_dataset_that_reads_other_data_than_the_one_it_is_written_after_has_its_own_digest():
    """Else a digest pinned for the one would be asked of the other too."""
    root = yaml.compose((ROOT / "config.yaml").read_text())
    (datasets,) = (value for key, value in root.value if key.value == "datasets")
    derived = {}
    for name, entry in datasets.value:
        own = {key.value for key, _ in entry.value}
        if "<<" in own:
            derived[name.value] = own
    assert {"digits-train", "cifar10-train", "celeba-train"} < set(derived)
    of_images = {"split", "subset", "path", "list", "preprocessing", "test_share", "seed", "task", "variant"}
    assert [name for name, own in derived.items() if own & of_images and "digest" not in own] == []


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://example.org/a@b.pt?token=1", True),
        ("http://127.0.0.1:8000", True),
        ("https://me:secret@example.org/m.pt", False),
        ("https://me@example.org", False),
        ("ftp://example.org/m.pt", False),
    ],
)
def test_addresses_hold_no_name_and_password(url, taken):
    assert bool(re.search(SCHEMA["$defs"]["url"]["pattern"], url)) is taken


@pytest.mark.parametrize("path", [256 * "a", "a/" * 3000, "a\0b", "\ud800"])
def test_a_path_that_no_file_can_have_is_refused_by_its_key(config, path):
    config["datasets"]["cifar10"]["path"] = path
    assert "datasets: cifar10: path: no file can have the path " in refusal(config)
