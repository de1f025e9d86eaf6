"""Two networks, two mappers and two tasks on real faces: every table against the formulas, computed directly.

Real people: by group only, never by face.
"""

import json
from itertools import product

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from fairlearn import metrics as fairlearn

from gfscore.tables.parquet_tables import read_logits, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.catalogue import CATALOGUE
from helpers.real_audits import FACES

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(180)]

AUDIT = "fairface-tasks"
CONFIG = f"configs/{AUDIT}.yaml"
TASKS = {"faces-gender": "gender", "faces-age": "age"}
ATTRIBUTES = ["age", "gender", "race"]
MODELS = ["convolutions", "transformer"]
MAPPERS = ["faces-vae", "faces-conditional"]
POSITIVE = {"faces-gender": "Male"}
TEXTS = {".csv", ".json", ".html"}


@pytest.fixture(scope="module")
def audited(fresh_copy, real_data):
    """A copy of the repository with two tasks of that audit made: of a quarter of the faces, with short trainings and searches."""
    repository = fresh_copy()
    config = yaml.safe_load((repository.path / CONFIG).read_text())
    config["audits"][AUDIT]["tasks"] = [task for task in TASKS if task != config["audits"][AUDIT]["dataset"]]
    for entry in config["datasets"].values():
        entry |= {"path": str(real_data / FACES), "subset": {"every": 4}}
    for zoo in config["models"].values():
        for entry in zoo["none"].values():
            entry["training"] |= {"epochs": 3, "recipe": {"warmup_epochs": 0, "clip_norm": 1.0}}
    for mapper in config["mappers"].values():
        mapper |= {"epochs": 1, "search": {"subset": {"every": 25}, "steps": 4, "bisections": 1}}
    (repository.path / "small.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    repository.snakemake("--configfile", "small.yaml", "--omit-from", "plot_figures")
    return repository


@pytest.fixture(scope="module")
def stored(real_data):
    """Age, gender and race of the 5,000 faces by the name that a sample has."""
    frame = pq.read_table(real_data / FACES, columns=ATTRIBUTES).to_pandas()
    return frame.set_index("fairface_5000_64px/" + frame.index.map("{:06d}".format))


def table_of(repository, name):
    return read_table(repository.path / f"results/audits/{AUDIT}/{name}.parquet", CATALOGUE[name])


def moves_of(repository, mapper, task, model):
    """u+ and u- of each face and dimension, data frames (n, D), NaN where a side has no room."""
    path = repository.path / f"results/projections/{mapper}/{task}/none/{model}.parquet"
    samples = read_table(path, CATALOGUE["samples of kind projection"])
    return [samples.pivot(index="sample_id", columns="dimension", values=side) for side in ("up", "down")]


def tolerances(up, down):
    """Section 5.2 in units of sigma, 0 to 1: the mean of both sides, or the one that there is."""
    return pd.DataFrame(np.nanmean([up, down], axis=0), up.index, up.columns)


def differences(faces, positive):
    """DP, EOpp and EOdd of one class by Eq. 2 to 4, the last as a difference; NaN where a cell is empty."""
    rates = {}
    for group, own in faces.groupby("group"):
        predicted, right = own["prediction"] == positive, own["label"] == positive
        rates[group] = [predicted.mean(), predicted[right].mean(), predicted[~right].mean()]
    rates = np.array(list(rates.values()), dtype=float)
    dp, true, false = rates.max(axis=0) - rates.min(axis=0)
    undefined = np.isnan(rates).any(axis=0)
    return [dp, np.nan if undefined[1] else true, np.nan if undefined[1:].any() else max(true, false)]


def expected_differences(repository, stored, task, model, attribute):
    """Of the positive class of a task, or the mean over classes that have a value."""
    sample_id, label, logits = read_logits(repository.path / f"results/logits/{task}/none/{model}.parquet")
    classes = sorted(stored[TASKS[task]].unique())
    faces = pd.DataFrame({"label": label, "prediction": logits.argmax(axis=1)}, index=sample_id)
    assert (np.array(classes)[label] == stored.loc[sample_id, TASKS[task]]).all()
    faces["group"] = stored.loc[sample_id, attribute]
    chosen = [classes.index(POSITIVE[task])] if task in POSITIVE else range(len(classes))
    found = np.array([differences(faces, positive) for positive in chosen])
    return [np.nan if np.isnan(column).all() else np.nanmean(column) for column in found.T]


def test_every_task_is_of_the_same_faces(audited):
    digests = [pq.read_table(audited.path / f"results/datasets/{task}.parquet").to_pandas() for task in TASKS]
    names = [frame.set_index("sample_id")["image_digest"] for frame in digests]
    assert names[0].equals(names[1]) and len(names[0]) == 625
    for mapper in MAPPERS:
        projected = [moves_of(audited, mapper, task, "transformer")[0].index.tolist() for task in TASKS]
        assert projected[0] == projected[1] and len(projected[0]) == 25


def test_networks_are_judged_by_other_faces_than_they_were_trained_on(audited):
    folder = audited.path / "results/datasets"
    halves = [read_table(folder / f"{name}.parquet", DATASET) for name in ("faces-gender", "faces-gender-train")]
    assert not set(halves[0]["image_digest"]) & set(halves[1]["image_digest"])


def faces_of(repository, stored, model):
    """Label, prediction and attributes of the faces that a network of the first task answered."""
    sample_id, label, logits = read_logits(repository.path / f"results/logits/faces-gender/none/{model}.parquet")
    faces = pd.DataFrame({"label": label, "prediction": logits.argmax(axis=1)}, index=sample_id)
    return faces.join(stored)


def test_groups_are_those_of_the_data(audited, stored):
    scores = table_of(audited, "group_scores")
    scores = scores[(scores["measure"] == "clean") & (scores["class_index"] == -1)]
    assert len(scores) == len(MODELS) * sum(stored[name].nunique() for name in ATTRIBUTES)
    for row in scores.itertuples():
        faces = faces_of(audited, stored, row.model)
        faces = faces[faces[row.attribute] == row.group]
        assert row.n == len(faces)
        assert row.value == pytest.approx((faces["label"] == faces["prediction"]).mean())
        assert row.low <= row.value <= row.high


def test_differences_of_groups_are_fairlearns(audited, stored):
    metrics = table_of(audited, "group_metrics").set_index(["model", "attribute", "metric"])["value"]
    assert (metrics.xs("race", level="attribute") > 0).any(), "that no network answers one class for every face"
    for model, attribute in product(MODELS, ("age", "race")):
        faces = faces_of(audited, stored, model)
        given = {"y_true": faces["label"], "y_pred": faces["prediction"], "sensitive_features": faces[attribute]}
        expected = {
            "dp": fairlearn.demographic_parity_difference(**given),
            "eopp": fairlearn.equal_opportunity_difference(**given),
            "eodd": fairlearn.equalized_odds_difference(**given),
            "aodd": fairlearn.equalized_odds_difference(**given, agg="mean"),
        }
        assert metrics.loc[model, attribute].to_dict() == pytest.approx(expected, abs=1e-12)


def test_the_gate_judges_the_gap_between_groups(audited):
    (rule,) = json.loads(audited.read(f"results/audits/{AUDIT}/verdict.json"))["rules"]
    assert (rule["statistic"], rule["attribute"]) == ("group_gap", "race")


def test_scores_over_all_sensitive_attributes_are_the_formulas(audited):
    models = table_of(audited, "projection_models").set_index(["mapper", "dataset", "model"])
    assert len(models) == len(MAPPERS) * len(TASKS) * len(MODELS)
    for mapper, task, model in product(MAPPERS, TASKS, MODELS):
        up, down = moves_of(audited, mapper, task, model)
        own = up.columns.str.startswith(f"{TASKS[task]}=")
        tolerance = tolerances(up, down).loc[:, ~own]
        row = models.loc[(mapper, task, model)]
        assert row["tolerance"] == pytest.approx(tolerance.to_numpy().mean())
        assert row["dimensions"] == tolerance.shape[1]
        _, label, logits = read_logits(audited.path / f"results/logits/{task}/none/{model}.parquet")
        assert row["task_accuracy"] == (logits.argmax(axis=1) == label).mean()
        if mapper == "faces-vae":
            assert row["deviation"] == pytest.approx(np.abs(up - down).to_numpy().mean() / 2)
            assert pd.isna(row["resized"])
        else:
            assert np.isnan(row["deviation"]) and row["resized"] == "64x64 to 32x32"
        by_dimension = tolerance.mean()
        share = (1 - by_dimension / by_dimension.max()).to_numpy()
        share = share[share > 0]
        assert row["coupling"] == pytest.approx(-(share * np.log(share)).sum(), abs=1e-12)


def test_every_task_by_every_attribute_is_the_formulas(audited, stored):
    rows = table_of(audited, "projection_attributes").set_index(["mapper", "dataset", "model", "attribute"])
    assert rows.index.is_unique and len(rows) == len(TASKS) * len(MODELS) * (3 + 6 + 3)
    for task, model, attribute in product(TASKS, MODELS, ATTRIBUTES):
        up, down = moves_of(audited, "faces-conditional", task, model)
        moved = tolerances(up, down).loc[:, up.columns.str.startswith(f"{attribute}=")]
        row = rows.loc[("faces-conditional", task, model, attribute)]
        assert row["tolerance"] == pytest.approx(moved.to_numpy().mean()) and row["dimensions"] == moved.shape[1]
        assert row["own"] == (TASKS[task] == attribute)
        expected = expected_differences(audited, stored, task, model, attribute)
        for mapper in MAPPERS:
            found = rows.loc[(mapper, task, model, attribute), ["dp", "eopp", "eodd"]].to_numpy(dtype=float)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.isnan(rows.loc[("faces-vae", task, model, attribute), "tolerance"])
        if TASKS[task] == attribute:
            # A network that answers one class for all faces has no difference.
            assert np.isnan(row["eopp"]) and row["dp"] >= 0


def test_means_over_attributes_leave_the_task_itself_out(audited, stored):
    models = table_of(audited, "projection_models").set_index(["mapper", "dataset", "model"])
    for task, model in product(TASKS, MODELS):
        others = [name for name in ATTRIBUTES if name != TASKS[task]]
        values = {name: [expected_differences(audited, stored, task, of, name) for of in MODELS] for name in others}
        complete = [name for name, of in values.items() if not np.isnan(of).any()]
        row = models.loc[("faces-conditional", task, model)]
        if complete:
            assert row["group_attributes"] == len(complete)
            mean = np.mean([values[name][MODELS.index(model)] for name in complete], axis=0)
            np.testing.assert_allclose(row[["dp", "eopp", "eodd"]].to_numpy(dtype=float), mean, atol=1e-12)


def test_what_is_made_of_the_audit_names_tasks_and_mappers_and_no_face(audited):
    files = [path for path in (audited.path / f"results/audits/{AUDIT}").rglob("*") if path.suffix in TEXTS]
    made = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert all(name in made["report.html"] for name in (*TASKS, *MAPPERS)) and "group_scores.csv" in made
    assert [name for name, text in made.items() if "fairface_5000_64px/" in text] == []


def test_a_bundle_of_the_audit_is_consistent(audited):
    for arguments in (["bundle", AUDIT, "--to", "bundle"], ["verify", "bundle"]):
        code, said = audited.gfscore(*arguments)
        assert code == 0, said[-2000:]
