"""Attributes and groups in a configuration: what is refused; a task that is an attribute is no group of its audit."""

import pytest

from gfscore.workflow.plan import Run
from helpers.configurations import completed, refusal, shipped_configuration


@pytest.fixture
def config():
    return shipped_configuration()


def change_task(config, **changes):
    """The audit celeba-24 of one task, with changes of its datasets; its groups."""
    audit = config["audits"]["celeba-24"]
    config["audits"].pop("celeba-tasks", None)
    if audit["tasks"]:
        audit["tasks"] = []
        audit["groups"]["positive"] = "Attractive"
        audit["groups"]["attributes"].remove("Attractive")
    for name in ("celeba", "celeba-train", "celeba-train-of-mappers"):
        config["datasets"][name].update(changes)
    return audit["groups"]


def cut(**changes):
    return {"columns": [{"column": "loops", "cut": [1], "names": ["a", "b"]} | changes]}


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"source": "digit"}, ["datasets: digits: attributes: source", "'digits'"]),
        ({"fixed_on": "digits-trian"}, ["fixed_on", "'digits-train'"]),
        ({"fixed_on": None}, ["stroke_mass", "fixed_on"]),
        ({"missing": "ignore"}, ["attributes: missing", "'ignore'"]),
        ({"key": "id"}, ["key 'key' is unknown"]),
        ({"columns": ["loops", "loops"]}, ["columns", "'loops'"]),
        ({"columns": ["sample_id"]}, ["columns", "'sample_id'"]),
        ({"columns": [5]}, ["columns: 0: 5"]),
        (cut(cut=[2, 1], names=["a", "b", "c"]), ["loops", "must ascend", "[2, 1]"]),
        (cut(names=["a", "b", "c"]), ["loops", "2 groups"]),
        (cut(names=["m", "m\u200b"]), ["loops", r"'m' and 'm\u200b'"]),
        (cut(names=["a", "a"]), ["more than once"]),
        (cut(cuts=[1]), ["columns: 0: cuts", "'cut'"]),
    ],
)
def test_attributes_that_cannot_be_read_are_refused(config, change, facts):
    config["datasets"]["digits"]["attributes"].update(change)
    text = refusal(config)
    assert not [fact for fact in facts if fact not in text], text


def test_quantiles_need_samples_of_their_own(config):
    entry = {"column": "age", "quantiles": [0.5], "names": ["young", "old"]}
    config["datasets"]["digits"]["attributes"] = {"source": "table", "path": "people.csv", "columns": [entry]}
    config["audits"]["digits"]["groups"] = None
    text = refusal(config)
    assert "age" in text and "`cut`" in text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"attributes": ["slnt"]}, ["audits: digits: groups", "'slnt'", "'slant'"]),
        ({"balanced": {"attribute": "loop"}}, ["groups: balanced: attribute: ", "'loop'", "'loops'"]),
        ({"positive": "11"}, ["groups: positive", "'11'"]),
        ({"minimum_cell": 0}, ["minimum_cell"]),
        ({"zzz": 1}, ["zzz"]),
    ],
)
def test_groups_that_are_not_there_are_refused(config, change, facts):
    config["audits"]["digits"]["groups"].update(change)
    text = refusal(config)
    assert not [fact for fact in facts if fact not in text], text


def test_groups_need_attributes_and_right_labels(config):
    config["datasets"]["digits"]["label_error_rate"] = 0.01
    assert "label_error_rate: null" in refusal(config)
    config["datasets"]["digits"] |= {"label_error_rate": None, "attributes": None}
    assert "'digits' has no attributes" in refusal(config)
    # Attributes that only the data name cannot be all of them.
    config["datasets"]["digits"]["attributes"] = {"source": "celeba"}
    del config["audits"]["digits"]["groups"]["attributes"]
    assert "groups: attributes" in refusal(config)


def test_another_task_is_refused_until_everything_that_names_the_first_one_is_changed(config):
    groups = change_task(config, task="Eyeglasses")
    text = refusal(config)
    assert "'Eyeglasses' is the task" in text and "'Attractive' is unknown" in text
    groups["attributes"].remove("Eyeglasses")
    for positive in ("Eyeglasses", "no Eyeglasses"):
        groups["positive"] = positive
        completed(config)


def test_the_column_of_labels_of_a_table_is_no_attribute_of_its_groups(config):
    people = {"source": "table", "path": "people.csv", "columns": ["sex", "age"]}
    config["datasets"]["people"] = {"path": "people.csv", "source": "image_csv", "label": "sex", "attributes": people}
    config["datasets"]["people"] |= {"classes": ["f", "m"], "models_of": "people"}
    config["models"]["people"] = {"none": {"X": {"path": "x.npy"}}}
    config["audits"]["people"] = {"dataset": "people", "groups": {"attributes": ["age"], "positive": "f"}}
    completed(config)
    for attributes in (["sex", "age"], None):
        config["audits"]["people"]["groups"] = {"attributes": attributes} if attributes else {}
        assert "groups: attributes: 'sex' is the task" in refusal(config)


@pytest.mark.parametrize(
    ("classes", "fact"),
    [
        (["not attractive", "attractive"], "is called 'attractive'"),
        (["Mouth_Slightly_Open", "not mouth slightly open"], "is called 'not mouth slightly open'"),
        (["a", "b", "c"], "not 3"),
    ],
)
def test_classes_that_do_not_name_the_task_are_refused(config, classes, fact):
    groups = change_task(config, task="Mouth_Slightly_Open", classes=classes)
    groups["attributes"].remove("Mouth_Slightly_Open")
    groups["positive"] = None
    text = refusal(config)
    assert "datasets: celeba-train: classes" in text and "'Mouth_Slightly_Open'" in text and fact in text
    change_task(config, classes=["shut", "mouth slightly open"])
    completed(config)


def test_names_of_ones_own_are_the_classes_that_an_audit_may_call_positive(config):
    change_task(config, classes=["not attractive", "attractive"])
    text = refusal(config)
    assert "positive" in text and "'attractive'" in text
    config["audits"]["celeba-24"]["groups"]["positive"] = "attractive"
    completed(config)


def test_each_of_several_tasks_may_be_among_the_attributes_and_has_its_own_positive_class(config):
    groups = config["audits"]["celeba-24"]["groups"]
    assert {"Attractive", "Eyeglasses"} <= set(groups["attributes"])
    assert positive_class(config) == "Eyeglasses"
    groups["positive"] = {"celeba": "Attractive", "celeba-eyeglasses": "Eyeglases"}
    assert "'Eyeglases' is unknown" in refusal(config)
    groups["positive"] = {"celeba-train": "Attractive"}
    assert "task 'celeba-train' is unknown" in refusal(config)
    groups["positive"] = "Attractive"
    assert positive_class(completed(config)) is None


def positive_class(config):
    run = Run(config)
    return run.audits["celeba-24"].positive_class(run.datasets["celeba-eyeglasses"])
