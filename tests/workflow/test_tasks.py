"""Two networks, two mappers and three tasks on real faces: every table against the formulas, computed directly.

Real people: by group only, never by face.
"""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from gfscore.tables.parquet_tables import read_logits, read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.real_audits import FACES

pytestmark = pytest.mark.workflow

AUDIT = "fairface-tasks"
CONFIG = f"configs/{AUDIT}.yaml"
TASKS = {"faces-gender": "gender", "faces-age": "age", "faces-race": "race"}
MODELS = ["convolutions", "transformer"]
MAPPERS = ["faces-vae", "faces-conditional"]
POSITIVE = {"faces-gender": "Male"}


@pytest.fixture(scope="module")
def audited(fresh_copy, real_data):
    """A copy of the repository with that audit made of a fifth of the faces, one epoch each, and fewer steps."""
    repository = fresh_copy()
    config = yaml.safe_load((repository.path / CONFIG).read_text())
    for entry in config["datasets"].values():
        entry |= {"path": str(real_data / FACES), "subset": {"every": 5}}
    for zoo in config["models"].values():
        for entry in zoo["none"].values():
            entry["training"] |= {"epochs": 1, "recipe": {"warmup_epochs": 0, "clip_norm": 1.0}}
    for mapper in config["mappers"].values():
        mapper |= {"epochs": 1, "search": {"subset": {"every": 25}, "steps": 4, "bisections": 1}}
    (repository.path / "small.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    repository.snakemake("--configfile", "small.yaml")
    return repository


@pytest.fixture(scope="module")
def stored(real_data):
    """Age, gender and race of the 5,000 faces by the name that a sample has."""
    frame = pq.read_table(real_data / FACES, columns=list(TASKS.values())).to_pandas()
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
    assert all(found.equals(names[0]) for found in names) and len(names[0]) == 500
    for mapper in MAPPERS:
        projected = [moves_of(audited, mapper, task, "transformer")[0].index.tolist() for task in TASKS]
        assert projected[0] == projected[1] == projected[2] and len(projected[0]) == 20


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
    for task, model, attribute in product(TASKS, MODELS, TASKS.values()):
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
        others = [name for name in TASKS.values() if name != TASKS[task]]
        values = {name: [expected_differences(audited, stored, task, of, name) for of in MODELS] for name in others}
        complete = [name for name, of in values.items() if not np.isnan(of).any()]
        row = models.loc[("faces-conditional", task, model)]
        if complete:
            assert row["group_attributes"] == len(complete)
            mean = np.mean([values[name][MODELS.index(model)] for name in complete], axis=0)
            np.testing.assert_allclose(row[["dp", "eopp", "eodd"]].to_numpy(dtype=float), mean, atol=1e-12)


def test_the_page_names_tasks_and_mappers_and_no_face(audited):
    text = audited.read(f"results/audits/{AUDIT}/report.html")
    assert all(name in text for name in (*TASKS, *MAPPERS)) and "fairface_5000_64px/" not in text


def test_a_bundle_of_the_audit_is_consistent(audited):
    command = [sys.executable, "-P", "-m", "gfscore.workflow.command"]
    environment = os.environ | {"PYTHONPATH": str(audited.path / "workflow_scripts")}
    for arguments in (["bundle", AUDIT, "--to", "bundle"], ["verify", "bundle"]):
        done = subprocess.run(
            [*command, *arguments], cwd=audited.path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
