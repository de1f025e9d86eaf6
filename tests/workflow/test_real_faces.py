"""Classifiers of real faces through the whole workflow: groups and projections against what they must agree with.

Real people: by group only, never by face.
"""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from fairlearn import metrics as fairlearn

from gfscore.audit.samples import ScoresFile
from gfscore.core.identity import ModelName
from gfscore.tables.parquet_tables import read_attributes, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.catalogue import CATALOGUE
from helpers.real_audits import ATTRIBUTES, FACE_CLASSES, FACES, POSITIVE, TRAININGS, faces_audit

pytestmark = pytest.mark.workflow

AUDIT = "results/audits/faces"
OPTIONS = ("--configfile", "faces.yaml", "--omit-from", "plot_figures")


@pytest.fixture(scope="module")
def audited_faces(fresh_copy, real_data):
    """A copy of the repository with that audit made."""
    repository = fresh_copy()
    (repository.path / "faces.yaml").write_text(yaml.safe_dump(faces_audit(real_data), sort_keys=False))
    repository.snakemake(*OPTIONS)
    return repository


@pytest.fixture(scope="module")
def stored(real_data):
    """Gender, age and race of the 5,000 faces by the name that a sample has."""
    frame = pq.read_table(real_data / FACES, columns=["gender", *ATTRIBUTES]).to_pandas()
    return frame.set_index("fairface_5000_64px/" + frame.index.map("{:06d}".format))


@pytest.fixture(scope="module")
def samples(audited_faces, stored):
    """Label and prediction of each audited face with its attributes, by model."""
    scores, found = ScoresFile(audited_faces.path / "results/scores/faces.parquet"), {}
    for name in TRAININGS:
        frame = scores.read(ModelName("faces", "none", name), "clean")
        found[name] = frame.join(stored, on="sample_id")
    return found


def table_of(repository, name):
    return read_table(repository.path / f"{AUDIT}/{name}.parquet", CATALOGUE[name])


def test_both_halves_are_drawn_within_classes_and_share_no_face(audited_faces, samples, stored):
    tested = samples["transformer"]
    half = read_table(audited_faces.path / "results/datasets/faces.parquet", DATASET)
    assert len(half) == len(stored) // 2 == 2500
    # One image is there twice, and counts once.
    assert len(tested) == half["image_digest"].nunique() == 2499
    assert (np.array(FACE_CLASSES)[tested["label"]] == tested["gender"]).all()
    halves = [json.loads(audited_faces.read(f"results/datasets/{name}.json")) for name in ("faces", "faces-train")]
    assert sum(half["samples"] for half in halves) == len(stored)
    assert halves[0]["digest"] != halves[1]["digest"]
    whole = stored["gender"].value_counts()[FACE_CLASSES]
    assert np.abs(np.array(halves[0]["samples_per_class"]) - whole / 2).max() <= 1


def test_every_classifier_learned_something(audited_faces):
    manifests = [json.loads(audited_faces.read(f"results/trained/faces/none/{name}.json")) for name in TRAININGS]
    accuracies = [manifest["clean_accuracy"] for manifest in manifests]
    # The larger class alone gives .53; 2,500 faces move that by .03 at most.
    assert min(accuracies) > 0.6


def test_groups_are_those_of_the_data_face_by_face(audited_faces, samples):
    frame, categories = read_attributes(audited_faces.path / "results/attributes/faces.parquet")
    joined = frame.set_index("sample_id").loc[samples["transformer"]["sample_id"]]
    for name in ATTRIBUTES:
        assert (joined[name].to_numpy() == samples["transformer"][name].to_numpy()).all()
        assert set(categories[name]) == set(samples["transformer"][name])


def test_group_counts_and_accuracies_are_those_of_the_data(audited_faces, samples):
    scores = table_of(audited_faces, "group_scores")
    scores = scores[(scores["measure"] == "clean") & (scores["class_index"] == -1)]
    assert len(scores) == len(TRAININGS) * (9 + 7)
    for row in scores.itertuples():
        faces = samples[row.model]
        faces = faces[faces[row.attribute] == row.group]
        assert row.n == len(faces)
        assert row.value == pytest.approx((faces["label"] == faces["prediction"]).mean())
        assert row.low <= row.value <= row.high
        assert row.small == (row.n < 20)


def test_metrics_are_fairlearns(audited_faces, samples):
    metrics = table_of(audited_faces, "group_metrics")
    metrics = metrics[metrics["measure"] == "clean"].set_index(["model", "attribute", "metric"])
    assert len(metrics) == len(TRAININGS) * len(ATTRIBUTES) * 4
    positive = FACE_CLASSES.index(POSITIVE)
    for name, faces in samples.items():
        for attribute in ATTRIBUTES:
            given = {"y_true": faces["label"] == positive, "y_pred": faces["prediction"] == positive}
            given["sensitive_features"] = faces[attribute]
            expected = {
                "dp": fairlearn.demographic_parity_difference(**given),
                "eopp": fairlearn.equal_opportunity_difference(**given),
                "eodd": fairlearn.equalized_odds_difference(**given),
                "aodd": fairlearn.equalized_odds_difference(**given, agg="mean"),
            }
            assert metrics.loc[(name, attribute), "value"].to_dict() == pytest.approx(expected, abs=1e-12)
            assert (metrics.loc[(name, attribute), "n"] == len(faces)).all()


def test_metrics_keep_their_order_and_their_bounds(audited_faces):
    metrics = table_of(audited_faces, "group_metrics")
    assert metrics["value"].between(0, 1).all()
    wide = metrics.pivot_table(index=["model", "measure", "attribute"], columns="metric", values="value")
    assert (wide["eopp"] <= wide["eodd"] + 1e-12).all()
    assert (wide["aodd"] <= wide["eodd"] + 1e-12).all()
    assert (wide["eodd"] <= 2 * wide["aodd"] + 1e-12).all()
    assert ((metrics["wilson_low"] <= metrics["value"]) & (metrics["value"] <= metrics["wilson_high"])).all()


def test_the_balanced_part_has_equally_many_of_each_race(audited_faces, samples):
    metrics = table_of(audited_faces, "group_metrics")
    smallest = samples["transformer"]["race"].value_counts().min()
    assert (metrics["balanced_n"] == 7 * smallest).all()


def test_the_gate_judges_the_gap_between_groups_by_guaranteed_bounds(audited_faces):
    verdict = json.loads(audited_faces.read(f"{AUDIT}/verdict.json"))
    assert verdict["verdict"] in ("PASS", "FAIL", "INCONCLUSIVE")
    rules = verdict["rules"]
    assert {rule["attribute"] for rule in rules} == set(ATTRIBUTES)
    assert {rule["statistic"] for rule in rules} == {"group_gap"}


def test_tolerance_and_deviation_lie_within_their_bounds(audited_faces):
    scores = table_of(audited_faces, "projection_scores")
    assert set(scores["model"]) == set(TRAININGS)
    known = scores[scores["n"] > 0]
    assert known["tolerance"].between(0, 1).all()
    assert (known["deviation"] <= 1 - known["tolerance"] + 1e-9).all()
    assert (known["deviation"] >= 0).all()
    assert np.allclose(known["tolerance"], (known["up"] + known["down"]) / 2)
    assert ((known["tolerance_low"] <= known["tolerance"]) & (known["tolerance"] <= known["tolerance_high"])).all()
    models = table_of(audited_faces, "projection_models")
    assert (models["n"] == 50).all()
    assert not models["constant"].any()


def test_deviation_is_not_half_the_tolerance_as_the_paper_prints_it(audited_faces):
    models = table_of(audited_faces, "projection_models")
    assert (np.abs(models["deviation"] - models["tolerance"] / 2) > 0.05).all()


def test_what_is_made_of_the_audit_shows_groups_and_no_face_by_name(audited_faces, samples):
    """The report shows these tables and figures of them."""
    files = [path for path in (audited_faces.path / AUDIT).rglob("*") if path.suffix in {".csv", ".json", ".html"}]
    made = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert {"group_scores.csv", "verdict.json", "report.html"} <= made.keys() and len(made) > 20
    assert all(group in made["report.html"] for group in ("Middle Eastern", "more than 70"))
    folder = samples["transformer"]["sample_id"].iloc[0].split("/")[0]
    assert [name for name, text in made.items() if f"{folder}/" in text] == []
