"""Where the values of an audit are read: each model's own, of the files that they were made of."""

import numpy as np
import pandas as pd
import pytest

from gfscore.core.errors import InputError
from helpers.steps import MEASURES, audit_inputs, made_logits, models_named, three_models


@pytest.fixture
def audit(tmp_path):
    audit = three_models(tmp_path, given=("weak",))
    audit.score()
    return audit


def test_logits_are_those_that_the_scores_were_made_of(audit):
    inputs = audit.inputs()
    for index, model in enumerate(inputs.subject.models):
        found, (logits, labels) = inputs.logits_of(model), made_logits(index)
        np.testing.assert_array_equal(found.logits, logits)
        np.testing.assert_array_equal(found.labels, labels)
        assert list(found.sample_id) == list(audit.ids)
        assert found.identity["model"] == model.classifier


@pytest.mark.parametrize(("name", "index"), [("weak", 0), ("middle", 1)])
def test_logits_that_changed_since_are_refused(audit, name, index):
    logits, labels = made_logits(index)
    audit.write_logits(name, logits + 1, labels, checkpoint_sha256="another")
    inputs = audit.inputs()
    with pytest.raises(InputError, match=rf"{name}\.(npy|parquet): .*run the same command again"):
        inputs.logits_of(inputs.subject.models[index])


def test_values_come_from_the_table_of_all_models_or_from_a_models_own_file(tmp_path):
    models = models_named("computed", "brought", "left out")
    columns = {"sample_id": ["a", "b"], "label": [0, 1], "prediction": [0, 0]}
    frames = {
        (model["model"], measure): pd.DataFrame(columns | {"value": [0.1 * place, 1.0]})
        for place, model in enumerate(models)
        for measure in MEASURES
    }
    included = ["none/computed", "none/brought"]
    inputs = audit_inputs(tmp_path, models, MEASURES, frames, included=included, given={"none/brought": "samples"})
    found = {(item.model.classifier, item.measure.name): item.low.tolist() for item in inputs.uncalibrated()}
    names = [(name, measure) for name in ("computed", "brought") for measure in MEASURES]
    assert found == {name: frames[name]["value"].tolist() for name in names}
    computed, brought = inputs.included
    assert inputs.table(computed, "clean") is inputs.table(computed, "clean")
    assert inputs.path(computed, "clean") == "results/logits/toy/none/computed.parquet"
    assert inputs.path(brought, "clean") == tmp_path / "clean-brought.parquet"
    assert [inputs.identity(brought, name)["measure"] for name in MEASURES] == list(MEASURES)
    assert [source["model"] for source in inputs.sources()] == ["computed", "brought"]


def test_a_score_that_the_table_of_all_models_lacks_is_refused(audit):
    inputs = audit.inputs(measures=MEASURES | {"other": {"kind": "great", "activation": "sigmoid"}})
    with pytest.raises(InputError, match=r"scores\.parquet: holds no other of none/weak; delete it"):
        list(inputs.uncalibrated())
