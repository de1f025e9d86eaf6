"""What config.yaml may say about mappers and projections, and where their files stand."""

from pathlib import Path

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.workflow import plan, projection_layout
from gfscore.workflow.configuration import complete_schema, require_valid
from gfscore.workflow.layout import audit_results, model_results
from gfscore.workflow.projection_settings import projection_mistakes

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text())


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def mistakes_of(config):
    with pytest.raises(InputError) as raised:
        require_valid(config, complete_schema(SCHEMA, ROOT / "workflow_scripts/gfscore/images/sources"))
    return str(raised.value)


def test_the_shipped_configuration_is_valid_and_both_kinds_of_mapper_can_be_projected_on(config):
    config["audits"]["digits"]["projection"] = "digits-conditional"
    require_valid(config, complete_schema(SCHEMA, ROOT / "workflow_scripts/gfscore/images/sources"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda c: c["audits"]["digits"].update(projection="digits-va"),
            "mapper 'digits-va' is unknown; did you mean 'digits-vae'",
        ),
        (lambda c: c["mappers"]["digits-vae"].update(kind="vae"), "kind 'vae' is unknown; did you mean 'beta_vae'"),
        (
            lambda c: c["mappers"]["digits-vae"].update(betta=1),
            "mappers: digits-vae: key 'betta' is unknown; did you mean 'beta'",
        ),
        (lambda c: c["mappers"]["digits-vae"].update(beta=0), "mappers: digits-vae: beta"),
        (lambda c: c["mappers"]["digits-vae"].update(pixel_sd=0), "mappers: digits-vae: pixel_sd"),
        (
            lambda c: c["mappers"]["digits-vae"]["search"].update(sigma="prior"),
            "search: sigma: value 'prior' is unknown",
        ),
        (
            lambda c: c["mappers"]["digits-vae"].update(train_on="digit"),
            "mappers: digits-vae: train_on: dataset 'digit' is unknown",
        ),
        (lambda c: c["mappers"]["digits-conditional"].update(attributes=["age"]), "attribute 'age' is unknown"),
        (
            lambda c: c["datasets"]["digits-train"].update(attributes=None),
            "train_on: dataset 'digits-train' has no attributes",
        ),
        (lambda c: c["audits"]["digits"].pop("projection"), "audits: digits: projection missing"),
    ],
)
def test_mistakes_are_named(config, change, words):
    change(config)
    assert words in mistakes_of(config)


def test_a_model_that_classifies_no_images_cannot_be_projected(config):
    config["models"]["digits"]["none"]["ERM"] = {"source": "logits"}
    found = list(projection_mistakes(config, "digits"))
    assert len(found) == 1 and "projection: model none/ERM (source logits) classifies no images" in found[0]


def test_files_of_a_projection_are_results_and_an_audit_without_one_has_none(config):
    files = model_results(config, "digits")
    assert "results/mappers/digits-vae.npz" in files
    assert "results/projections/digits-vae/digits/none/ERM.parquet" in files
    assert "results/audits/digits/projection_scores.csv" in audit_results(config, "digits")
    config["audits"]["digits"]["projection"] = None
    assert not [path for path in model_results(config, "digits") if "mapper" in path or "projection" in path]
    assert not [path for path in audit_results(config, "digits") if "projection" in path]
    assert projection_layout.mapper_file(config, "digits", extension="json") == []


def test_an_audit_knows_which_of_its_measures_leaves_samples_undisturbed(config):
    kinds = projection_layout.measure_kinds(config, "digits")
    assert kinds["clean"] == "clean" and set(kinds) == set(plan.measures_of(config, "digits"))


def test_a_mapper_depends_on_its_own_settings_and_data_only(config):
    settings = projection_layout.mapper_settings(config, "digits-vae")
    assert "search" not in settings and settings["beta"] == 10
    assert projection_layout.mapper_inputs(config, "digits-vae") == {
        "train": "results/datasets/digits-train.json",
        "test": "results/datasets/digits.json",
        "train_attributes": [],
        "test_attributes": [],
    }
    conditional = projection_layout.mapper_inputs(config, "digits-conditional")
    assert conditional["train_attributes"] == "results/attributes/digits-train.parquet"


def test_data_of_the_mapper_are_data_of_the_audit(config):
    config["datasets"]["elsewhere"] = config["datasets"]["digits-train"]
    config["mappers"]["digits-vae"]["train_on"] = "elsewhere"
    assert "elsewhere" in plan.datasets_of(config, "digits")
