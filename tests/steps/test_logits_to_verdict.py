"""Every step after the logits, through its script's function, on made logits of three models."""

import json

import numpy as np
import pandas as pd
import pytest

from check_logits import check_logits
from choose_temperature import choose_temperature
from gate import gate
from gfscore import audit_logits
from gfscore.audit.measured import AuditInputs
from gfscore.audit.summary_tables import MODEL_SUMMARY, SENSITIVITY
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.bounded_means import mean_bounds
from gfscore.statistics.margins import scores
from gfscore.statistics.scale import SCALE
from gfscore.statistics.splits import choosing_samples
from gfscore.tables.parquet_tables import read_identity, read_table, write_logits
from gfscore.workflow.catalogue import CATALOGUE
from judge_audit import judge_audit
from made import gate_rule
from measure_sensitivity import measure_sensitivity
from score_logits import score_logits
from select_models import select_models
from summarise_classes import summarise_classes
from summarise_models import summarise_models
from sweep_temperatures import sweep_temperatures

NAMES = ["cat", "dog", "frog", "ship"]
MODELS = [{"dataset": "toy", "threat": "none", "model": name} for name in ("weak", "middle", "strong")]
MEASURES = {"clean": {"kind": "clean"}, "great": {"kind": "great", "activation": "softmax"}}
SEARCH = {"low": 0.01, "high": 10.0, "coarse_step": 0.1, "fine_step": 0.001, "fine_radius": 0.1}
RESAMPLING = {"bootstrap": 49, "confidence": 0.95, "permutations": 99}
OBJECTIVES = ["cross_model_accuracy", "within_model_class_accuracy", "ranking_stability", "likelihood"]
AUDIT = "toy-audit"
INTERVALS = {
    "method": "betting", "binary": "clopper_pearson", "confidence": 0.95, "seed": 0, "bootstrap_resamples": 99,
}  # fmt: skip
RULES = [gate_rule("great", at_least=0.2), gate_rule("clean", statistic="rdi", at_most=0.9)]
UNPUBLISHED = {"published": None, "tolerance": 0.01, "samples": None, "on_failure": "stop"}


def made_logits(index, *, n=120):
    rng = np.random.default_rng(index)
    labels = rng.integers(0, len(NAMES), n).astype(np.int32)
    logits = rng.normal(size=(n, len(NAMES))).astype(np.float32)
    logits[np.arange(n), labels] += 1 + index
    return logits, labels


class Folder:
    """Paths of one audit, as the rules lay them out."""

    def __init__(self, path, *, split=None):
        self.path = path
        self.split = split
        self.manifest = path / "dataset.json"
        self.logits = [path / f"logits/{model['model']}.parquet" for model in MODELS]
        self.samples = [
            path / f"samples/{measure}/{model['model']}.parquet" for model in MODELS for measure in MEASURES
        ]
        self.sweeps = [path / f"sweeps/{model['model']}.parquet" for model in MODELS]
        self.checks = [path / f"checks/{model['model']}.json" for model in MODELS]
        self.checkpoints = [path / f"trained/{model['model']}.json" for model in MODELS]

    def table(self, name):
        return self.path / f"audit/{name}.parquet"

    def make_logits(self):
        write_json(self.manifest, {"dataset": "toy", "digest": "d", "samples": 120, "classes": NAMES})
        for index, (model, path) in enumerate(zip(MODELS, self.logits, strict=True)):
            logits, labels = made_logits(index)
            identity = {**model, "dataset_digest": "d", "checkpoint_sha256": f"c{index}"}
            ids = [f"toy-{row}" for row in range(len(labels))]
            write_logits(path, sample_id=ids, label=labels, logits=logits, identity=identity)
            write_json(
                self.checkpoints[index], {**model, "robust_accuracy": 0.2 * index, "robust_accuracy_attack": "PGD-20"}
            )

    def score(self):
        paths = iter(self.samples)
        for model, path, sweep, checked in zip(MODELS, self.logits, self.sweeps, self.checks, strict=True):
            check_logits(path, self.manifest, checked, model=model, gate=UNPUBLISHED, allow_probabilities=False)
            for name, settings in MEASURES.items():
                score_logits(path, next(paths), model=model, measure=name, settings=settings)
            sweep_temperatures(path, self.manifest, sweep, model=model, activation="softmax", low=0.01, high=10.0)

    def audit(self):
        selection = self.path / "audit/models.json"
        select_models(self.checks, selection, models=MODELS)
        published = [{"published_clean_accuracy": 0.9, "published_robust_accuracy": None}] * 3
        files = {"selection": selection, "sweeps": self.sweeps, "logits": self.logits, "manifests": self.checkpoints}
        files["distances"] = []
        calibration = self.path / "audit/calibration.json"
        choose_temperature(
            files, self.table("calibration"), calibration, audit=AUDIT, models=MODELS, measure="great",
            objectives=OBJECTIVES, search=SEARCH, stability_window=0.05, resampling=RESAMPLING, split=self.split,
            published=published, seed=0,
        )  # fmt: skip
        inputs = AuditInputs(MODELS, MEASURES, "great", self.samples, self.logits, calibration, selection)
        summarise_classes(
            inputs, self.manifest, self.table("class_scores"), audit=AUDIT, intervals=INTERVALS, label_error_rates=None
        )
        summarise_models(
            inputs, self.table("class_scores"), self.checkpoints,
            {name: self.table(name) for name in ("model_summary", "vulnerability", "class_pairs")}, audit=AUDIT, published=published,
            disparity={"fp_lambda": 0.5, "permutations": 99, "seed": 0},
        )  # fmt: skip
        measure_sensitivity(
            self.logits,
            selection,
            self.table("sensitivity"),
            audit=AUDIT,
            models=MODELS,
            measures=MEASURES,
            shifts=[-1, 0, 5],
            scales=[0.5, 2],
            fp_lambda=0.5,
        )
        judge_audit(
            AuditInputs(MODELS, MEASURES, None, self.samples, [], None, selection), self.manifest,
            self.path / "audit/verdict.json", rules=RULES, intervals=INTERVALS, label_error_rates=None, fp_lambda=0.5,
        )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("audit"))
    folder.make_logits()
    folder.score()
    folder.audit()
    return folder


def test_the_summary_says_which_data_and_settings_it_is_of(folder):
    about = read_identity(folder.table("model_summary"))
    assert about["dataset_digest"] == read_identity(folder.table("class_scores"))["dataset_digest"]
    assert about["measures"] == MEASURES


def test_the_workflow_and_the_python_api_give_the_same_numbers(folder):
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    summary = read_table(folder.table("model_summary"), MODEL_SUMMARY)
    pairs = read_table(folder.table("class_pairs"), CATALOGUE["class_pairs"])
    for index, model in enumerate(MODELS):
        audit = audit_logits(*made_logits(index), class_names=NAMES)
        own = pairs[
            (pairs["model"] == model["model"]) & (pairs["measure"] == "great") & (pairs["calibration"] == "none")
        ]
        assert len(own) == len(NAMES) * (len(NAMES) - 1) / 2
        assert own["difference"].to_numpy() == pytest.approx(audit.pairwise[own["stronger_index"], own["weaker_index"]])
        assert own["difference"].max() == pytest.approx(audit.summary["rdi"])
        rows = scores[(scores["model"] == model["model"]) & (scores["measure"] == "great")]
        rows = rows[rows["calibration"] == "none"].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows[list(audit.classes.columns)], audit.classes, check_dtype=False)
        row = summary[(summary["model"] == model["model"]) & (summary["measure"] == "great")]
        row = row[row["calibration"] == "none"].iloc[0]
        for name in ("value", "class_mean", "rdi", "nrgc", "wcr", "fp", "accuracy", "wcr_class", "wcr_tied"):
            assert row[name] == audit.summary[name] or row[name] == pytest.approx(audit.summary[name], rel=1e-12), name
        for name in ("value", "class_mean", "rdi", "nrgc", "wcr", "fp"):
            bounds = (row[f"{name}_low"], row[f"{name}_high"])
            assert bounds == pytest.approx(audit.summary[f"{name}_interval"], rel=1e-12), name


def test_the_interval_of_an_aggregate_alone_is_that_of_all_samples_together(folder):
    summary = read_table(folder.table("model_summary"), MODEL_SUMMARY)
    scored = summary[(summary["measure"] == "great") & (summary["calibration"] == "none")]
    for (logits, labels), row in zip(map(made_logits, range(3)), scored.to_dict("records"), strict=True):
        values = scores(logits, labels, activation="softmax") - SCALE / 2
        low, high = mean_bounds(values[:, None], bound=SCALE / 2, alpha=0.05)
        alone = (row["value_alone_low"], row["value_alone_high"])
        assert alone == pytest.approx((low[0] + SCALE / 2, high[0] + SCALE / 2), abs=1e-6)
    for row in summary[summary["measure"] == "clean"].to_dict("records"):
        low, high = clopper_pearson(round(row["value"] * 120), 120, alpha=0.05)
        assert (row["value_alone_low"], row["value_alone_high"]) == pytest.approx((low, high), rel=1e-9)
        assert row["value_low"] < low < row["value"] < high < row["value_high"]


def test_every_model_measure_and_calibration_has_its_rows(folder):
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    keys = scores.groupby(["model", "measure", "calibration"]).size()
    assert set(keys) == {len(NAMES)}
    calibrations = scores[scores["measure"] == "great"]["calibration"].unique()
    assert list(calibrations) == ["none", *OBJECTIVES]
    assert len(keys) == 3 * (1 + 1 + len(OBJECTIVES))
    assert scores[scores["measure"] == "clean"]["temperature"].isna().all()
    assert (scores[scores["calibration"] == "none"]["temperature"].dropna() == 1).all()


def test_a_temperature_chosen_on_the_same_samples_gets_no_bounds(folder):
    for name in ("class_scores", "model_summary"):
        table = read_table(folder.table(name), CATALOGUE[name])
        bounded = table["calibration"] == "none"
        bounds = table[[column for column in table.columns if column.endswith(("low", "high"))]]
        assert bounds[~bounded].isna().all(axis=None)
        assert bounds[bounded].notna().all(axis=None)
        assert table["interval"].notna().equals(bounded)


def test_calibrated_rows_stand_at_the_temperature_that_calibration_json_records(folder):
    results = read_json(folder.path / "audit/calibration.json")
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    for objective, result in results.items():
        rows = scores[scores["calibration"] == objective]
        if objective == "likelihood":
            assert result["t_star"] is None
            chosen = rows.groupby("model")["temperature"].first().to_dict()
            assert chosen == {name.split("/")[1]: t for name, t in result["t_star_by_model"].items()}
        else:
            assert set(rows["temperature"]) == {result["t_star"]}
        audit = audit_logits(*made_logits(0), class_names=NAMES, temperature=rows["temperature"].iloc[0])
        first = rows[rows["model"] == "weak"]
        assert first["value"].to_numpy() == pytest.approx(audit.classes["value"].to_numpy(), rel=1e-12)


def test_rank_agreement_is_given_before_and_after_by_name(folder):
    result = json.loads((folder.path / "audit/calibration.json").read_text())["cross_model_accuracy"]
    # The stronger the model, the more accurate, the more robust and the higher its score: every order agrees.
    assert result["agreement"] == {
        "clean accuracy": {"before": 1.0, "after": 1.0},
        "robust accuracy": {"before": 1.0, "after": 1.0},
    }
    assert result["baseline"] == {"clean accuracy alone vs robust accuracy": 1.0}
    assert len(result["models_digest"]) == 64


def test_what_the_samples_can_tell_apart_is_twice_the_widest_interval_at_most(folder):
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    summary = read_table(folder.table("model_summary"), MODEL_SUMMARY)
    bounded = summary[summary["calibration"] == "none"]
    assert summary["rdi_detectable"].notna().equals(summary["calibration"] == "none")
    for row in bounded.to_dict("records"):
        own = scores[(scores["model"] == row["model"]) & (scores["measure"] == row["measure"])]
        own = own[own["calibration"] == "none"]
        assert row["rdi_detectable"] == pytest.approx((own["high"] - own["low"]).nlargest(2).sum())
        assert own["bootstrap_low"].notna().all()


def test_sensitivity_shows_that_softmax_ignores_a_shift(folder):
    table = read_table(folder.table("sensitivity"), SENSITIVITY)
    assert len(table) == 3 * 5
    shifts, scales = table[table["scale"] == 1], table[table["shift"] == 0]
    spread = [
        rows.groupby("model")["value"].agg(lambda values: values.max() - values.min()) for rows in (shifts, scales)
    ]
    assert spread[0].max() < 1e-6
    assert spread[1].min() > 0.05
    assert table["place"].between(1, 3).all()


def test_the_verdict_follows_the_bounds(folder):
    verdict = json.loads((folder.path / "audit/verdict.json").read_text())
    by_model = {model["model"]: model for model in verdict["rules"][0]["models"]}
    assert by_model["strong"]["value"] > by_model["weak"]["value"]
    for model in by_model.values():
        expected = "PASS" if model["low"] >= 0.2 else "FAIL" if model["high"] < 0.2 else "INCONCLUSIVE"
        assert model["verdict"] == expected
    assert [rule["interval"] for rule in verdict["rules"]] == ["betting", "clopper_pearson"]
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    assert set(scores["interval"][scores["measure"] == "clean"]) == {"clopper_pearson"}
    assert verdict["stops"]
    with pytest.raises(InputError, match="the gate stays closed"):
        gate([folder.path / "audit/verdict.json"])


def test_the_gate_opens_for_what_does_not_stop_it(folder, capsys):
    path = folder.path / "audit/undecided.json"
    write_json(path, {"verdict": "INCONCLUSIVE", "sentence": "INCONCLUSIVE: of 1 models", "stops": False})
    gate([path])
    assert "INCONCLUSIVE: of 1 models" in capsys.readouterr().out


def test_all_models_wrong_leaves_temperatures_undefined_and_nrgc_missing(tmp_path):
    folder = Folder(tmp_path)
    folder.make_logits()
    for index, (model, path) in enumerate(zip(MODELS, folder.logits, strict=True)):
        logits, labels = made_logits(index)
        logits[np.arange(len(labels)), labels] = -50
        identity = {**model, "dataset_digest": "d", "checkpoint_sha256": f"c{index}"}
        ids = [f"toy-{row}" for row in range(len(labels))]
        write_logits(path, sample_id=ids, label=labels, logits=logits, identity=identity)
    folder.score()
    folder.audit()
    results = json.loads((tmp_path / "audit/calibration.json").read_text())
    assert results["cross_model_accuracy"]["t_star"] is None
    assert "undefined" in results["cross_model_accuracy"]["undefined"]
    summary = read_table(folder.table("model_summary"), MODEL_SUMMARY)
    uncalibrated = summary[(summary["measure"] == "great") & (summary["calibration"] == "none")]
    assert uncalibrated["nrgc"].isna().all()
    assert (uncalibrated["wcr"] == 0).all()
    assert uncalibrated["wcr_tied"].map(len).eq(4).all()


def check(folder, index=0, *, manifest=None, model=None, **gate):
    """Run the gate on the logits of one model; returns what it recorded."""
    path = folder.path / "check.json"
    path.unlink(missing_ok=True)
    check_logits(
        folder.logits[index], manifest or folder.manifest, path,
        model=model or MODELS[index], gate=UNPUBLISHED | gate, allow_probabilities=False,
    )  # fmt: skip
    return json.loads(path.read_text())


def test_the_gate_on_logits_records_what_it_measured(folder):
    logits, labels = made_logits(0)
    recorded = check(folder)
    assert recorded["clean_accuracy"] == np.mean(logits.argmax(axis=1) == labels)
    assert (recorded["samples"], recorded["classes"], recorded["accepted"]) == (120, 4, True)


def test_another_accuracy_than_the_published_one_stops_the_run_or_is_recorded(folder):
    with pytest.raises(InputError, match=r"published 10\.00%.*correct the model's entry"):
        check(folder, published=0.1, samples="full")
    assert not (folder.path / "check.json").exists()
    recorded = check(folder, published=0.1, samples="full", on_failure="exclude")
    assert not recorded["accepted"]
    assert "published 10.00%" in recorded["words"]


def test_the_published_accuracy_binds_only_on_the_samples_it_was_published_on(folder):
    uncompared = check(folder, published=0.1, samples=None)
    assert uncompared["accepted"] and uncompared["words"].startswith("published accuracy 0.1 not compared")
    measured = check(folder)["clean_accuracy"]
    assert not check(folder, published=measured + 0.05, samples="full", on_failure="exclude")["accepted"]
    # On 120 samples of the test set five points are within chance.
    assert check(folder, published=measured + 0.05, samples="subset")["accepted"]


def test_the_gate_refuses_another_model_and_other_data(folder, tmp_path):
    with pytest.raises(InputError, match="its model is 'weak', but 'strong' is asked for"):
        check(folder, model=MODELS[2])
    write_json(tmp_path / "other.json", {"dataset": "toy", "digest": "e", "samples": 120, "classes": NAMES})
    with pytest.raises(InputError, match="its dataset_digest is 'd', but 'e' is asked for"):
        check(folder, manifest=tmp_path / "other.json")


def test_the_gate_refuses_missing_rows_and_other_classes(folder, tmp_path):
    write_json(tmp_path / "more.json", {"dataset": "toy", "digest": "d", "samples": 121, "classes": NAMES})
    write_json(tmp_path / "fewer.json", {"dataset": "toy", "digest": "d", "samples": 120, "classes": NAMES[:3]})
    for name, message in (("more", "120 rows, but toy has 121 samples"), ("fewer", "4 logits per row, but 3 classes")):
        with pytest.raises(InputError, match=message):
            check(folder, manifest=tmp_path / f"{name}.json")


def test_a_refused_model_is_left_out_of_every_table_and_named(tmp_path):
    folder = Folder(tmp_path)
    folder.make_logits()
    folder.score()
    refused = json.loads(folder.checks[1].read_text()) | {"accepted": False, "words": "measured 1%, published 2%"}
    write_json(folder.checks[1], refused)
    folder.audit()
    for name in ("class_scores", "model_summary", "sensitivity"):
        assert set(read_table(folder.table(name), CATALOGUE[name])["model"]) == {"weak", "strong"}
    verdict = json.loads((tmp_path / "audit/verdict.json").read_text())
    assert verdict["excluded"] == [{"model": "none/middle", "reason": "measured 1%, published 2%"}]
    assert "1 left out" in verdict["sentence"]
    calibration = json.loads((tmp_path / "audit/calibration.json").read_text())
    assert set(calibration["likelihood"]["t_star_by_model"]) == {"none/weak", "none/strong"}


def test_a_model_no_better_than_guessing_takes_part_with_a_warning_in_the_verdict(tmp_path):
    folder = Folder(tmp_path)
    folder.make_logits()
    logits, labels = made_logits(1)
    ids = [f"toy-{row}" for row in range(len(labels))]
    identity = read_identity(folder.logits[1])
    write_logits(folder.logits[1], sample_id=ids, label=labels, logits=np.roll(logits, 1, axis=0), identity=identity)
    logits, labels = made_logits(2)
    exchanged = logits[:, [1, 0, 2, 3]]
    identity = read_identity(folder.logits[2])
    write_logits(folder.logits[2], sample_id=ids, label=labels, logits=exchanged, identity=identity)
    folder.score()
    accepted = [read_json(path) for path in folder.checks]
    assert [found["accepted"] for found in accepted] == [True] * 3
    assert [found["better_than_guessing"] for found in accepted] == [True, False, True]
    folder.audit()
    verdict = read_json(tmp_path / "audit/verdict.json")
    assert [warning["model"] for warning in verdict["warned"]] == ["none/middle", "none/strong"]
    assert verdict["guessing"] == ["none/middle"]
    assert "Warning: none/middle: may be guessing (clean accuracy 0.2" in verdict["sentence"]
    assert "Warning: none/strong: classes look exchanged (cat and dog)" in verdict["sentence"]
    assert set(read_table(folder.table("class_scores"), CATALOGUE["class_scores"])["model"]) == {
        "weak",
        "middle",
        "strong",
    }


def test_a_temperature_chosen_on_other_samples_is_reported_on_fresh_ones(tmp_path):
    split = {"share": 0.5, "seed": 3}
    folder = Folder(tmp_path, split=split)
    folder.make_logits()
    folder.score()
    folder.audit()
    results = read_json(tmp_path / "audit/calibration.json")
    assert all(result["split"] == split for result in results.values())
    scores = read_table(folder.table("class_scores"), CATALOGUE["class_scores"])
    samples = scores.groupby(["model", "calibration"])["n"].sum().unstack()
    assert (samples["none"] % 120 == 0).all()
    assert samples.drop(columns="none").isin([60]).all(axis=None)
    half = choosing_samples(np.array([f"toy-{row}" for row in range(120)]), made_logits(0)[1], split)
    for objective, result in results.items():
        rows = scores[(scores["model"] == "weak") & (scores["calibration"] == objective)]
        logits, labels = made_logits(0)
        expected = audit_logits(
            logits[~half], labels[~half], class_names=NAMES, temperature=rows["temperature"].iloc[0]
        )
        assert rows["value"].to_numpy() == pytest.approx(expected.classes["value"].to_numpy(), rel=1e-12), objective
        # So these rows carry intervals, and they are those of the fresh samples.
        assert (rows["low"] <= rows["value"]).all()
        assert (rows["value"] <= rows["high"]).all()
        assert result["best"] is not None
