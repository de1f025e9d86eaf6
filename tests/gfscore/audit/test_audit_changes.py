from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gfscore import InputError
from gfscore.audit.audit_changes import audit_changes
from gfscore.audit.metrics import BOUNDED
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.core.files import write_json
from gfscore.tables.parquet_tables import write_table
from gfscore.workflow.command import main
from helpers.synthetic_audits import synthetic_audit


@pytest.fixture(scope="module")
def summary():
    return synthetic_audit(models=2, per_class=20).model_summary


MEASURES = {"great-softmax": {"kind": "great", "activation": "softmax", "batch_size": 8}}


def written(folder, summary, *, digest="a" * 64, data="d" * 64, measures=MEASURES, fp_lambda=0.5):
    folder.mkdir()
    about = {"dataset_digest": data, "measures": measures, "fp_lambda": fp_lambda}
    write_table(folder / "model_summary.parquet", MODEL_SUMMARY, summary, identity={"audit": folder.name} | about)
    result = {"measure": "great-softmax", "models_digest": digest, "split": None, "t_star": 2.0}
    write_json(folder / "calibration.json", {"cross_model_accuracy": result})
    return folder


def moved(summary, **changes):
    """The summary with values and bounds of the first row set."""
    later = summary.copy()
    for name, value in changes.items():
        later.loc[later.index[0], name] = value
    return later


def test_an_audit_did_not_change_against_itself(tmp_path, summary):
    folder = written(tmp_path / "one", summary)
    changes = audit_changes(folder, folder)
    assert len(changes) == len(BOUNDED) * (summary["calibration"] == "none").sum()
    assert (changes["change"].dropna() == 0).all()
    assert set(changes["verdict"].dropna()) == {"undecided"}


def test_a_verdict_of_another_run_than_the_table_is_refused(tmp_path, summary):
    """As `snakemake audit` leaves it after other logits: the verdict is new, the table old."""
    folder = written(tmp_path / "one", summary)
    row = summary[summary["calibration"] == "none"].iloc[0]
    model = {"threat": row["threat"], "model": row["model"], "value": float(row["wcr"])}
    rule = {"measure": row["measure"], "statistic": "wcr", "models": [model]}
    write_json(folder / "verdict.json", {"rules": [rule]})
    audit_changes(folder, folder)
    model["value"] += 0.01
    write_json(folder / "verdict.json", {"rules": [rule]})
    with pytest.raises(
        InputError, match=r"one: verdict.json and model_summary.parquet are from different runs: wcr of"
    ):
        audit_changes(folder, folder)
    model |= {"model": "another"}
    write_json(folder / "verdict.json", {"rules": [rule]})
    with pytest.raises(InputError, match="of another is"):
        audit_changes(folder, folder)


@pytest.mark.parametrize(
    ("statistic", "bounds", "verdict"),
    [
        ("wcr", (0.9, 0.91, 0.95), "better"),
        ("wcr", (0.0, 0.0, 0.0), "worse"),
        ("rdi", (0.9, 0.9, 0.95), "worse"),
        ("rdi", (0.0, 0.0, 0.0), "better"),
        # By the bounds of the mean alone: the joint ones, which stay as they were, are wide.
        ("value", (0.9, 0.9, 0.95), "better"),
    ],
)
def test_disjoint_intervals_decide_in_the_direction_of_the_statistic(tmp_path, summary, statistic, bounds, verdict):
    bounded = "value_alone" if statistic == "value" else statistic
    names = (statistic, f"{bounded}_low", f"{bounded}_high")
    first = moved(summary, **dict(zip(names, (0.5, 0.4, 0.6), strict=True)))
    second = moved(summary, **dict(zip(names, bounds, strict=True)))
    changes = audit_changes(written(tmp_path / "one", first), written(tmp_path / "two", second))
    row = changes[(changes["statistic"] == statistic) & (changes["verdict"] == verdict)]
    assert len(row) == 1
    assert row["change"].item() == pytest.approx(bounds[0] - 0.5)


def test_touching_intervals_decide_nothing(tmp_path, summary):
    first = moved(summary, wcr_low=0.4, wcr_high=0.5)
    second = moved(summary, wcr_low=0.5, wcr_high=0.6)
    changes = audit_changes(written(tmp_path / "one", first), written(tmp_path / "two", second))
    assert set(changes["verdict"].dropna()) == {"undecided"}


def test_a_model_of_one_audit_only_is_listed_without_a_change(tmp_path, summary):
    kept = summary[summary["model"] != "model_1"]
    changes = audit_changes(written(tmp_path / "one", summary), written(tmp_path / "two", kept))
    gone = changes[changes["model"] == "model_1"]
    assert len(gone) > 0
    assert gone["first"].notna().all() and gone[["second", "change", "verdict"]].isna().all(axis=None)


def test_rows_calibrated_on_other_models_are_refused(tmp_path, summary):
    one = written(tmp_path / "one", summary)
    two = written(tmp_path / "two", summary, digest="b" * 64)
    assert len(audit_changes(one, two))
    with pytest.raises(InputError, match="not comparable: the digest of the model set"):
        audit_changes(one, two, calibration="cross_model_accuracy")


def test_audits_without_anything_in_common_are_refused(tmp_path, summary):
    two = written(tmp_path / "two", summary.assign(dataset="another"))
    with pytest.raises(InputError, match="no model and measure of the same name in common"):
        audit_changes(written(tmp_path / "one", summary), two)


def test_audits_of_one_model_each_are_compared_whatever_it_is_called(tmp_path, summary):
    own = summary[summary["model"] == "model_1"]
    one = written(tmp_path / "one", own.assign(threat="none", model="release-1"))
    two = written(tmp_path / "two", moved(own, wcr=0.0, wcr_low=0.0, wcr_high=0.0).assign(model="release-2"))
    changes = audit_changes(one, two)
    assert set(changes["model"]) == {"release-1 then release-2"}
    assert "worse" in set(changes["verdict"])
    # An audit that left out a model was not of one model.
    write_json(
        tmp_path / "two/models.json",
        {"included": ["none/release-2"], "excluded": [{"model": "none/other", "reason": "accuracy"}], "guessing": []},
    )
    with pytest.raises(InputError, match="no model and measure of the same name"):
        audit_changes(one, two)


def test_the_command_says_what_changed_by_its_exit_status_too(tmp_path, summary, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("results/audits").mkdir(parents=True)
    lower = moved(summary, wcr=0.0, wcr_low=0.0, wcr_high=0.0)
    one, two = str(written(Path("results/audits/one"), summary)), str(written(tmp_path / "two", lower))
    assert main(["compare", "one", "one"]) == 0
    assert main(["compare", one, two, "--csv", "changes.csv"]) == 1
    assert "worse   none/model_0, clean, wcr: " in capsys.readouterr().out
    assert len(pd.read_csv("changes.csv")) == len(audit_changes(one, two))
    assert main(["compare", two, "one"]) == 0, "better"
    fewer = written(tmp_path / "fewer", summary[summary["model"] == "model_0"])
    assert main(["compare", "one", str(fewer)]) == 0
    assert f"Not in {fewer}: none/model_1" in capsys.readouterr().out
    others = {"great-softmax": {**MEASURES["great-softmax"], "activation": "sigmoid"}}
    own = summary[summary["measure"] == "great-softmax"]
    first, second = written(tmp_path / "first", own), written(tmp_path / "second", own, measures=others)
    assert main(["compare", str(first), str(second)]) == 3
    assert "can be compared" in capsys.readouterr().err
    assert main(["compare", "one", "nowhere"]) == 3
    assert "results/audits/nowhere: no such audit" in capsys.readouterr().err


def test_statistics_without_intervals_get_no_verdict(tmp_path, summary):
    without = summary.assign(**{name: np.nan for name in summary.columns if name.endswith(("_low", "_high"))})
    folder = written(tmp_path / "one", without)
    assert audit_changes(folder, folder)["verdict"].isna().all()


def test_audits_of_other_data_are_refused_by_their_digests(tmp_path, summary):
    two = written(tmp_path / "two", summary, data="e" * 64)
    with pytest.raises(InputError, match=r"audits of different data: .* ddd.* and eee"):
        audit_changes(written(tmp_path / "one", summary), two)


def test_a_table_that_does_not_say_what_it_is_of_is_refused(tmp_path, summary):
    (tmp_path / "old").mkdir()
    write_table(tmp_path / "old/model_summary.parquet", MODEL_SUMMARY, summary, identity={"audit": "old"})
    with pytest.raises(InputError, match=r"old/model_summary\.parquet does not record its data"):
        audit_changes(tmp_path / "old", written(tmp_path / "one", summary))


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        ({"activation": "sigmoid"}, {"not comparable: other activation"}),
        ({"eps": 0.5}, {"not comparable: other eps"}),
        ({"batch_size": 16}, {"worse", "undecided"}),
    ],
)
def test_a_measure_with_other_settings_is_neither_better_nor_worse(tmp_path, summary, change, verdicts):
    own = summary[(summary["measure"] == "great-softmax") & (summary["calibration"] == "none")]
    lower = moved(own, value=0.0, value_alone_low=0.0, value_alone_high=0.0)
    other = {"great-softmax": MEASURES["great-softmax"] | change}
    two = written(tmp_path / "two", lower, measures=other)
    assert set(audit_changes(written(tmp_path / "one", own), two)["verdict"].dropna()) == verdicts


def test_fp_with_another_lambda_is_neither_better_nor_worse(tmp_path, summary):
    higher = summary.assign(**{name: summary[name] + 5 for name in ("fp", "fp_low", "fp_high")})
    one, two = written(tmp_path / "one", summary), written(tmp_path / "two", higher, fp_lambda=0.1)
    verdicts = audit_changes(one, two).set_index("statistic")["verdict"].dropna()
    assert set(verdicts.pop("fp")) == {"not comparable: other fp_lambda"}
    assert set(verdicts) == {"undecided"}
    three = written(tmp_path / "three", higher)
    assert "better" in set(audit_changes(one, three).set_index("statistic")["verdict"]["fp"])
