"""What config.yaml may say about mappers, projections and corrupted copies, and what is refused of it."""

import pytest

from gfscore.workflow.audit_steps import table_settings
from gfscore.workflow.plan import Run
from gfscore.workflow.replaced_files import missing_files
from helpers.configurations import completed, refusal, refusal_with, shipped_configuration

COPIES = {"path": "nowhere/C"}


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


# ---- corrupted copies ----


@pytest.fixture
def corrupted():
    """The demo, whose digits have copies in a folder that is not there, and are measured on all of them."""
    config = shipped_configuration()
    config["datasets"]["digits"]["corrupted"] = dict(COPIES)
    config["measures"]["corruption"] = {"kind": "corruption"}
    config["audits"]["digits"]["corruption_baseline"] = "digits/none/ERM"
    return config


def test_copies_belong_to_the_images_and_a_dataset_without_them_is_what_it_was(corrupted):
    run = Run(completed(corrupted))
    audit = run.audits["digits"]
    settings = audit.dataset.image_settings()["corrupted"]
    assert settings == {**COPIES, "corruptions": None, "severities": None, "preprocessing": {"method": "none"}}
    assert "corrupted" not in run.datasets["digits-train"].image_settings()
    assert table_settings(audit).corruption_baseline == "none/ERM"
    assert any("nowhere/C: there is no such file or folder" in message for message in missing_files([audit]))


@pytest.mark.parametrize(
    ("path", "value", "facts"),
    [
        (("audits", "digits", "corruption_baseline"), "digits/none/ER", ["corruption_baseline", "'digits/none/ERM'"]),
        (("measures", "corruption", "severities"), [1], ["brings its own copies", "severities", "`corrupted`"]),
        (("measures", "corruption", "corruptions"), ["fogg"], ["corruption 'fogg'", "'fog'"]),
        (("datasets", "digits", "corrupted", "severities"), [6], ["corrupted: severities", "at most 5"]),
        (("datasets", "digits", "corrupted", "corruptions"), ["fog", "fog"], ["'fog' stands more than once"]),
        (("datasets", "digits", "corrupted", "severity"), 1, ["key 'severity'", "'severities'"]),
        (("datasets", "digits", "corrupted", "path"), "a{b}", ["corrupted: path", "braces"]),
    ],
)
def test_mistakes_in_corrupted_copies_are_named(corrupted, path, value, facts):
    text = refusal_with(corrupted, path, value)
    assert not [fact for fact in facts if fact not in text], text
