"""What config.yaml may say about mappers and projections, and where their files stand."""

import pytest

from gfscore.workflow import plan, projection_layout
from gfscore.workflow.layout import model_results
from shipped_configuration import completed, refusal, refusal_with, shipped_configuration


@pytest.fixture
def config():
    return shipped_configuration()


def test_both_kinds_of_mapper_can_be_projected_on(config):
    config["audits"]["digits"]["projection"] = "digits-conditional"
    completed(config)


@pytest.mark.parametrize(
    ("path", "value", "facts"),
    [
        (("audits", "digits", "projection"), "digits-va", ["mapper 'digits-va'", "'digits-vae'"]),
        (("mappers", "digits-vae", "kind"), "vae", ["kind 'vae'", "'beta_vae'"]),
        (("mappers", "digits-vae", "betta"), 1, ["mappers: digits-vae: betta", "'beta'"]),
        (("mappers", "digits-vae", "beta"), 0, ["mappers: digits-vae: beta"]),
        (("mappers", "digits-vae", "pixel_sd"), 0, ["mappers: digits-vae: pixel_sd"]),
        (("mappers", "digits-vae", "search", "sigma"), "prior", ["search: sigma", "'prior'"]),
        (("mappers", "digits-vae", "train_on"), "digit", ["mappers: digits-vae: train_on", "'digit'"]),
        (("mappers", "digits-conditional", "attributes"), ["age"], ["attribute 'age'"]),
        (("datasets", "digits-train", "attributes"), None, ["train_on", "'digits-train' has no attributes"]),
    ],
)
def test_mistakes_are_named(config, path, value, facts):
    text = refusal_with(config, path, value)
    assert not [fact for fact in facts if fact not in text], text


def test_a_model_that_classifies_no_images_cannot_be_projected(config):
    config["models"]["digits"]["none"]["ERM"] = {"source": "logits", "path": "x.npy"}
    text = refusal(config)
    assert "projection" in text and "none/ERM (source logits) cannot classify images" in text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"projection": None, "tasks": ["faces-age"]}, ["tasks", "name a mapper"]),
        ({"tasks": ["faces-ag"]}, ["tasks", "dataset 'faces-ag'", "'faces-age'"]),
        ({"tasks": ["faces-gender"]}, ["'faces-gender' is the dataset of the audit"]),
        ({"tasks": ["faces-age-train"]}, ["'faces-age-train' names no models_of"]),
        ({"tasks": ["faces-age", "digits"]}, ["digits/none: model 'convolutions' is unknown"]),
        ({"projection": ["faces-vae", "faces-va"]}, ["mapper 'faces-va'", "'faces-vae'"]),
    ],
)
def test_mistakes_in_tasks_and_mappers_are_named(config, change, facts):
    config["audits"]["fairface-tasks"] |= change
    text = refusal(config)
    assert not [fact for fact in facts if fact not in text], text


def test_every_mapper_is_held_against_the_models_of_every_task(config):
    files = projection_layout.projection_files(config, "fairface-tasks")
    assert len(files) == 2 * 3 * 2 and len(set(files)) == 12
    assert files[2] == "results/projections/faces-vae/faces-age/none/convolutions.parquet"
    assert set(files) < set(model_results(config, "fairface-tasks"))
    of_tasks = projection_layout.task_files(config, "fairface-tasks")
    assert of_tasks["task_attributes"] == [
        "results/attributes/faces-age.parquet",
        "results/attributes/faces-race.parquet",
    ]
    assert of_tasks["task_logits"][-1] == "results/logits/faces-race/none/transformer.parquet"
    config["audits"]["fairface-tasks"]["groups"] = None
    without = projection_layout.task_files(config, "fairface-tasks")
    assert not without["task_attributes"] and without["task_logits"] == of_tasks["task_logits"]
    assert len(without["task_datasets"]) == 2
    assert not [path for paths in projection_layout.task_files(config, "digits").values() for path in paths]


def test_files_of_a_projection_are_results_and_an_audit_without_one_has_none(config):
    files = model_results(config, "digits")
    assert "results/mappers/digits-vae.npz" in files
    assert "results/projections/digits-vae/digits/none/ERM.parquet" in files
    config["audits"]["digits"]["projection"] = None
    assert not [path for path in model_results(config, "digits") if "mapper" in path or "projection" in path]
    assert projection_layout.mapper_files(config, "digits", extension="json") == []


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
