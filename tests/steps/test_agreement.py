"""Measures held against each other, and the gate on attack distances, from values per sample to tables and page."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.agreement.decisions import training_method_names
from gfscore.audit.agreement.falsification import falsification_table
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.calibration_results import Calibration
from gfscore.audit.judgement import verdict_on_audit
from gfscore.audit.projections.summaries import PROJECTION_TABLES
from gfscore.audit.step_params import TrainedModel
from gfscore.audit.table_names import MEASURE_TABLES, REMEDIES
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.core.files import read_json
from gfscore.core.identity import ALL
from gfscore.statistics import SCALE
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import predictions, scores
from helpers.configurations import gate_rule
from helpers.steps import INTERVALS, audit_inputs, models_named, tabulated, write_manifest

MEASURES = {
    "clean": {"kind": "clean"},
    "great": {"kind": "great", "activation": "softmax"},
    "attacked": {
        "kind": "adversarial", "norm": "l2", "eps": 0.9, "attacks": [{"name": "pgd", "steps": 1, "step_size": 1, "restarts": 1}],
    },
    "distances": {"kind": "minimal", "norm": "l2", "largest_distance": 2.0, "attacks": [{"name": "fmn", "steps": 1}]},
    "smoothed": {
        "kind": "certified",
        "smoothing": {"sigma": 0.25, "estimation_samples": 1000, "alpha": 0.001, "sandwich": {"steps": 1}},
    },
    "imported": {"kind": "certified", "largest_radius": 1.0},
    "probable": {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05},
    "targeted": {"kind": "targeted", "norm": "linf", "eps": 0.1},
}  # fmt: skip
AGREEMENT = {
    name
    for name in set(MEASURE_TABLES) - {table.name for table in PROJECTION_TABLES} - set(REMEDIES)
    if name not in ("group_scores", "group_metrics", "corruption_errors")
}
"""Tables that compare the measures of an audit, and their curves."""

OF_DISTANCES = {"radius_curves", "class_distances", "masking_signs"}


@dataclass
class Folder:
    """An audit of `models` models on n samples of each of `classes` classes; the last class has none if `absent`."""

    path: object
    classes: int = 3
    n: int = 20
    models: int = 2
    absent: bool = False
    measures: dict = field(default_factory=lambda: MEASURES)

    def __post_init__(self):
        present = self.classes - self.absent
        self.names = [f"class {k}" for k in range(self.classes)]
        self.labels = np.tile(np.arange(present), self.n).astype(np.int32)
        self.ids = np.array([f"s{row}" for row in range(len(self.labels))])
        self.listed = models_named(*(f"m{index}" for index in range(self.models)))
        self.samples, self.logits = {}, {}
        write_manifest(self.path / "toy.json", self.names)
        for index, model in enumerate(self.listed):
            self._make_model(index, model["model"])

    def _make_model(self, index, model):
        rng, labels, total = np.random.default_rng(index), self.labels, len(self.labels)
        z = rng.normal(size=(total, self.classes)).astype(np.float32)
        z[np.arange(total), labels] += 1.5
        guess = predictions(z, labels)
        right, g = guess == labels, scores(z, labels, activation="softmax")
        self.logits[model] = self.ids, labels, z
        # Adversarial examples at a tenth of the score for class 0, between it and B for the others; the last ones not found.
        distance = np.where(right, np.where(labels == 0, 0.1 * g, (g + SCALE) / 2), 0.0)
        censored = right & (np.arange(total) >= total - 3)
        radius = np.where(right, 0.1 * (1 + labels), 0.0)
        state = np.where(right, "robust", "not_robust").astype(object)
        state[:4] = "undecided"
        frames = {
            "clean": {"prediction": guess, "value": right},
            "great": {"prediction": guess, "value": g},
            "attacked": {
                "prediction": guess, "value": right & (labels > 0), "steps": 2,
                "attack": np.where(right, np.where(labels == 0, "pgd", None), "clean"),
                "distance": np.where(right, np.where(labels == 0, 0.4, np.nan), 0.0),
            },
            "distances": {
                "prediction": guess, "value": np.where(censored, 2.0, distance), "censored": censored, "steps": 2,
                "attack": np.where(right & ~censored, "fmn", None),
            },
            "smoothed": {
                "prediction": guess, "value": radius, "radius": 0.2, "abstained": False, "draws": 10,
                "lower_bound": 0.9, "attacked": True, "refuted": np.arange(total) < index,
            },
            "imported": {"prediction": guess, "value": radius, "radius": radius, "abstained": False},
            "probable": {
                "prediction": guess, "value": (state == "robust"), "censored": state == "undecided", "state": state,
                "changes": 0, "draws": 9,
            },
        }  # fmt: skip
        for measure, columns in frames.items():
            self.samples[model, measure] = pd.DataFrame({"sample_id": self.ids, "label": labels, **columns})
        rows = np.concatenate([np.flatnonzero(labels != target) for target in range(self.classes)])
        target = np.concatenate([np.full((labels != k).sum(), k) for k in range(self.classes)])
        # Every second sample is turned into class 0, none into another one.
        reached = (target == 0) & (rows % 2 == 0)
        attacked = {"sample_id": self.ids[rows], "label": labels[rows], "target": target, "distance": 0.1}
        attacked |= {
            "prediction": np.where(reached, 0, guess[rows]),
            "clean_prediction": guess[rows],
            "value": ~reached,
        }
        self.samples[model, "targeted"] = pd.DataFrame(attacked)

    def inputs(self, path=None, **settings):
        settings = {"measures": self.measures} | settings
        return audit_inputs(path or self.path, self.listed, tables=self.samples, logits=self.logits, **settings)

    def run(self):
        """Every table of the measures against each other, by name."""
        tables = tabulated(self.inputs(), self.names, methods=self.methods)
        return SimpleNamespace(**{name: tables[name] for name in AGREEMENT if name in tables})

    @property
    def methods(self):
        return [{**model, "method": f"M{index}"} for index, model in enumerate(self.listed)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("agreement"))


@pytest.fixture(scope="module")
def tables(folder):
    return folder.run()


def of(frame, model="m0", **chosen):
    for name, value in ({"model": model} | chosen).items():
        frame = frame[frame[name] == value]
    return frame.reset_index(drop=True)


def test_every_table_of_what_an_audit_may_measure_is_declared(tables):
    assert set(vars(tables)) == AGREEMENT


UNATTACKED = {"smoothing": MEASURES["smoothed"]["smoothing"] | {"sandwich": None}}


@pytest.mark.parametrize(
    ("measures", "changes", "expected"),
    [
        (["clean"], {}, set()),
        (["clean", "great"], {}, {"measure_agreement"}),
        (["attacked"], {}, {"masking_signs"}),
        (["distances"], {}, OF_DISTANCES),
        (["great", "distances"], {}, {"measure_agreement", "falsification", *OF_DISTANCES}),
        (["great", "distances"], {"norm": "linf"}, {"measure_agreement", *OF_DISTANCES}),
        (["smoothed"], {}, {"radius_curves", "refutations"}),
        (["smoothed"], UNATTACKED, {"radius_curves"}),
        (["imported"], {}, {"radius_curves"}),
        (["probable"], {}, {"class_shares"}),
        (["targeted"], {}, {"target_success", "target_matrix", "target_predictors"}),
        (
            ["clean", "attacked", "probable"],
            {},
            {"measure_agreement", "class_shares", "masking_signs", "training_methods"},
        ),
    ],
)
def test_an_audit_has_the_tables_that_its_measures_suffice_for(folder, tmp_path, measures, changes, expected):
    """`changes` are those of the settings of the last measure."""
    chosen = {name: MEASURES[name] for name in measures}
    chosen[measures[-1]] = chosen[measures[-1]] | changes
    tables = tabulated(folder.inputs(tmp_path, measures=chosen), folder.names, methods=folder.methods)
    assert set(tables) & set(MEASURE_TABLES) == expected


def test_training_methods_without_a_statistical_test_have_no_decisions(folder, tmp_path):
    measures = {name: MEASURES[name] for name in ("clean", "attacked")}
    rows = tabulated(folder.inputs(tmp_path, measures=measures), folder.names, methods=folder.methods)
    rows = rows["training_methods"]
    assert rows["n"].tolist() == [len(folder.labels)] * 2
    assert rows[["probabilistic", "robust", "robust_low", "error_rate"]].isna().all(axis=None)


def test_measures_of_no_sample_in_common_leave_training_methods_without_shares(tmp_path):
    subsets = {"attacked": {"every": 2}, "probable": {"per_class": 1}}
    measures = {name: MEASURES[name] | {"subset": subset} for name, subset in subsets.items()}
    folder = Folder(tmp_path, measures={"clean": MEASURES["clean"]} | measures)
    for name in ("m0", "m1"):
        attacked = folder.samples[name, "attacked"][::2]
        of_each_class = folder.samples[name, "probable"][1::2].groupby("label").head(1)
        folder.samples[name, "attacked"], folder.samples[name, "probable"] = attacked, of_each_class
    rows = tabulated(folder.inputs(), folder.names, methods=folder.methods)["training_methods"]
    assert rows["n"].tolist() == [0, 0]
    assert rows[["accuracy", "attack_failure_rate", "robust", "robust_low"]].isna().all(axis=None)
    assert rows["mean"].notna().all()


def test_rho_compares_a_training_method_with_the_one_that_it_changes(tmp_path):
    folder = Folder(tmp_path, measures={name: MEASURES[name] for name in ("clean", "attacked")})
    worst, mean = {}, {}
    for model in ("m0", "m1"):
        folder.samples[model, "attacked"]["value"] = folder.samples[model, "clean"]["value"]
        values = folder.samples[model, "clean"]["value"].to_numpy()
        worst[model] = min(values[folder.labels == k].mean() for k in range(folder.classes))
        mean[model] = values.mean()
    baselines = {"none/m1": "none/m0", "none/m0": "none/elsewhere"}
    tables = tabulated(folder.inputs(), folder.names, methods=folder.methods, baselines=baselines)
    rows = tables["training_methods"].set_index("model")
    assert rows["worst_class"].to_dict() == pytest.approx(worst)
    assert rows["mean"].to_dict() == pytest.approx(mean)
    assert rows["baseline"].fillna("").tolist() == ["", "none/m0"]
    assert np.isnan(rows["rho"]["m0"])
    gain = worst["m1"] / worst["m0"] - 1
    loss = 1 - mean["m1"] / mean["m0"]
    assert gain != 0 and loss != 0
    assert rows["rho"]["m1"] == pytest.approx(gain - loss)


def test_training_methods_need_two_of_them(folder, tmp_path):
    measures = {name: MEASURES[name] for name in ("clean", "attacked", "probable")}
    same = [model | {"method": "M"} for model in folder.methods]
    assert "training_methods" not in tabulated(folder.inputs(tmp_path, measures=measures), folder.names, methods=same)


def test_only_scores_beyond_distances_found_are_refuted(folder, tables):
    rows = of(tables.falsification).set_index("class_index")
    right = folder.samples["m0", "clean"]["value"].to_numpy()
    # The last three samples, of classes 0 to 2, have no distance.
    assert rows.loc[0, "violations"] == (right & (folder.labels == 0))[:-3].sum()
    assert rows.loc[[1, 2], "violations"].tolist() == [0, 0]
    assert rows.loc[ALL, "correct"] == right.sum()
    assert rows.loc[ALL, "rate"] == rows.loc[0, "violations"] / right.sum()
    assert rows.loc[ALL, "low"] < rows.loc[ALL, "rate"] < rows.loc[ALL, "high"]
    assert set(tables.falsification["calibration"]) == {"none"}


@pytest.mark.parametrize("split", [None, {"share": 0.5, "seed": 0}])
def test_no_interval_at_a_temperature_chosen_on_the_same_samples(tmp_path, split):
    folder = Folder(tmp_path)
    chosen = Calibration(measure="great", models_digest="d", t_star=0.01, split=split)
    nowhere = Calibration(measure="great", models_digest="d")
    inputs = folder.inputs(calibrated_measure="great")
    calibrations = {"sharp": chosen, "undefined": nowhere}
    found = falsification_table(inputs, folder.names, calibrations=calibrations, alpha=0.05)
    rows = of(found, calibration="sharp")
    whole = rows[rows["class_index"] == ALL].iloc[0]
    reports = ~choosing_samples(folder.ids, folder.labels, **split) if split else np.ones(60, dtype=bool)
    assert whole["n"] == reports.sum()
    assert np.isnan(whole["low"]) == (split is None)
    # At T = 0.01 every score is B, above all distances found.
    assert whole["violations"] == whole["correct"] - (whole["censored"])
    assert whole["mean_score"] == pytest.approx(SCALE * whole["correct"] / whole["n"], rel=1e-3)


def test_curves_fall_from_right_to_none_and_bounds_lie_on_their_side(tables):
    survival = of(tables.radius_curves, measure="distances")
    for _, curve in survival.groupby("class_index"):
        known = curve["share"].dropna()
        assert known.is_monotonic_decreasing
        assert (curve["high"][known.index] >= known).all()
    assert survival["low"].isna().all()
    assert np.isnan(survival["share"].iloc[-1])
    certified = of(tables.radius_curves, measure="smoothed", class_index=1)
    # Class 1 is certified to 0.2.
    assert (certified["share"][certified["radius"] <= 0.2] > 0.5).all()
    assert (certified["share"][certified["radius"] > 0.2] == 0).all()
    assert (certified["low"] <= certified["share"]).all()
    assert of(tables.radius_curves, measure="imported")[["low", "high"]].isna().all(axis=None)


def test_samples_that_imported_radii_lack_are_not_certified(tmp_path):
    folder = Folder(tmp_path, measures={name: MEASURES[name] for name in ("clean", "imported")})
    radii = folder.samples["m0", "imported"]
    certified = radii["value"] > 0
    folder.samples["m0", "imported"] = radii[certified]
    curve = of(tabulated(folder.inputs(), folder.names)["radius_curves"], class_index=ALL)
    assert (curve["n"] == len(radii)).all()
    assert curve["share"].iloc[0] == certified.mean() < 1


def test_every_sample_has_a_distance_of_some_kind(tables):
    whole = of(tables.class_distances, class_index=ALL).iloc[0]
    assert whole["n"] == whole["misclassified"] + whole["found"] + whole["censored"] == 60


def test_refuted_certificates_are_held_against_chance(tables):
    rows = tables.refutations.set_index("model")
    assert rows["refuted"].to_dict() == {"m0": 0, "m1": 1}
    assert rows["n"].tolist() == [60, 60]
    assert rows["within_chance"].all() and rows["allowed"].tolist() == [2, 2]
    assert set(tables.refutations["measure"]) == {"smoothed"}


def test_decisions_stand_with_both_forms(tables):
    whole = of(tables.class_shares, class_index=ALL).iloc[0]
    assert whole["undecided"] == 4
    assert whole["robust"] + whole["not_robust"] == 56
    assert whole["paper_low"] == pytest.approx((whole["robust"] / 60 - 0.05) / 1.05)
    assert whole["low"] <= whole["robust"] / 60 <= whole["high"]


def test_targets_reached_and_what_predicts_them(folder, tables):
    rows = of(tables.target_success).set_index("class_index")
    others = folder.labels != 0
    clean = folder.samples["m0", "clean"]["prediction"].to_numpy()
    reached = np.where(np.arange(60) % 2 == 0, 0, clean)
    assert rows.loc[0, "success"] == np.mean(reached[others] == 0)
    assert rows.loc[0, "excess"] == pytest.approx(np.mean(reached[others] == 0) - np.mean(clean[others] == 0))
    assert rows["cfps"].sum() == pytest.approx(1)
    assert len(of(tables.target_matrix)) == 6
    predicted = of(tables.target_predictors, definition="success").iloc[0]
    assert predicted["errors_of"] == "clean" and predicted["classes"] == 3
    assert predicted["difference"] == predicted["rho_cfps"] - predicted["rho_miss_rate"]


def test_every_pair_of_measures_is_compared_over_classes_and_models(tables):
    pairs = len(MEASURES) * (len(MEASURES) - 1) // 2
    assert tables.measure_agreement["over"].value_counts().to_dict() == {"classes": 2 * pairs, "models": pairs}
    exact = of(tables.measure_agreement, first="smoothed", second="imported").iloc[0]
    assert exact["rho"] == 1 and exact["n"] == 3
    assert exact["p"] == pytest.approx(2 / 6) and exact["p_method"] == "every order"


def test_training_methods_side_by_side(folder, tables):
    assert tables.training_methods["training"].tolist() == ["M0", "M1"]
    assert tables.training_methods["model"].tolist() == ["m0", "m1"]
    attacked = folder.samples["m0", "attacked"]["value"]
    assert tables.training_methods["attack_failure_rate"].iloc[0] == attacked.mean()


@pytest.mark.parametrize(
    ("models", "architectures", "expected"),
    [
        (["x/a", "x/b", "x/c"], ["p", "q", "r"], ["M (p)", "M (q)", "N"]),
        (["x/a", "x/b", "x/c"], ["p", "p", "p"], ["M (a)", "M (b)", "N"]),
        (["x/a", "y/a", "x/c"], ["p", "p", "p"], ["M (x/a)", "M (y/a)", "N"]),
    ],
)
def test_models_of_one_training_method_are_told_apart(models, architectures, expected):
    keys = [dict(zip(("threat", "model"), label.split("/"), strict=True)) for label in [*models, "x/unknown"]]
    known = zip(keys, ["M", "M", "N", None], [*architectures, None], strict=True)
    methods = [{**key, "method": method, "architecture": built} for key, method, built in known]
    assert list(training_method_names([TrainedModel(dataset="d", **method) for method in methods]).values()) == [
        *expected,
        None,
    ]


def test_samples_that_survive_an_attack_but_have_a_nearer_distance_are_signs_of_masking(tables):
    rows = of(tables.masking_signs, measure="attacked", other="distances")
    assert len(rows) == 1 and rows["proof"].all() and rows["count"].iloc[0] > 0


# The gate


def judged(folder, **changes):
    judge(folder, gate_rule("great", statistic="falsification_rate", **changes))
    return read_json(folder.path / "verdict.json")["rules"][0]


def judge(folder, rule):
    files, how = AuditFiles(manifest=folder.path / "toy.json"), {"label_error_rates": None, "fp_lambda": 0.5}
    verdict = verdict_on_audit(folder.inputs(), files, rules=parsed_rules([rule]), intervals=INTERVALS, **how)
    verdict.write(folder.path / "verdict.json")


def test_the_gate_judges_what_attacks_refuted(folder, tables):
    strict, lenient = judged(folder, at_most=0.05), judged(folder, at_most=0.9)
    assert strict["verdict"] == "FAIL" and lenient["verdict"] == "PASS"
    rates = tables.falsification[tables.falsification["class_index"] == ALL].set_index("model")["rate"]
    assert {model["model"]: model["value"] for model in strict["models"]} == pytest.approx(rates.to_dict())
    assert "a lower bound on the share of violations" in strict["words"]
    assert strict["range"] == [0, 1]


def test_the_gate_judges_one_class_or_all(folder):
    first, last = (judged(folder, at_most=0.5, **{"class": f"class {k}"}) for k in (0, 2))
    assert (first["verdict"], last["verdict"]) == ("FAIL", "PASS")
    assert first["models"][0]["worst_class"] == "class 0"


def test_a_class_without_samples_never_passes(tmp_path):
    folder = Folder(tmp_path, absent=True)
    rule = judged(folder, at_most=0.99, **{"class": "class 2"})
    assert rule["verdict"] == "INCONCLUSIVE"
    assert rule["models"][0]["value"] is None


def test_the_errors_of_the_repeated_test_widen_every_bound_and_are_said_everywhere(tmp_path):
    settings = {**MEASURES["probable"], "budget": 3000}
    rows, verdicts = [], []
    for test in ("anytime", "repeated_exact"):
        (tmp_path / test).mkdir()
        folder = Folder(tmp_path / test, measures=MEASURES | {"probable": {**settings, "test": test}})
        tables = folder.run()
        rows.append([of(tables.class_shares, class_index=ALL).iloc[0], of(tables.training_methods).iloc[0]])
        judge(folder, gate_rule("probable", at_least=0.1))
        verdicts.append(read_json(folder.path / "verdict.json"))
    (kept, trained), (erring, trained_erring) = rows
    assert (kept["error_rate"], trained["error_rate"]) == (0.05, 0.05)
    assert (erring["error_rate"], trained_erring["error_rate"]) == pytest.approx((0.277, 0.277), abs=5e-4)
    assert erring["low"] < kept["low"] - 0.05 and trained_erring["robust_low"] < trained["robust_low"] - 0.05
    assert erring["paper_low"] == kept["paper_low"] and trained_erring["observation"] == trained["observation"]
    assert verdicts[1]["rules"][0]["models"][0]["low"] < verdicts[0]["rules"][0]["models"][0]["low"] - 0.05
    words = "probable uses repeated_exact, the exact-binomial paper's test, which does not keep its level"
    for key in ("note", "sentence"):
        assert words not in verdicts[0][key] and words in verdicts[1][key]


@pytest.mark.parametrize(("classes", "absent", "models"), [(2, False, 1), (3, True, 3), (4, False, 1)])
def test_few_classes_an_absent_class_and_one_model(tmp_path, classes, absent, models):
    tables = Folder(tmp_path, classes=classes, absent=absent, models=models, n=12).run()
    assert of(tables.falsification)["class_index"].tolist() == [*range(classes), ALL]
    over_models = tables.measure_agreement[tables.measure_agreement["over"] == "models"]
    assert over_models.empty == (models == 1)
    if absent:
        last = of(tables.class_distances, class_index=classes - 1).iloc[0]
        assert last["n"] == 0 and np.isnan(last["success_rate"])
        gone = of(tables.falsification, class_index=classes - 1).iloc[0]
        assert gone["correct"] == 0 and np.isnan(gone["rate"])
        empty = of(tables.class_shares, class_index=classes - 1).iloc[0]
        assert (empty["low"], empty["high"]) == (0, 1)
        assert of(tables.radius_curves, class_index=classes - 1)["share"].isna().all()
