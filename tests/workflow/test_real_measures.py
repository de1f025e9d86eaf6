"""Every measure on three real robust CIFAR-10 classifiers and 60 real images: each against what it must agree with."""

import json

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.real_audits import ARCHITECTURES, LARGEST_DISTANCE, MEASURES, every_measure

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(80)]

IMAGES = 60
MODELS = ("cnn_a_adv", "kw_wide_2_255", "eran_conv_small_pgd")
"""Trained adversarially, provably, and by another group."""

OPTIONS = ("--configfile", "real.yaml", "--omit-from", "plot_figures")


@pytest.fixture(scope="module")
def real(fresh_copy, real_data):
    """A copy of the repository with that audit made."""
    repository = fresh_copy()
    config = every_measure(real_data, IMAGES)
    config["audits"]["every-measure"]["models"] = [f"robust/Linf/{name}" for name in MODELS]
    config["measures"]["certified-l2"]["subset"] = None
    (repository.path / "real.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    repository.environment = {"GFSCORE_ARCHITECTURES": str(ARCHITECTURES)}
    repository.snakemake(*OPTIONS, environment=repository.environment)
    return repository


def table_of(repository, name):
    return read_table(repository.path / f"results/audits/every-measure/{name}.parquet", CATALOGUE[name])


@pytest.fixture(scope="module")
def values(real):
    """Value of each model (row) by each measure (column), uncalibrated."""
    summary = table_of(real, "model_summary")
    return summary[summary["calibration"] == "none"].pivot_table(index="model", columns="measure", values="value")


def test_every_model_is_measured_in_every_way(values):
    assert set(values.index) == set(MODELS)
    assert {*MEASURES, "clean", "great-softmax", "great-sigmoid"} == set(values.columns)
    assert not values.isna().any(axis=None)


def test_what_disturbs_more_leaves_less(values):
    """Attacks break at least what random perturbations of the same ball break, and that is part of what was right."""
    assert (values["adversarial-linf"] < values["clean"]).all()
    assert (values["adversarial-linf"] <= values["probabilistic-linf"] + 1e-12).all()
    assert (values["corruption"] < values["clean"]).all()
    assert (values["targeted-linf"] > values["adversarial-linf"]).all()


def test_robust_models_keep_a_good_part_of_their_accuracy_at_the_radius_they_are_made_for(values):
    assert (values["adversarial-linf"] > values["clean"] / 2).all()


def test_distances_and_certificates_are_of_the_size_that_the_radius_implies(values):
    """In l2 a box of half-width 2/255 with 3,072 sides reaches out .43, and contains a ball of radius .0078."""
    assert ((values["minimal-l2"] > 2 / 255) & (values["minimal-l2"] < LARGEST_DISTANCE / 2)).all()
    assert ((values["certified-l2"] > 0) & (values["certified-l2"] < values["minimal-l2"])).all()


def test_certificates_withstand_the_attack_on_the_smoothed_classifier(real):
    refutations = table_of(real, "refutations")
    assert len(refutations) == len(MODELS)
    assert refutations["within_chance"].all()
    assert (refutations["attacked"] > 0).all()


def test_the_softmax_score_is_contradicted_by_distances(real):
    falsified = table_of(real, "falsification")
    rows = falsified[(falsified["calibration"] == "none") & (falsified["class_index"] == -1)]
    rates = rows.set_index(["measure", "model"])["rate"]
    assert (rates["great-softmax"] > 0.25).any()


def test_calibration_does_not_lose_what_it_optimises(real):
    found = json.loads(real.read("results/audits/every-measure/calibration.json"))
    for name in ("cross_model_accuracy", "attack_distance"):
        assert found[name]["best"] >= found[name]["at_one"], name


def test_every_class_has_its_intervals(real):
    scores = table_of(real, "class_scores")
    scores = scores[(scores["calibration"] == "none") & scores["low"].notna()]
    assert ((scores["low"] <= scores["value"]) & (scores["value"] <= scores["high"])).all()
    assert np.all(scores.groupby(["model", "measure"])["class_index"].nunique() == 10)


def test_a_second_run_does_nothing(real):
    done = real.snakemake("--dry-run", *OPTIONS, environment=real.environment)
    assert "Nothing to be done" in done.text
