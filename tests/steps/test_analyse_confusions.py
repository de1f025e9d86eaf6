from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyse_confusions import analyse_confusions
from gfscore.audit.measured import AuditInputs
from gfscore.core.files import write_json
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.workflow.catalogue import CATALOGUE

NAMES = ["cat", "dog", "frog"]
MEASURES = {
    "clean": {"kind": "clean"},
    "great": {"kind": "great", "activation": "softmax"},
    "attacked": {"kind": "adversarial"},
    "corrupted": {"kind": "corruption"},
}
LABELS = np.repeat([0, 1, 2], 10)


def written(folder, model, measure, frame):
    path = folder / f"{model['model']}-{measure}.parquet"
    table = table_of(MEASURES[measure]["kind"])
    columns = table.column_names
    given = {"sample_id": [f"s{i}" for i in range(30)] * (len(frame) // 30), "value": 0.0, "censored": False}
    write_table(path, table, frame.assign(**given).reindex(columns=columns), identity={**model, "measure": measure})
    return path


@pytest.fixture
def tables(tmp_path):
    models = [{"dataset": "pets", "threat": "none", "model": name} for name in ("A", "B", "left out")]
    paths = []
    for model in models:
        wrong = np.where(np.arange(30) < 4, 1, LABELS)
        clean = pd.DataFrame({"label": LABELS, "prediction": wrong})
        corrupted = pd.concat(
            [
                clean.assign(prediction=guess, corruption="fog", severity=severity)
                for severity, guess in ((1, LABELS), (5, 2))
            ]
        )
        frames = {"clean": clean, "great": clean, "attacked": clean.assign(prediction=1), "corrupted": corrupted}
        paths += [written(tmp_path, model, measure, frame) for measure, frame in frames.items()]
    write_json(tmp_path / "models.json", {"included": ["none/A", "none/B"], "excluded": []})
    write_json(tmp_path / "pets.json", {"classes": NAMES})
    subject = {"models": models, "measures": MEASURES, "calibrated_measure": None}
    inputs = AuditInputs.of(subject, {"samples": paths, "selection": tmp_path / "models.json"})
    out = {name: tmp_path / f"{name}.parquet" for name in ("confusions", "class_errors", "similarities")}
    settings = {"shuffles": 19, "models": 5, "seed": 0}
    analyse_confusions(inputs, tmp_path / "pets.json", out, audit="a", comparison=settings)
    return SimpleNamespace(
        **{name: read_table(path, CATALOGUE[name], expect={"audit": "a"}) for name, path in out.items()}
    )


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
    assert whole["group"].tolist() == ["weak", "weak", "strong"]
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
