"""A task that is an attribute: its name is its class's, and its groups are none of its audit's."""

from pathlib import Path

import pytest
import yaml

from gfscore.workflow.configuration import require_valid
from shipped_configuration import SCHEMA, refusal

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def change_task(config, **changes):
    for name in ("celeba", "celeba-train", "celeba-train-of-mappers"):
        config["datasets"][name].update(changes)


def test_another_task_is_refused_until_everything_that_names_the_first_one_is_changed(config):
    groups = config["audits"]["celeba-24"]["groups"]
    change_task(config, task="Eyeglasses")
    words = refusal(config)
    assert "audits: celeba-24: groups: attributes: 'Eyeglasses' is the task: its groups are the classes" in words
    assert "audits: celeba-24: groups: positive: class 'Attractive' is unknown; known: no Eyeglasses, Eyegl" in words
    groups["attributes"].remove("Eyeglasses")
    groups["positive"] = "Eyeglasses"
    require_valid(config, SCHEMA)
    groups["positive"] = "no Eyeglasses"
    require_valid(config, SCHEMA)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (["not attractive", "attractive"], "label 1 has the task 'Mouth_Slightly_Open', but is called 'attractive'"),
        (
            ["Mouth_Slightly_Open", "not mouth slightly open"],
            "label 1 has the task 'Mouth_Slightly_Open', but is called 'not mouth slightly open'; write null",
        ),
        (["a", "b", "c"], "there are 2, without and with the task 'Mouth_Slightly_Open', not 3"),
    ],
)
def test_classes_that_do_not_name_the_task_are_refused(config, classes, expected):
    groups = config["audits"]["celeba-24"]["groups"]
    groups["attributes"].remove("Mouth_Slightly_Open")
    groups["positive"] = None
    change_task(config, task="Mouth_Slightly_Open", classes=classes)
    words = refusal(config)
    assert f"datasets: celeba-train: classes: {expected}" in words
    change_task(config, classes=["shut", "mouth slightly open"])
    require_valid(config, SCHEMA)


def test_names_of_ones_own_are_the_classes_that_an_audit_may_call_positive(config):
    change_task(config, classes=["not attractive", "attractive"])
    assert "positive: class 'Attractive' is unknown; did you mean 'attractive'?" in refusal(config)
    config["audits"]["celeba-24"]["groups"]["positive"] = "attractive"
    require_valid(config, SCHEMA)
