"""Names of a classifier on a dataset."""

from gfscore.core.identity import ModelName

NAME = ModelName("cifar10", "linf", "wrn")


def test_names_of_a_model():
    assert NAME.label == "linf/wrn"
    assert NAME.path == "cifar10/linf/wrn"
    assert NAME.columns() == {"dataset": "cifar10", "threat": "linf", "model": "wrn"}


def test_name_of_a_row():
    assert ModelName.from_columns({**NAME.columns(), "value": "0.5"}) == NAME
