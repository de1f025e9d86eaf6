"""What config.yaml may say about corrupted copies of a dataset and mean corruption errors."""

import pytest

from gfscore.workflow.plan import Run
from gfscore.workflow.replaced_files import missing_files
from shipped_configuration import completed, refusal_with, shipped_configuration

COPIES = {"path": "nowhere/C"}


@pytest.fixture
def config():
    """The demo, whose digits have copies in a folder that is not there, and are measured on all of them."""
    config = shipped_configuration()
    config["datasets"]["digits"]["corrupted"] = dict(COPIES)
    config["measures"]["corruption"] = {"kind": "corruption"}
    config["audits"]["digits"]["corruption_baseline"] = "digits/none/ERM"
    return config


def test_copies_belong_to_the_images_and_a_dataset_without_them_is_what_it_was(config):
    run = Run(completed(config))
    audit = run.audits["digits"]
    settings = audit.dataset.image_settings()["corrupted"]
    assert settings == {**COPIES, "corruptions": None, "severities": None, "preprocessing": {"method": "none"}}
    assert "corrupted" not in run.datasets["digits-train"].image_settings()
    assert audit.table_settings()["corruption_baseline"] == "none/ERM"
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
def test_mistakes_are_named(config, path, value, facts):
    text = refusal_with(config, path, value)
    assert not [fact for fact in facts if fact not in text], text
