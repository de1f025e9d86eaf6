"""The step tabulate_audit, on made logits of three models that score_models has scored, and the verdict on them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gate import gate
from gfscore import audit_logits
from gfscore.audit.table_names import COMPARISONS, CONFUSIONS, MEASURE_TABLES, TABULATED
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.statistics import SCALE
from gfscore.statistics.betting import mean_bounds
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import scores
from gfscore.statistics.proportions import clopper_pearson
from gfscore.tables.parquet_tables import read_identity
from helpers.configurations import gate_rule
from helpers.steps import MEASURES, NAMES, SEARCH, UNPUBLISHED, made_logits, three_models

MODELS = ("weak", "middle", "strong")
RULES = [gate_rule("great", at_least=0.2), gate_rule("clean", statistic="rdi", at_most=0.9)]


def made_audit(path, *, split=None, **settings):
    """ScoredAudit of three models that calibrates, and knows their robust accuracies."""
    known = {"calibration": SEARCH | {"split": split}}
    known["published"] = [{"published_clean_accuracy": 0.9, "published_robust_accuracy": None}] * 3
    audit = three_models(path, **known | settings)
    for index, model in enumerate(audit.models):
        audit.trained.append(path / f"{model['model']}.json")
        measured = {"robust_accuracy": 0.2 * index, "robust_accuracy_attack": "PGD-20"}
        write_json(audit.trained[-1], {**model, **measured})
    return audit


def run(audit, rules=RULES):
    """Score, tabulate and judge; returns the verdict."""
    audit.score()
    audit.tabulate()
    return audit.judge(rules)


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    audit = made_audit(tmp_path_factory.mktemp("audit"))
    run(audit)
    return audit


def test_every_table_is_written_with_its_csv_and_says_whether_the_audit_measures_for_it(audit):
    measured = {name: read_identity(audit.table(name))["measured"] for name in TABULATED}
    for name in TABULATED:
        assert audit.table(name).with_suffix(".csv").is_file()
        assert measured[name] or audit.read(name).empty
    agreement = [name for name in MEASURE_TABLES if measured[name]]
    assert agreement == ["measure_agreement"]
    assert all(measured[name] for name in TABULATED if name not in MEASURE_TABLES)


def test_readers_see_no_table_that_the_audit_does_not_measure_for(audit, tmp_path):
    plain = three_models(tmp_path, calibrated=None)
    plain.score()
    plain.tabulate()
    for one, searched in ((audit, True), (plain, False)):
        tables = one.folder.tables()
        named = ("calibration", "sensitivity", *COMPARISONS, *CONFUSIONS, *MEASURE_TABLES)
        filled = {name for name in named if len(tables.named(name))}
        assert filled & set(MEASURE_TABLES) == {"measure_agreement"}
        assert ("calibration" in filled) == bool(tables.calibration_results) == searched
        assert set(read_json(one.table("comparison.json"))) == set(MEASURES)
        assert filled >= {*COMPARISONS, *CONFUSIONS, "sensitivity"}
    assert set(plain.read("class_scores")["calibration"]) == {"none"}


def test_the_summary_says_which_data_and_settings_it_is_of(audit):
    about = read_identity(audit.table("model_summary"))
    assert about["dataset_digest"] == read_identity(audit.table("class_scores"))["dataset_digest"]
    assert about["measures"] == MEASURES
    made_from = read_identity(audit.table("class_scores"))["made_from"]
    assert [(source["model"], source["checkpoint_sha256"]) for source in made_from] == [
        (model, f"c-{model}") for model in MODELS
    ]


def test_the_workflow_and_the_python_api_give_the_same_numbers(audit):
    library = audit_logits(
        {model: made_logits(index)[0] for index, model in enumerate(MODELS)}, made_logits(0)[1], class_names=NAMES
    )

    def rows_of(table):
        rows = audit.read(table)
        rows = rows[rows["measure"] == "great"]
        if "calibration" in rows:
            rows = rows[rows["calibration"] == "none"]
        return rows.rename(columns={"class_name": "class", "first_model": "first", "second_model": "second"})

    for table, frame in {
        "class_scores": library.classes,
        "model_summary": library.metrics,
        "model_comparisons": library.comparison,
        "comparisons": library.class_comparison,
        "rank_intervals": library.ranks,
    }.items():
        expected = rows_of(table).set_index(frame.index.names)[list(frame.columns)]
        pd.testing.assert_frame_equal(frame, expected, rtol=1e-12)
    pairs = rows_of("class_pairs")
    assert pairs.groupby("model")["difference"].max().to_dict() == pytest.approx(library.metrics["rdi"].to_dict())


def test_the_interval_of_an_aggregate_alone_is_that_of_all_samples_together(audit):
    summary = audit.read("model_summary")
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


def test_every_model_measure_and_calibration_has_its_rows(audit):
    scores = audit.read("class_scores")
    keys = scores.groupby(["model", "measure", "calibration"]).size()
    assert set(keys) == {len(NAMES)}
    calibrations = scores[scores["measure"] == "great"]["calibration"].unique()
    assert list(calibrations) == ["none", *SEARCH["objectives"]]
    assert len(keys) == 3 * (1 + 1 + len(SEARCH["objectives"]))
    assert scores[scores["measure"] == "clean"]["temperature"].isna().all()
    assert (scores[scores["calibration"] == "none"]["temperature"].dropna() == 1).all()


def test_a_temperature_chosen_on_the_same_samples_gets_no_bounds(audit):
    for name in ("class_scores", "model_summary"):
        table = audit.read(name)
        bounded = table["calibration"] == "none"
        bounds = table[[column for column in table.columns if column.endswith(("low", "high"))]]
        assert bounds[~bounded].isna().all(axis=None)
        assert bounds[bounded].notna().all(axis=None)
        assert table["interval"].notna().equals(bounded)


def test_calibrated_rows_stand_at_the_temperature_that_calibration_json_records(audit):
    results = read_json(audit.table("calibration.json"))
    scores = audit.read("class_scores")
    for objective, result in results.items():
        rows = scores[scores["calibration"] == objective]
        if objective == "likelihood":
            assert result["t_star"] is None
            chosen = rows.groupby("model")["temperature"].first().to_dict()
            assert chosen == {name.split("/")[1]: t for name, t in result["t_star_by_model"].items()}
        else:
            assert set(rows["temperature"]) == {result["t_star"]}
        library = audit_logits(*made_logits(0), class_names=NAMES, temperature=rows["temperature"].iloc[0])
        first = rows[rows["model"] == "weak"]
        assert first["value"].to_numpy() == pytest.approx(library.classes["value"].to_numpy(), rel=1e-12)


def test_rank_agreement_is_given_before_and_after_by_name(audit):
    result = read_json(audit.table("calibration.json"))["cross_model_accuracy"]
    # The stronger the model, the more accurate, the more robust and the higher its score: every order agrees.
    assert result["agreement"] == {
        "clean accuracy": {"before": 1.0, "after": 1.0},
        "robust accuracy": {"before": 1.0, "after": 1.0},
    }
    assert result["baseline"] == {"clean accuracy alone vs robust accuracy": 1.0}
    assert len(result["models_digest"]) == 64


def test_what_the_samples_can_tell_apart_is_twice_the_widest_interval_at_most(audit):
    scores = audit.read("class_scores")
    summary = audit.read("model_summary")
    bounded = summary[summary["calibration"] == "none"]
    assert summary["rdi_detectable"].notna().equals(summary["calibration"] == "none")
    for row in bounded.to_dict("records"):
        own = scores[(scores["model"] == row["model"]) & (scores["measure"] == row["measure"])]
        own = own[own["calibration"] == "none"]
        assert row["rdi_detectable"] == pytest.approx((own["high"] - own["low"]).nlargest(2).sum())


def test_the_verdict_follows_the_bounds(audit):
    verdict = read_json(audit.table("verdict.json"))
    by_model = {model["model"]: model for model in verdict["rules"][0]["models"]}
    assert by_model["strong"]["value"] > by_model["weak"]["value"]
    for model in by_model.values():
        expected = "PASS" if model["low"] >= 0.2 else "FAIL" if model["high"] < 0.2 else "INCONCLUSIVE"
        assert model["verdict"] == expected
    assert [rule["interval"] for rule in verdict["rules"]] == ["betting", "clopper_pearson"]
    scores = audit.read("class_scores")
    assert set(scores["interval"][scores["measure"] == "clean"]) == {"clopper_pearson"}
    assert verdict["stops"]
    with pytest.raises(InputError, match="the gate stays closed"):
        gate({"verdict.json": read_verdict(audit.table("verdict.json"))})


def test_the_gate_opens_for_what_does_not_stop_it(capsys):
    gate({"undecided.json": SimpleNamespace(sentence="INCONCLUSIVE: of 1 models", stops=False)})
    assert "INCONCLUSIVE: of 1 models" in capsys.readouterr().out


def test_a_verdict_is_current_only_while_the_files_that_it_rests_on_are_those_that_there_are(tmp_path):
    audit = made_audit(tmp_path)
    run(audit, [gate_rule("clean", at_least=0.01)])
    path = audit.table("verdict.json")
    read_verdict(path).require_current(path)
    audit.checks = audit.checks[:2]
    audit.models = audit.models[:2]
    audit.score()
    with pytest.raises(InputError, match=r"verdict\.json: rests on another .*(models\.json|scores\.parquet)"):
        read_verdict(path).require_current(path)


def test_all_models_wrong_leaves_temperatures_undefined_and_nrgc_missing(tmp_path):
    audit = made_audit(tmp_path)
    for index, model in enumerate(MODELS):
        logits, labels = made_logits(index)
        logits[np.arange(len(labels)), labels] = -50
        audit.write_logits(model, logits, labels)
    run(audit)
    results = read_json(audit.table("calibration.json"))
    assert results["cross_model_accuracy"]["t_star"] is None
    assert "undefined" in results["cross_model_accuracy"]["undefined"]
    summary = audit.read("model_summary")
    uncalibrated = summary[(summary["measure"] == "great") & (summary["calibration"] == "none")]
    assert uncalibrated["nrgc"].isna().all()
    assert (uncalibrated["wcr"] == 0).all()
    assert uncalibrated["wcr_tied"].map(len).eq(4).all()


def test_a_refused_model_is_left_out_of_every_table_and_named(tmp_path):
    audit = made_audit(tmp_path)
    refused = UNPUBLISHED | {"published": 0.1, "samples": "full", "on_failure": "exclude"}
    audit.checks[1]["gate"] = refused
    verdict = run(audit)
    for name in ("class_scores", "model_summary", "confusions"):
        assert set(audit.read(name)["model"]) == {"weak", "strong"}
    (excluded,) = verdict["excluded"]
    assert excluded["model"] == "none/middle" and "published 10.00%" in excluded["reason"]
    assert "1 left out" in verdict["sentence"]
    calibration = read_json(audit.table("calibration.json"))
    assert set(calibration["likelihood"]["t_star_by_model"]) == {"none/weak", "none/strong"}


def test_a_model_no_better_than_guessing_takes_part_with_a_warning_in_the_verdict(tmp_path):
    audit = made_audit(tmp_path)
    logits, labels = made_logits(1)
    audit.write_logits("middle", np.roll(logits, 1, axis=0), labels)
    audit.write_logits("strong", made_logits(2)[0][:, [1, 0, 2, 3]], labels)
    verdict = run(audit)
    assert [warning["model"] for warning in verdict["warned"]] == ["none/middle", "none/strong"]
    assert verdict["guessing"] == ["none/middle"]
    assert "Warning: none/middle: may be guessing (clean accuracy 0.2" in verdict["sentence"]
    assert "Warning: none/strong: classes look exchanged (cat and dog)" in verdict["sentence"]
    assert set(audit.read("class_scores")["model"]) == set(MODELS)


def test_a_temperature_chosen_on_other_samples_is_reported_on_fresh_ones(tmp_path):
    split = {"share": 0.5, "seed": 3}
    audit = made_audit(tmp_path, split=split)
    run(audit)
    results = read_json(audit.table("calibration.json"))
    assert all(result["split"] == split for result in results.values())
    scores = audit.read("class_scores")
    samples = scores.groupby(["model", "calibration"])["n"].sum().unstack()
    assert (samples["none"] % 120 == 0).all()
    assert samples.drop(columns="none").isin([60]).all(axis=None)
    half = choosing_samples(audit.ids, made_logits(0)[1], **split)
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
