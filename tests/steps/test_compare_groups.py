"""Groups of samples, from sample files and attributes to tables, verdict, figures and the page's section."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import group_metric_table
from gfscore.audit.groups.scores import group_score_table
from gfscore.audit.judgement import verdict_on_audit
from gfscore.audit.settings import GroupSettings
from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.gate_rules import GROUP_GAP, parsed_rules
from gfscore.core.errors import InputError
from gfscore.core.identity import ALL
from gfscore.show.audit_charts import drawing_of
from gfscore.show.charts import CHARTS
from gfscore.tables.parquet_tables import typed_frame, write_attributes
from helpers.configurations import gate_rule
from helpers.steps import INTERVALS, audit_inputs, models_named, tabulated, write_manifest
from helpers.synthetic_audits import subject_of

CLEAN = typed_frame(TABLES["class_scores"], [{"dataset": "toy", "measure": "clean"}])
NAMES = ["cat", "dog"]
MEASURES = {
    "clean": {"kind": "clean"},
    "great": {"kind": "great", "activation": "softmax"},
    "attacked": {"kind": "adversarial", "norm": "l2", "eps": 0.5},
    "corrupted": {"kind": "corruption"},
    "probable": {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05},
}
GROUPS = {
    "attributes": ["side", "size"], "positive": None, "minimum_cell": 20,
    "balanced": {"attribute": "side", "seed": 0},
}  # fmt: skip
MODELS = models_named("fair", "unfair")
N = 400


class Folder:
    """Two models on N samples. The unfair one misses every cat on the right side; `small` has no sample of size tiny."""

    def __init__(self, path):
        self.path, self.samples = path, {}
        rng = np.random.default_rng(0)
        self.labels = np.tile([0, 1], N // 2).astype(np.int32)
        self.ids = np.array([f"s{row}" for row in range(N)])
        self.right = rng.random(N) < 0.3
        self.size = np.where(rng.random(N) < 0.03, "huge", "normal").astype(object)
        self.size[:10] = None
        columns = {"sample_id": self.ids, "side": np.where(self.right, "right", "left"), "size": self.size}
        categories = {"side": ["left", "right"], "size": ["tiny", "normal", "huge"]}
        identity = {
            "dataset": "toy",
            "dataset_digest": "d",
            "categories": categories,
            "missing": {"side": 0, "size": 10},
        }
        write_attributes(path / "attributes.parquet", pd.DataFrame(columns, dtype=object), identity=identity)
        write_manifest(path / "toy.json", NAMES)
        for model in ("fair", "unfair"):
            wrong = self.right & (self.labels == 0) & (model == "unfair")
            guess = np.where(wrong, 1, self.labels)
            value = np.where(wrong, 0.0, 1.0)
            self.add(model, "clean", value, guess)
            self.add(model, "great", value * 0.8, guess)
            self.add(model, "attacked", value, guess, clean_prediction=guess)
            self.add(model, "corrupted", value, guess, copies=3, clean_prediction=guess)
            self.add(model, "probable", value, guess, clean_prediction=guess, censored=np.arange(N) == 1)

    def add(self, model, measure, value, guess, *, copies=1, **columns):
        columns = {"label": self.labels, "prediction": guess, "value": value, "censored": False} | columns
        frame = pd.DataFrame({"sample_id": self.ids} | columns)
        if measure == "probable":
            frame.loc[frame["censored"], "value"] = 0.0
        frame = pd.concat([frame] * copies, ignore_index=True)
        if measure == "corrupted":
            # The last copy of every cat is misread, whatever its side.
            frame.loc[(frame.index >= 2 * N) & (frame["label"] == 0), ["prediction", "value"]] = [1, 0.0]
        self.samples[model, measure] = frame

    def inputs(self):
        return audit_inputs(self.path, MODELS, MEASURES, self.samples)

    def compare(self, **changes):
        inputs, groups = self.inputs(), GROUPS | changes
        grouping = self.grouping(groups)
        how = {"intervals": INTERVALS, "minimum_cell": groups["minimum_cell"]}
        scores = group_score_table(inputs.uncalibrated(), grouping, NAMES, **how)
        settings, confidence = GroupSettings.model_validate(groups), INTERVALS.confidence
        metrics = group_metric_table(inputs, grouping, NAMES, settings=settings, confidence=confidence)
        return {"group_scores": scores, "group_metrics": metrics}

    def grouping(self, groups):
        return Grouping.read_chosen(
            self.path / "attributes.parquet", dataset="toy", groups=GroupSettings.model_validate(groups)
        )

    def judge(self, *rules):
        files = AuditFiles(manifest=self.path / "toy.json", attributes=self.path / "attributes.parquet")
        how = {"intervals": INTERVALS, "label_error_rates": None, "fp_lambda": 0.5}
        return verdict_on_audit(self.inputs(), files, rules=parsed_rules(rules), **how).as_json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("groups"))


@pytest.fixture(scope="module")
def tables(folder):
    return folder.compare()


def one(frame, **where):
    for name, value in where.items():
        frame = frame[frame[name] == value]
    (row,) = frame.to_dict("records")
    return row


def test_every_measure_has_values_of_every_group_and_of_its_classes(tables, folder):
    scores = tables["group_scores"]
    assert set(scores["measure"]) == set(MEASURES)
    # Two and three groups, each whole and in two classes.
    assert len(scores) == 2 * len(MEASURES) * (2 + 3) * 3
    right = one(scores, model="unfair", measure="clean", attribute="side", group="right", class_name="all")
    assert right["n"] == folder.right.sum()
    assert right["value"] == pytest.approx((folder.labels[folder.right] == 1).mean())
    assert right["low"] < right["value"] < right["high"]
    cats = one(scores, model="unfair", measure="great", attribute="side", group="right", class_name="cat")
    assert (cats["value"], cats["low"]) == (0, 0)
    assert one(scores, model="unfair", measure="corrupted", attribute="side", group="left", class_name="cat")[
        "value"
    ] == (pytest.approx(2 / 3))


def test_groups_without_samples_have_no_value_and_small_ones_are_marked(tables, folder):
    scores = tables["group_scores"]
    tiny = one(scores, model="fair", measure="clean", attribute="size", group="tiny", class_name="all")
    assert tiny["n"] == 0 and np.isnan(tiny["value"]) and (tiny["low"], tiny["high"]) == (0, 1) and tiny["small"]
    huge = one(scores, model="fair", measure="clean", attribute="size", group="huge", class_name="all")
    assert huge["n"] == (folder.size == "huge").sum() < 20 and huge["small"]
    assert set(scores.loc[scores["attribute"] == "size", "left_out"]) == {10}
    metrics = tables["group_metrics"]
    assert metrics.loc[metrics["attribute"] == "size", "value"].isna().all()


def test_undecided_samples_widen_the_upper_bound_only(tables, folder):
    group = "right" if folder.right[1] else "left"
    open_, decided = (
        one(tables["group_scores"], model="fair", measure=measure, attribute="side", group=group, class_name="dog")
        for measure in ("probable", "clean")
    )
    assert open_["value"] < decided["value"] == 1
    assert open_["high"] == decided["high"] == 1


def test_metrics_of_predictions_clean_attacked_and_corrupted(tables, folder):
    metrics = tables["group_metrics"]
    assert set(metrics["measure"]) == {"clean", "attacked", "corrupted"}
    for measure in ("clean", "attacked"):
        unfair = one(metrics, model="unfair", measure=measure, attribute="side", class_name="cat", metric="eopp")
        assert (unfair["value"], unfair["class_index"]) == (1, 0)
        assert unfair["wilson_low"] > 0.8 and unfair["wilson_high"] == pytest.approx(1)
        assert unfair["smallest_cell"] == (folder.right & (folder.labels == 0)).sum()
        fair = one(metrics, model="fair", measure=measure, attribute="side", class_name="cat", metric="eodd")
        assert (fair["value"], fair["as_printed"]) == (0, 1)
        assert 0 == fair["wilson_low"] < fair["wilson_high"] < 0.2
    # A third of the copies of each left cat is misread, and all copies of each right one.
    corrupted = one(metrics, model="unfair", measure="corrupted", attribute="side", class_name="cat", metric="eopp")
    assert corrupted["value"] == pytest.approx(2 / 3)
    assert corrupted["n"] == N


def test_macro_and_worst_follow_from_the_classes(tables):
    metrics = tables["group_metrics"]
    of_classes = [
        one(metrics, model="unfair", measure="clean", attribute="side", class_name=name, metric="eopp")["value"]
        for name in NAMES
    ]
    for name, expected in (("macro", np.mean(of_classes)), ("worst", max(of_classes))):
        row = one(metrics, model="unfair", measure="clean", attribute="side", class_name=name, metric="eopp")
        assert row["value"] == pytest.approx(expected)
        assert row["class_index"] == ALL
        assert row["wilson_low"] <= row["value"] <= row["wilson_high"]


def test_one_positive_class_and_no_balancing(folder, tables):
    found = folder.compare(positive="dog", balanced=None)
    metrics = found["group_metrics"]
    assert set(metrics["class_name"]) == {"dog"}
    assert metrics["balanced_value"].isna().all() and found["group_scores"]["balanced_n"].isna().all()
    row = one(metrics, model="unfair", measure="clean", attribute="side", metric="dp")
    before = one(
        tables["group_metrics"], model="unfair", measure="clean", attribute="side", metric="dp", class_name="dog"
    )
    assert row["value"] == before["value"]


def test_balancing_makes_the_groups_equal_and_shows_what_that_changes(tables, folder):
    scores, smallest = tables["group_scores"], folder.right.sum()
    whole = scores[(scores["class_index"] == ALL) & (scores["model"] == "unfair") & (scores["measure"] == "clean")]
    assert whole.loc[whole["attribute"] == "side", "balanced_n"].tolist() == [smallest, smallest]
    assert whole.loc[whole["attribute"] == "side", "n"].tolist() == [N - smallest, smallest]
    row = one(
        tables["group_metrics"], model="unfair", measure="clean", attribute="side", class_name="cat", metric="aodd"
    )
    assert row["balanced_n"] == 2 * smallest
    assert row["balanced_value"] == row["value"] == 0.5


def test_the_gate_judges_the_largest_difference_of_groups(folder):
    rule = gate_rule("great", statistic=GROUP_GAP, at_most=0.2, attribute="side")
    verdict = folder.judge(rule)
    (judged,) = verdict["rules"]
    fair, unfair = judged["models"]
    assert (fair["verdict"], unfair["verdict"]) == ("PASS", "FAIL")
    assert (fair["low"], fair["value"]) == (0, pytest.approx(0, abs=1e-12)) and unfair["low"] > 0.2
    assert judged["range"] == pytest.approx([0, 1.2533141373155])
    assert judged["attribute"] == "side" and "largest difference between the groups by side of great" in judged["words"]
    assert unfair["worst_class"] == "right"
    # A group without samples may have any value.
    verdict = folder.judge(rule | {"attribute": "size", "at_most": 0.5})
    assert [model["verdict"] for model in verdict["rules"][0]["models"]] == ["INCONCLUSIVE"] * 2
    assert verdict["rules"][0]["models"][0]["classes_without_samples"] == ["tiny"]


def test_an_audit_that_names_attributes_has_these_tables_and_no_other_has_them(folder, tables, tmp_path):
    inputs = audit_inputs(tmp_path, MODELS, {"clean": MEASURES["clean"]}, folder.samples)
    assert not set(tables) & set(tabulated(inputs, NAMES))
    again = tabulated(inputs, NAMES, groups=GROUPS, grouping=folder.grouping(GROUPS))
    for name, frame in tables.items():
        of_clean = frame[frame["measure"] == "clean"].reset_index(drop=True)
        pd.testing.assert_frame_equal(again[name], of_clean, check_dtype=False)


def test_an_attribute_that_is_not_there_is_refused(folder):
    with pytest.raises(InputError, match="attribute 'sid' is unknown; did you mean 'side'"):
        folder.compare(attributes=["sid"])
    with pytest.raises(InputError, match="positive: class 'dg' is unknown; did you mean 'dog'"):
        folder.compare(positive="dg")


def test_charts_of_groups_have_empty_and_small_cells(tables):
    subject = subject_of({"class_scores": CLEAN} | tables, "clean", measures={"clean": MEASURES["clean"]})
    cells = CHARTS["group_classes"].data(subject).set_index(["row", "class"])
    rows = ["side: left", "side: right", "size: tiny", "size: normal", "size: huge"]
    assert list(dict.fromkeys(row for row, _ in cells.index)) == rows
    assert cells.loc["size: tiny", "value"].isna().all() and cells.drop("size: tiny")["value"].notna().any()
    metrics = CHARTS["group_metrics"].data(subject).set_index(["metric", "class", "attribute"])
    # Cats on the right are taken for dogs by one model of two.
    assert metrics.loc[("eopp", "cat", "side"), "value"] == pytest.approx(0.5)
    for name in ("group_scores", "group_classes", "group_metrics"):
        assert drawing_of(CHARTS[name], subject).figure().axes


def without_sizes(path, categories):
    folder = Folder(path)
    frame = pd.DataFrame(
        {"sample_id": folder.ids, "side": np.where(folder.right, "right", "left"), "size": None}, dtype=object
    )
    named = {"categories": {"side": ["left", "right"], "size": categories}, "missing": {"side": 0, "size": N}}
    identity = {"dataset": "toy", "dataset_digest": "d", **named}
    write_attributes(path / "attributes.parquet", frame, identity=identity)
    return folder


def test_an_attribute_without_any_value_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"attributes\.parquet: attribute 'size' has no value in any sample; leave it"):
        without_sizes(tmp_path, []).compare()


def test_groups_without_a_measured_sample_have_no_values(tmp_path):
    tables = without_sizes(tmp_path, ["normal", "huge"]).compare()
    scores, metrics = (tables[name][tables[name]["attribute"] == "size"] for name in ("group_scores", "group_metrics"))
    assert (scores["n"] == 0).all()
    assert scores["value"].isna().all()
    assert len(metrics)
    assert metrics[["value", "wilson_low", "wilson_high"]].isna().all(axis=None)
    assert tables["group_scores"].query("attribute == 'side'")["value"].notna().all()
