from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.classwise.confusion import confusion_tables, predictions_of
from gfscore.audit.classwise.similarity import similarity_table
from gfscore.audit.settings import ConfusionSettings
from helpers.steps import audit_inputs, models_named

NAMES = ["cat", "dog", "frog"]
MEASURES = {
    "clean": {"kind": "clean"},
    "great": {"kind": "great", "activation": "softmax"},
    "attacked": {"kind": "adversarial"},
    "corrupted": {"kind": "corruption"},
}
LABELS = np.repeat([0, 1, 2], 10)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    models = models_named("A", "B", "left out", dataset="pets")
    wrong = np.where(np.arange(30) < 4, 1, LABELS)
    clean = pd.DataFrame({"sample_id": [f"s{i}" for i in range(30)], "label": LABELS, "prediction": wrong, "value": 0})
    mild, strong = (
        clean.assign(prediction=guess, corruption="fog", severity=severity) for severity, guess in ((1, LABELS), (5, 2))
    )
    frames = {"clean": clean, "great": clean, "attacked": clean.assign(prediction=1)}
    frames |= {"corrupted": pd.concat([mild, strong])}
    samples = {(model["model"], measure): frame for model in models for measure, frame in frames.items()}
    folder = tmp_path_factory.mktemp("confusions")
    inputs = audit_inputs(folder, models, MEASURES, samples, included=["none/A", "none/B"])
    predictions = list(predictions_of(inputs))
    confusions, errors = confusion_tables(predictions, NAMES)
    similarities = similarity_table(predictions, NAMES, ConfusionSettings(shuffles=19, models=5))
    return SimpleNamespace(confusions=confusions, class_errors=errors, similarities=similarities)


def test_only_models_that_take_part_and_measures_that_predict(tables):
    assert set(tables.class_errors["model"]) == {"A", "B"}
    assert set(tables.class_errors["measure"]) == {"clean", "attacked", "corrupted"}


def test_cells_that_never_occur_have_no_row(tables):
    clean = tables.confusions[(tables.confusions["model"] == "A") & (tables.confusions["measure"] == "clean")]
    cells = clean[["true_index", "predicted_index", "count"]].to_numpy().tolist()
    assert cells == [[0, 0, 6], [0, 1, 4], [1, 1, 10], [2, 2, 10]]


def test_each_corruption_and_severity_and_all_together(tables):
    rows = tables.class_errors[(tables.class_errors["model"] == "B") & (tables.class_errors["measure"] == "corrupted")]
    whole = rows[rows["corruption"].isna()].set_index("class_name")
    assert whole["n"].tolist() == [20, 20, 20]
    assert whole["recall"].tolist() == [0.5, 0.5, 1.0]
    assert whole["cfps"].tolist() == [0, 0, 1]
    strong = rows[rows["severity"] == 5].set_index("class_name")
    assert strong["recall"].tolist() == [0, 0, 1]
    mild = rows[rows["severity"] == 1].set_index("class_name")
    assert mild["cfps"].isna().all()


def test_similarities_are_of_pairs_and_of_measures_with_one_row_per_sample(tables):
    assert set(tables.similarities["measure"]) == {"clean", "attacked"}
    assert set(zip(tables.similarities["first"], tables.similarities["second"], strict=True)) == {("none/A", "none/B")}
    agreement = tables.similarities[tables.similarities["similarity"] == "agreement"]
    agreement = agreement[agreement["class_index"].isna()]
    assert agreement["value"].tolist() == [1.0, 1.0]
    assert agreement["n"].tolist() == [30, 30]


def test_agreement_of_each_class_stands_below_that_of_all_samples(tables):
    rows = tables.similarities[tables.similarities["class_index"].notna()]
    assert set(rows["similarity"]) == {"agreement"}
    clean = rows[rows["measure"] == "clean"]
    assert clean["class_name"].tolist() == NAMES
    assert clean["n"].tolist() == [10, 10, 10]
    assert clean["value"].tolist() == [1, 1, 1]
    # Both call 4 of 10 cats dogs: by chance .6 .6 + .4 .4 = .52 of them get the same prediction, all else always.
    assert clean["baseline"].to_numpy() == pytest.approx([0.52, 1, 1], abs=0.15)
    assert clean["p_value"].tolist() == [0.05, 1, 1]


def test_recall_errors_and_confusions_of_one_corruption_and_severity(tables):
    """At severity 5 all 30 are called frogs: of 20 errors all fall on frogs; at severity 1 there is none."""
    strong, mild = (
        frame[(frame["model"] == "A") & (frame["severity"] == severity)]
        for frame, severity in ((tables.confusions, 5), (tables.confusions, 1))
    )
    cells = ["true_index", "predicted_index", "count"]
    assert strong[cells].to_numpy().tolist() == [[0, 2, 10], [1, 2, 10], [2, 2, 10]]
    assert mild[cells].to_numpy().tolist() == [[0, 0, 10], [1, 1, 10], [2, 2, 10]]
    assert set(strong["corruption"]) == {"fog"}
    whole = tables.confusions[(tables.confusions["model"] == "A") & (tables.confusions["measure"] == "corrupted")]
    assert whole[whole["corruption"].isna()]["count"].sum() == 60 and len(whole) == 5 + 3 + 3
    errors = tables.class_errors[(tables.class_errors["model"] == "A") & (tables.class_errors["severity"] == 5)]
    assert errors["cfps"].tolist() == [0, 0, 1] and errors["false_positives"].tolist() == [0, 0, 20]
