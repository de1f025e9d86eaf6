"""Where the values of an audit are read: each model's own, of the files that they were made of."""

import json

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
    inputs = audit_inputs(tmp_path, models, MEASURES, frames, included=included, supplied={"none/brought": "samples"})
    found = {(item.model.classifier, item.measure.name): item.low.tolist() for item in inputs.uncalibrated()}
    names = [(name, measure) for name in ("computed", "brought") for measure in MEASURES]
    assert found == {name: frames[name]["value"].tolist() for name in names}
    computed, brought = inputs.included
    assert inputs.table(computed, "clean") is inputs.table(computed, "clean")
    assert inputs.path(computed, "clean") == "results/logits/toy/none/computed.parquet"
    assert inputs.path(brought, "clean") == tmp_path / "clean-brought.parquet"
    assert [inputs.identity(brought, name)["measure"] for name in MEASURES] == list(MEASURES)
    assert [source["model"] for source in inputs.sources()] == ["computed", "brought"]


@pytest.mark.parametrize(("eps", "fault"), [("8/255", None), ("4/255", r"attack-m\.parquet: measured with eps 0\.03")])
def test_values_of_other_settings_than_are_asked_for_are_refused(tmp_path, eps, fault):
    frame = pd.DataFrame({"sample_id": ["a", "b"], "label": [0, 1], "prediction": [0, 0], "value": [0.0, 1.0]})
    recorded = json.dumps({"kind": "adversarial", "norm": "linf", "eps": 8 / 255, "setting_of_another_version": 1})
    inputs = audit_inputs(
        tmp_path,
        models_named("m"),
        {"attack": {"kind": "adversarial", "norm": "linf", "eps": eps}},
        {("m", "attack"): frame.assign(clean_prediction=[0, 0])},
        about={"attack": {"settings": recorded}},
    )
    if fault is None:
        assert [item.low.tolist() for item in inputs.uncalibrated()] == [[0.0, 1.0]]
    else:
        with pytest.raises(InputError, match=f"{fault}.*asks for 0\\.01.*delete it and run the same command again"):
            list(inputs.uncalibrated())


def test_a_score_that_the_table_of_all_models_lacks_is_refused(audit):
    inputs = audit.inputs(measures=MEASURES | {"other": {"kind": "great", "activation": "sigmoid"}})
    with pytest.raises(InputError, match=r"scores\.parquet: holds no other of none/weak; delete it"):
        list(inputs.uncalibrated())


PROOF_AND_ATTACK = {
    "proof": {"kind": "proven", "eps": "2/255"},
    "attack": {"kind": "adversarial", "eps": "2/255"},
    "band": {"kind": "robust", "eps": "2/255"},
}


def samples_of(values, **columns):
    """Samples table of five samples of the classes 0 and 1, of which the last one is wrong."""
    known = {"sample_id": list("abcde"), "label": [0, 0, 1, 1, 1], "clean_prediction": [0, 0, 1, 1, 0]}
    return pd.DataFrame({**known, "prediction": 0, "value": values, **columns})


def band_of(folder, *, attacked, proven=(1, 0, 0, 1, 0)):
    """AuditValues of one model with a proof, an attack and what is made of both."""
    status = ["proven" if value else "open" for value in proven]
    tables = {("net", "proof"): samples_of(proven, status=status), ("net", "attack"): samples_of(attacked)}
    return audit_inputs(folder, models_named("net"), PROOF_AND_ATTACK, tables)


def test_a_measure_that_is_made_of_others_has_intervals_of_their_values_and_no_file_of_its_own(tmp_path):
    inputs = band_of(tmp_path, attacked=[1, 1, 0, 1, 0])
    proof, attack, band = inputs.uncalibrated()
    assert band.low.tolist() == proof.low.tolist() == [1, 0, 0, 1, 0]
    assert band.high.tolist() == attack.low.tolist() == [1, 1, 0, 1, 0]
    assert band.correct.tolist() == [True, True, True, True, False] and not band.missing.any()
    (model,) = inputs.included
    assert inputs.path(model, "band") == inputs.path(model, "proof") == tmp_path / "proof-net.parquet"
    assert inputs.identity(model, "band") == inputs.identity(model, "proof")


def test_a_sample_that_only_some_members_have_is_known_by_these(tmp_path):
    inputs = band_of(tmp_path, attacked=[1, 1, 0, 1, 0])
    model = inputs.included[0]
    for measure, left_out in (("proof", "a"), ("attack", "b")):
        table = inputs.table(model, measure)
        inputs.tables[model, measure] = table[table["sample_id"] != left_out]
    band = inputs.sample_values(model, "band")
    assert band.low.tolist() == [0, 0, 0, 1, 0] and band.high.tolist() == [1, 1, 0, 1, 0]


def test_a_proof_against_an_attack_stops_with_model_sample_and_both_files(tmp_path):
    inputs = band_of(tmp_path, attacked=[0, 1, 0, 1, 0])
    with pytest.raises(InputError, match=r"none/net: \S*proof-net.parquet and \S*attack-net.parquet: the sample 'a'"):
        list(inputs.uncalibrated())
