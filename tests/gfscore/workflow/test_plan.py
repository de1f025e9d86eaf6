import re

import pytest

from gfscore.workflow import layout, plan
from shipped_configuration import shipped_configuration

AUDIT = {"dataset": "copy", "tasks": [], "models": ["zoo/none/X", "zoo/L2/Y"], "measures": ["g"], "calibration": None}
COPY = {"source": "npz", "path": "p", "classes": ["u", "v"], "models_of": "zoo", "label_error_rate": 0.1}
CONFIG = {
    "audits": {"a": AUDIT | {"groups": None, "corruption_baseline": None, "projection": None}},
    "datasets": {
        "copy": COPY | {"attributes": None},
        "train": {
            "source": "digits",
            "split": "train",
            "classes": ["u", "v"],
            "models_of": None,
            "label_error_rate": None,
            "attributes": None,
        },
    },
    "models": {
        "zoo": {
            "none": {
                "X": {
                    "train_on": "train",
                    "evaluate_on": "copy",
                    "published_clean_accuracy": 0.5,
                    "published_robust_accuracy": None,
                }
            },
            "L2": {"Y": {"published_clean_accuracy": None, "published_robust_accuracy": 0.25}},
        }
    },
    "measures": {"g": {"kind": "great"}, "g+": {"kind": "great"}, "c": {"kind": "clean"}},
}


def test_models_carry_the_dataset_evaluated_not_the_zoo():
    assert plan.models_of(CONFIG, "a") == [
        {"dataset": "copy", "threat": "none", "model": "X"},
        {"dataset": "copy", "threat": "L2", "model": "Y"},
    ]


def test_an_entry_is_found_through_the_zoo_of_the_dataset():
    assert plan.entry_of(CONFIG, "copy", "L2", "Y")["published_robust_accuracy"] == 0.25
    assert plan.published_accuracies(CONFIG, "a")[0] == {
        "published_clean_accuracy": 0.5,
        "published_robust_accuracy": None,
    }


def test_datasets_of_an_audit_include_those_its_models_are_trained_on():
    assert plan.datasets_of(CONFIG, "a") == ["copy", "train"]


def test_only_what_decides_the_images_counts_as_their_settings():
    assert plan.image_settings_of(CONFIG, "train") == {"source": "digits", "split": "train"}
    assert plan.image_settings_of(CONFIG, "copy") == {"source": "npz"}


def test_pinning_a_digest_changes_no_setting_of_the_images():
    pinned = CONFIG | {"datasets": CONFIG["datasets"] | {"copy": COPY | {"digest": "0" * 64}}}
    assert plan.image_settings_of(pinned, "copy") == plan.image_settings_of(CONFIG, "copy")


def test_a_gate_reads_the_measures_of_its_rules_and_what_refutes_them(config):
    def judged(*rules):
        config["audits"]["digits"]["gate"] = [{"measure": name, "statistic": statistic} for name, statistic in rules]
        return list(plan.judged_subject_of(config, "digits")["measures"])

    assert judged() == []
    assert judged(("great-sigmoid", "wcr"), ("clean", "rdi")) == ["clean", "great-sigmoid"]
    assert judged(("great-softmax", "falsification_rate")) == ["great-softmax", "minimal-l2"]
    # What was attacked must be the network of the logits, also where the gate looks at nothing that is computed from them.
    assert judged(("minimal-l2", "wcr")) == ["clean", "minimal-l2"]
    assert plan.judged_subject_of(config, "digits")["models"] == plan.models_of(config, "digits")


@pytest.mark.parametrize("audit", ["cifar10-l2", "imagenet-linf"])
def test_the_audits_of_the_paper_are_calibrated_by_distances_of_its_attack_too(audit):
    config = shipped_configuration()
    measure = plan.distance_measure(config, audit)
    assert [attack["name"] for attack in config["measures"][measure]["attacks"]] == ["carlini-wagner"]
    assert measure in plan.subject_of(config, audit)["measures"]


def test_a_probe_is_fetched_and_fitted_and_no_other_source_matches_its_pattern():
    entries = {"P.1": {"source": "probe"}, "T": {"source": "timm"}}
    config = {
        "audits": {"a": {"dataset": "d", "tasks": [], "models": ["z/none/P.1", "z/none/T"]}},
        "datasets": {"d": {"models_of": "z"}},
        "models": {"z": {"none": entries}},
    }
    pattern = re.compile(plan.zoo_models_from(config, "probe"))
    assert [name for name in ("z/none/P.1", "z/none/Px1", "z/none/T") if pattern.fullmatch(name)] == ["z/none/P.1"]
    assert not re.compile(plan.zoo_models_from(config, "onnx")).fullmatch("")
    fetched = [f"results/checkpoints/z/none/{name}.json" for name in ("P.1", "T")]
    assert layout.fetched_manifests(config, "a") == fetched
    of_probe = {"dataset": "d", "threat": "none", "model": "P.1", "extension": "json"}
    assert layout.checkpoint_file(config, **of_probe) == "results/trained/z/none/P.1.json"
    assert layout.checkpoint_file(config, **of_probe | {"model": "T"}) == fetched[1]


def test_names_match_exactly_the_measures_that_show_images():
    measures = CONFIG["measures"] | {"a+": {"kind": "adversarial"}, "b": {"kind": "minimal"}}
    for config, matching in ((CONFIG | {"measures": measures}, {"a+", "b"}), (CONFIG, set())):
        pattern = re.compile(plan.names_of_network_measures(config))
        assert {name for name in [*measures, "aa", "a", ""] if pattern.fullmatch(name)} == matching


def test_the_samples_that_fix_thresholds_of_attributes_belong_to_an_audit_that_compares_groups():
    digits = COPY | {"attributes": {"source": "digits", "fixed_on": "other"}}
    datasets = CONFIG["datasets"] | {"copy": digits}
    audits = {"a": AUDIT | {"groups": {"attributes": ["slant"]}, "projection": None}, "b": CONFIG["audits"]["a"]}
    config = CONFIG | {"datasets": datasets, "audits": audits}
    assert "other" in plan.datasets_of(config, "a") and "other" not in plan.datasets_of(config, "b")
    assert layout.attributes_reference(config, "copy") == "results/datasets/other.json"
    assert "attributes" not in plan.image_settings_of(config, "copy")


def test_a_dataset_is_named_once_where_models_state_accuracies_that_nothing_is_compared_with():
    def named(samples, models):
        audit = AUDIT | {"models": models}
        datasets = CONFIG["datasets"] | {"copy": CONFIG["datasets"]["copy"] | {"published_accuracy": samples}}
        config = CONFIG | {"run": ["a", "b"], "audits": {"a": audit, "b": audit}, "datasets": datasets}
        return plan.uncompared_datasets(config)

    assert named(None, ["zoo/none/X", "zoo/L2/Y"]) == ["copy"]
    assert named("full", ["zoo/none/X"]) == []
    # A robust accuracy is never checked.
    assert named(None, ["zoo/L2/Y"]) == []
