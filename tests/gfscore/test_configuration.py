import copy
from pathlib import Path

import pytest
import yaml

from gfscore.configuration import complete_schema, require_valid
from gfscore.errors import InputError, unknown

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = complete_schema(
    yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text()), ROOT / "workflow_scripts/gfscore/datasets"
)


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def refusal(config):
    with pytest.raises(InputError) as refused:
        require_valid(config, SCHEMA)
    return str(refused.value)


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
    config["audits"]["digits"]["calibration"] = {"measure": "clean", "objectives": ["likelihood"]}
    assert "measure 'clean' has no temperature" in refusal(config)
    config["audits"]["digits"]["calibration"]["measure"] = "great-sigmoid-of-softmax"
    assert "calibration: measure 'great-sigmoid-of-softmax' is unknown" in refusal(config)


def test_a_gate_judges_a_measure_of_the_audit(config):
    config["audits"]["digits"]["gate"][0]["measure"] = "great-softmx"
    assert "did you mean 'great-softmax'" in refusal(config)


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
