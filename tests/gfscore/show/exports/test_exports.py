"""Exports say what the tables say, in forms that other readers take, whatever a name holds."""

import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

import export_audit
from gfscore.audit.settings import CalibrationSplit
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.core.software import software, version_in_words
from gfscore.measures import measure_of, named_measures
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.show import run_output
from gfscore.show.exports import ExportSettings, crate
from gfscore.show.exports.cards import evaluation_results, model_cards
from gfscore.show.exports.crate import AuditRun, write_crate
from gfscore.show.exports.latex_tables import (
    calibration_table,
    class_table,
    coupling_table,
    escaped,
    latex_of,
    model_table,
    projection_table,
)
from gfscore.show.exports.step_runs import StepRun, recorded_steps
from gfscore.statistics.margins import SCALE
from gfscore.workflow.audit_steps import deposited_inputs
from gfscore.workflow.plan import Run
from gfscore.workflow.sources import workflow_files
from helpers.configurations import shipped_configuration
from helpers.synthetic_audits import LAM, synthetic_audit
from helpers.validators import faults_of_crate

pytestmark = pytest.mark.seconds(20)

ROOT = Path(__file__).parents[4]
GREAT = measure_of({"kind": "great"})
MANIFEST = "results/datasets/toy.json"
HOSTILE = ["$x_1$ & \\frac{a}{b}", "50% #1 {~^}", "<b>: - ['q\"\n"]


def audit_of(**settings):
    return synthetic_audit(**({"models": 3, "per_class": 20, "calibrated": False} | settings))


def rows_of(table, measure):
    return table[table["measure"] == measure].reset_index(drop=True)


# ---- LaTeX ----


def table_of_models(summary, *, name="great-softmax", calibrations=()):
    return model_table(summary, GREAT, name=name, fp_lambda=LAM, calibrations=dict(calibrations))


@pytest.fixture(scope="module")
def calibrated():
    return synthetic_audit(models=4, per_class=20, measures=("great-softmax",))


def cells_of(text):
    body = text.split("\\endlastfoot")[-1].split("\\midrule")[-1].split("\\bottomrule")[0].split("\\end{longtable}")[0]
    lines = [line.removesuffix("\\\\").strip() for line in body.strip().splitlines() if "&" in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]


def test_table_of_models_is_sorted_by_robust_accuracy_and_prints_three_decimals():
    audit = audit_of()
    summary = rows_of(audit.model_summary, "great-softmax")
    text = table_of_models(summary)
    cells = cells_of(text)
    best = summary.sort_values("robust_accuracy", ascending=False).iloc[0]
    assert cells[0][:3] == [
        best["model"].replace("_", "\\_"),
        f"{100 * best['robust_accuracy']:.1f}",
        f"{best['value']:.3f}",
    ]
    assert cells[0][3:6] == [f"{best[name]:.3f}" for name in ("rdi", "nrgc", "wcr")]
    assert cells[0][6:] == [best["wcr_class"], f"{best['fp']:.3f}"]
    assert len(cells) == 3
    assert text.count("\\toprule") == text.count("\\bottomrule") == 1


def test_calibrated_scores_have_a_column_and_their_temperature_in_the_caption(calibrated):
    inside = {
        name: result.model_copy(update={"edge": False}) for name, result in calibrated.calibration_results.items()
    }
    text = table_of_models(calibrated.model_summary, calibrations=inside)
    chosen = calibrated.calibration_results["within_model_class_accuracy"].t_star
    assert f"Cal. score: at T = {chosen:.3g}, chosen by within-model class accuracy." in text
    own = calibrated.of("model_summary", calibration="within_model_class_accuracy").set_index("model")["value"]
    assert cells_of(text)[0][3] == f"{own[cells_of(text)[0][0].replace(chr(92), '')]:.3f}"


def test_a_model_without_a_calibrated_score_hides_none_of_a_model_of_the_same_name(calibrated):
    summary = calibrated.model_summary.copy()
    twin = summary["model"] == "model_1"
    summary.loc[twin, ["threat", "model"]] = ["Linf", "model_0"]
    # As of a model whose values come without logits.
    summary = summary[~twin | (summary["calibration"] == "none")]
    rows = cells_of(table_of_models(summary, calibrations=calibrated.calibration_results))
    assert {row[0]: row[3] == "--" for row in rows if "model\\_0" in row[0]} == {
        "none/model\\_0": False,
        "Linf/model\\_0": True,
    }


@pytest.mark.parametrize("split", [None, CalibrationSplit(share=0.5)])
def test_scores_of_other_samples_than_chose_the_temperature_are_said_to_be(calibrated, split):
    results = {
        name: result.model_copy(update={"split": split}) for name, result in calibrated.calibration_results.items()
    }
    texts = [
        table_of_models(calibrated.model_summary, calibrations=results),
        calibration_table(results, calibrated.model_summary, name="great-softmax"),
    ]
    assert [", without the samples that chose T" in text for text in texts] == [split is not None] * 2


def test_a_temperature_at_the_edge_of_the_search_has_a_star_in_both_tables(calibrated):
    summary, results, chosen = calibrated.model_summary, calibrated.calibration_results, "within_model_class_accuracy"
    for edge, title in ((True, "Cal. score*"), (False, "Cal. score")):
        marked = {name: result.model_copy(update={"edge": edge and name == chosen}) for name, result in results.items()}
        models = table_of_models(summary, calibrations=marked)
        assert f"{title} &" in models
        text = calibration_table(marked, summary, name="great-softmax")
        assert [row[1].endswith("*") for row in cells_of(text)] == [edge and name == chosen for name in results]
        # A caption explains the star where there is one.
        assert ["*: optimum at the edge" in caption for caption in (models, text)] == [edge] * 2


def test_table_of_calibrations_is_the_agreement_with_robust_accuracy_before_and_after(calibrated):
    results = calibrated.calibration_results
    cells = cells_of(calibration_table(results, calibrated.model_summary, name="great-softmax"))
    for row, result in zip(cells, results.values(), strict=True):
        found = result.agreement["robust accuracy"]
        assert row[2:] == ["--" if rho is None else f"{rho:.3f}" for rho in (found.before, found.after)]


def test_table_of_calibrations_counts_the_models_of_known_robust_accuracy(calibrated):
    summary = calibrated.model_summary
    summary = summary.assign(robust_accuracy=summary["robust_accuracy"].where(summary["model"] == "model_0"))
    text = calibration_table(calibrated.calibration_results, summary, name="great-softmax")
    assert "great-softmax, 1 model on toy." in text


def test_table_of_classes_holds_every_value_and_the_mean():
    audit = audit_of()
    scores = rows_of(audit.class_scores, "great-softmax")
    cells = cells_of(class_table(scores, GREAT, name="great-softmax"))
    first = scores[scores["model"] == cells[0][0].replace("\\", "")]
    assert cells[0][1:-1] == [f"{value:.3f}" for value in first["value"]]
    assert cells[0][-1] == f"{np.average(first['value'], weights=first['n']):.3f}"


def test_tables_of_a_measure_with_samples_without_a_value_have_both_ends():
    audit = audit_of()
    scores = rows_of(audit.class_scores, "great-softmax")
    text = class_table(scores.assign(value_most=scores["value"] + 0.1), GREAT, name="great-softmax")
    assert "Ranges: open samples count" in text and "--" in cells_of(text)[0][1]
    summary = rows_of(audit.model_summary, "great-softmax")
    for most, written in ((0.0, False), (0.1, True)):
        text = table_of_models(summary.assign(value_most=summary["value"] + most, wcr_tied=[["c0"]] * len(summary)))
        assert ("Score at most" in text and "WCR at most" in text) == written


def test_many_classes_stand_in_rows_of_a_long_table():
    audit = audit_of(models=2, classes=30, per_class=5, measures=("great-softmax",), permutations=19)
    text = class_table(audit.class_scores, GREAT, name="great-softmax")
    assert "\\begin{longtable}{lrr}" in text
    assert len(cells_of(text)) == 31


def test_a_class_or_model_called_like_another_column_keeps_its_values():
    few = audit_of(models=2, classes=3, class_names=["All", "Model", "Class"], measures=("great-softmax",))
    text = class_table(few.class_scores, GREAT, name="great-softmax")
    assert "Model & All & Model & Class & All" in text
    for row in cells_of(text):
        scores = few.class_scores[few.class_scores["model"] == row[0].replace("\\", "")]
        assert row[1:-1] == [f"{value:.3f}" for value in scores["value"]]
    many = audit_of(models=2, classes=30, per_class=5, model_names=["Class", "All"], measures=("great-softmax",))
    assert len(cells_of(class_table(many.class_scores, GREAT, name="great-softmax"))) == 31


def test_class_without_samples_and_unknown_robust_accuracy_are_dashes():
    audit = audit_of(empty_class=3)
    scores = rows_of(audit.class_scores, "clean")
    assert cells_of(class_table(scores, GREAT, name="clean"))[0][4] == "--"
    summary = rows_of(audit.model_summary, "clean").assign(robust_accuracy=np.nan, robust_accuracy_source=None)
    text = table_of_models(summary, name="clean")
    assert {row[1] for row in cells_of(text)} == {"--"}
    assert "No robust accuracy is known." in text and "sorted by score." in text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a_b", "a\\_b"),
        ("50% & #1", "50\\% \\& \\#1"),
        ("\\input{x}", "\\textbackslash{}input\\{x\\}"),
        ("~^$<>|", "\\textasciitilde{}\\textasciicircum{}\\$\\textless{}\\textgreater{}\\textbar{}"),
        ("new\nline", "new line"),
    ],
)
def test_names_are_text_to_latex(name, written):
    assert escaped(name) == written


def test_hostile_names_do_not_break_the_tables():
    audit = audit_of(model_names=HOSTILE, measures=("clean",))
    text = table_of_models(audit.model_summary, name="a_b c")
    assert {len(row) for row in cells_of(text)} == {8}
    assert "\\frac{" not in text
    assert "\\label{tab:a-b-c-models}" in text


@pytest.mark.parametrize("name", ["[2pt]", "*best", "[x] y"])
def test_no_name_is_an_argument_of_the_line_before_it(name):
    text = latex_of(pd.DataFrame({"Class": [name, name], "A": [1.0, 2.0]}), caption="c", label="l")
    for line in text.splitlines():
        assert not line.startswith(("[", "*"))
    assert text.count(f"{{}}{name} &") == 2


# ---- LaTeX of projections ----


def projected(task, model, *values, constant=False):
    names = ("n", "dimensions", "group_attributes", "task_accuracy", "dp", "eopp", "eodd")
    names += ("tolerance", "deviation", "coupling")
    key = {"dataset": task, "threat": "none", "model": model, "mapper": "vae_1", "constant": constant}
    return key | dict(zip(names, values, strict=True)) | {"accuracy": 0.11}


PROJECTED = [
    projected("age", "a_b", 100, 6, 2, 0.64723, 0.2, 0.04893, 0.33296, 0.92678, 0.070982, 1.28644),
    projected("age", "c", 100, 6, 2, 0.5, 0.1, 0.00012, 0.0, 1.0, 0.0, 0.0, constant=True),
    projected("gender", "a_b", 80, 7, 2, 0.3, 0.1, 0.2, 0.3, 0.8, np.nan, 0.5),
    projected("gender", "c", 80, 7, 2, 0.4, np.nan, 0.2, 0.3, 0.7, np.nan, 12.3456),
]


def test_scores_of_projections_have_tasks_side_by_side_and_three_digits():
    text = projection_table(pd.DataFrame(PROJECTED))
    top = text.split("\\toprule")[1].split("\\midrule")[0].split()
    assert "".join(top[:5]) == "&\\multicolumn{6}{c}{age}&\\multicolumn{6}{c}{gender}\\\\"
    assert [name for name in top[5:] if name.isalpha()] == ["Model", *["Acc", "DP", "EOpp", "EOdd", "Tol", "Dev"] * 2]
    assert cells_of(text) == [
        ["a\\_b", "0.647", "0.200", "0.0489", "0.333", "0.927", "0.0710", *("0.300", "0.100", "0.200", "0.300", "0.800", "--")],
        ["c", "0.500", "0.100", "0.000120", "0", "--*", "--*", *("0.400", "--", "0.200", "0.300", "0.700", "--")],
    ]  # fmt: skip
    assert "80 to 100 samples" in text and "2 models on the mapper vae\\_1" in text
    assert "--*: constant" in text and "--: undefined" in text
    plain = projection_table(pd.DataFrame(PROJECTED[:1]))
    assert "--" not in plain and "\\label{tab:vae-1-projection}" in plain


def test_coupling_by_task():
    text = coupling_table(pd.DataFrame(PROJECTED))
    assert "Model & age & gender" in text
    assert cells_of(text) == [["a\\_b", "1.29", "0.500"], ["c", "--*", "12.3"]]
    assert "Model & Model & gender" in coupling_table(pd.DataFrame(PROJECTED).replace({"dataset": {"age": "Model"}}))
    twice = pd.DataFrame([PROJECTED[0], PROJECTED[0] | {"threat": "linf"}])
    assert [row[0] for row in cells_of(coupling_table(twice))] == ["none/a\\_b", "linf/a\\_b"]


# ---- model cards ----


def card_of(text):
    _, block, page = text.split("---\n", 2)
    return yaml.safe_load(block), page


def cards_of(audit, **more):
    named = {
        "audit": "synthetic",
        "title": "Toy",
        "digest": "d" * 64,
        "classes": audit.class_scores["class_index"].nunique(),
        "fp_lambda": LAM,
        "findings": ["No *best* model can be shown"],
    }
    return model_cards(audit.model_summary, named_measures(audit.measures), **named, **more)


def test_cards_repeat_the_table_and_no_calibrated_score():
    audit = synthetic_audit(models=2, per_class=20, measures=("clean", "great-softmax"))
    cards = cards_of(audit)
    assert set(cards) == {"none__model_0", "none__model_1"}
    block, page = card_of(cards["none__model_1"])
    entry = block["model-index"][0]
    assert entry["name"] == "model_1"
    assert [len(result["metrics"]) for result in entry["results"]] == [6, 6]
    assert entry["results"][0]["metrics"][0]["type"] == "accuracy"
    row = audit.of("model_summary").iloc[1]
    found = {metric["type"]: metric for metric in entry["results"][1]["metrics"]}
    for name in ("value", "rdi", "nrgc", "wcr", "fp"):
        metric = found[f"great-softmax-{name}"]
        assert metric["value"] == row[name]
        bounded = "value_alone" if name == "value" else name
        assert (metric["args"]["low"], metric["args"]["high"]) == (row[f"{bounded}_low"], row[f"{bounded}_high"])
    assert "It is not a certified radius." in page
    assert "- No \\*best\\* model can be shown." in page


def test_measures_of_one_title_are_told_apart_in_cards():
    audit = synthetic_audit(models=1, per_class=10, measures=("great-softmax", "great-sigmoid"), calibrated=False)
    block, page = card_of(cards_of(audit)["none__model_0"])
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len({tuple(line.split(" | ")[:2]) for line in table}) == len(table) == 1 + 2 * 6
    names = [metric["name"] for result in block["model-index"][0]["results"] for metric in result["metrics"]]
    assert len(set(names)) == len(names)
    assert f"FP, class mean minus lambda times RDI, lambda = {LAM}" in page and "at T = 1" in page


def test_cards_are_read_by_the_hub_library():
    audit = audit_of(model_names=HOSTILE)
    for text in cards_of(audit).values():
        block, page = card_of(text)
        name, results = model_index_to_eval_results(block["model-index"])
        assert len(results) == 3 * 6
        assert "\n" not in name
        assert "<b>" not in page


def test_evaluation_results_are_read_by_the_hub_library_and_are_those_of_the_cards():
    audit = audit_of(model_names=HOSTILE)
    named = named_measures(audit.measures)
    given = {"hub_dataset": "someone/toy", "date": "2023-11-14T22:13:20+00:00", "fp_lambda": LAM}
    files = evaluation_results(audit.model_summary, named, **given)
    cards = cards_of(audit, hub_dataset="someone/toy")
    assert files.keys() == cards.keys()
    for model, text in files.items():
        entries = parse_eval_result_entries(yaml.safe_load(text))
        assert {entry.dataset_id for entry in entries} == {"someone/toy"}
        assert {entry.date for entry in entries} == {"2023-11-14T22:13:20+00:00"}
        _, results = model_index_to_eval_results(card_of(cards[model])[0]["model-index"])
        assert {result.dataset_type for result in results} == {"someone/toy"}
        written = {(entry.task_id, entry.value) for entry in entries}
        assert written == {(result.metric_type, result.metric_value) for result in results}
        assert len(written) == len(entries) == 3 * 6
        assert all("\n" not in entry.notes for entry in entries)


def test_cards_round_bounds_outwards_and_name_ties():
    audit = synthetic_audit(models=2, classes=3, per_class=10, measures=("clean",), calibrated=False)
    row = audit.model_summary.iloc[0]
    ends = {"wcr_low": 0.12399, "wcr_high": 0.45601}
    summary = pd.DataFrame([{**row, **ends, "wcr_tied": ["0", "2"], "wcr_class": "0"}])
    named = named_measures(audit.measures)
    given = {"hub_dataset": "a/b", "date": "2026-01-01T00:00:00+00:00", "fp_lambda": 0.25}
    (text,) = evaluation_results(summary, named, **given).values()
    assert "lambda = 0.25;" in text
    (notes,) = (entry["notes"] for entry in yaml.safe_load(text) if entry["dataset"]["task_id"] == "clean-wcr")
    assert "interval 0.123 to 0.457" in notes and "(0 (tied with 1 other))" in notes


def test_a_card_calls_classes_of_imagenet_by_their_names():
    names = ["n04525038", "n02321529"]
    audit = synthetic_audit(models=1, classes=2, class_names=names, per_class=20, measures=("clean",), calibrated=False)
    (card,) = cards_of(audit).values()
    assert any(f"({name})" in card for name in ("velvet", "sea cucumber"))
    assert not any(name in card for name in names)


def test_a_decided_value_of_a_card_is_one_number():
    audit = synthetic_audit(models=1, classes=3, per_class=10, measures=("clean",), calibrated=False)
    undecided = named_measures({"clean": {"kind": "probabilistic", "kappa": 0.1}})
    row = audit.model_summary.iloc[0]
    card = {"audit": "a", "title": "A", "digest": "d" * 64, "classes": 3, "fp_lambda": LAM}
    for value, most, written in ((0.5, 0.5, "| 0.500 |"), (0.51239, 0.61231, "| 0.512 to 0.613 |")):
        summary = pd.DataFrame([{**row, "value": value, "value_most": most}])
        (text,) = model_cards(summary, undecided, **card).values()
        assert written in text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("~~gone~~", "\\~\\~gone\\~\\~"),
        ("&lt;b&gt;", "\\&lt;b\\&gt;"),
        ("\N{MATHEMATICAL ITALIC SMALL ALPHA}-net \N{CAT FACE}",) * 2,
    ],
)
def test_names_are_text_to_markdown_and_come_back_as_they_are(name, written):
    block, page = card_of(next(iter(cards_of(audit_of(model_names=[name, "b", "c"])).values())))
    assert block["model-index"][0]["name"] == name
    assert page.strip().split("\n")[0] == f"# {written}"


def test_undefined_numbers_are_left_out():
    audit = audit_of(all_wrong=True, measures=("great-softmax",))
    block, _ = card_of(next(iter(cards_of(audit).values())))
    assert "great-softmax-nrgc" not in {metric["type"] for metric in block["model-index"][0]["results"][0]["metrics"]}


def test_cards_print_no_bound_beyond_the_range_of_its_number():
    audit = synthetic_audit(models=1, per_class=20, calibrated=False, measures=("great-softmax",))
    highest = {"value_alone": 1.2529, "class_mean": SCALE, "rdi": SCALE, "nrgc": 0.9, "wcr": 1.2529, "fp": SCALE}
    ends = {f"{name}_{end}": value for name, high in highest.items() for end, value in (("low", 0.0), ("high", high))}
    audit.model_summary[list(ends)] = list(ends.values())
    _, page = card_of(cards_of(audit)["none__model_0"])
    rows = [line.split(" | ") for line in page.splitlines() if line.endswith("(95%) |")]
    printed = [row[-1].split(" (")[0] for row in rows]
    assert printed == [f"0 to {end}" for end in ("1.253", "1.2533", "1.2533", "0.900", "1.253", "1.2533")]


# ---- crate ----


def crate_in(folder, root, *, config=None, workflow=("Snakefile", "rules/common.smk"), steps=(), stated=None):
    run = AuditRun(
        audit="toy",
        title="A toy",
        sentence="PASS: all.",
        finished=1_700_000_000.5,
        root=root,
        workflow_folder=Path(),
        workflow=workflow,
        config=config or {"run": ["toy"], "name": "日本語"},
        inputs=[MANIFEST],
        outputs=[
            "results/audits/toy/verdict.json",
            "results/audits/toy/class_scores.parquet",
            "results/audits/toy/figures",
        ],
        steps=steps,
    )
    write_crate(folder, run, stated or ExportSettings())


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    for name in (
        "Snakefile", "rules/common.smk", MANIFEST, "results/audits/toy/verdict.json",
        "results/audits/toy/class_scores.parquet", "results/audits/toy/figures/b.svg", "results/audits/toy/figures/a.png",
        "results/audits/toy/figures/.snakemake_timestamp",
    ):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"content of {name}")
    write_json(root / MANIFEST, {})
    return root


def test_crate_names_workflow_configuration_inputs_outputs_and_versions(root, tmp_path):
    from rocrate.rocrate import ROCrate

    crate_in(tmp_path / "crate", root)
    crate = ROCrate(tmp_path / "crate")
    assert crate.mainEntity.id == "Snakefile"
    assert "ComputationalWorkflow" in crate.mainEntity.type
    assert (crate.mainEntity["name"], crate.mainEntity["version"]) == ("gfscore", version_in_words(software()))
    action = crate.get("#run-of-toy")
    assert action["instrument"].id == "Snakefile"
    assert {entity.id for entity in action["object"]} == {"config-of-this-run.json", MANIFEST}
    results = [entity.id for entity in action["result"]]
    assert results[2:] == ["results/audits/toy/figures/a.png", "results/audits/toy/figures/b.svg"]
    versions = {entity["name"]: entity["softwareVersion"] for entity in crate.mainEntity["softwareRequirements"]}
    assert versions["numpy"] == np.__version__
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    profiles = {entity.id for entity in crate.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles


def test_keys_in_addresses_are_not_deposited(root, tmp_path):
    url = "https://example.org/m.pt?key=secret&x=[1],2"
    bare_url, bare = "https://example.org/m.pt?a=1,secret", {"bare": [{"url": "https://example.org/m.pt?..."}]}
    (root / "config.yaml").write_text(
        f'# was https://example.org/old?key=secret\nmine: {{url: "{url}", path: 日本}}\nbare:\n- url: {bare_url}\n'
    )
    config = {"models": [{"m": {"url": url, "title": "why?"}}, {"n": {"url": None}}]}
    crate_in(tmp_path / "crate", root, config=config, workflow=["Snakefile", "config.yaml"])
    assert all(b"secret" not in path.read_bytes() for path in (tmp_path / "crate").rglob("*") if path.is_file())
    shown = json.loads((tmp_path / "crate/config-of-this-run.json").read_text(encoding="utf-8"))["models"]
    assert shown == [{"m": {"url": "https://example.org/m.pt?...", "title": "why?"}}, {"n": {"url": None}}]
    text = (tmp_path / "crate/config.yaml").read_bytes()
    assert "https://example.org/old?...\n" in text.decode()
    assert yaml.safe_load(text) == {"mine": {"url": "https://example.org/m.pt?...", "path": "日本"}, **bare}
    metadata = json.loads((tmp_path / "crate/ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    (entity,) = [item for item in metadata if item["@id"] == "config.yaml"]
    assert entity["sha256"] == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "entry",
    [
        "url: 'https://h/x?a=it''secret'",
        'url: "https://h/x\\x3Fa=secret"',
        'url: "https://h/x\\\n  ?a=secret"',
        'url: "https://h/x?a=\\\n  secret"',
        'url: "https://h/x?file=\\"a\\"&a=secret"',
        "url: https://h/it's?a=secret",
    ],
)
def test_an_address_whose_key_cannot_be_left_out_is_refused(root, tmp_path, entry):
    assert "secret" in yaml.safe_load(entry)["url"]
    (root / "config.yaml").write_text(entry)
    with pytest.raises(InputError, match=r"^config\.yaml: a url in it has a query .* write each url plainly"):
        crate_in(tmp_path / "crate", root, workflow=["Snakefile", "config.yaml"])
    assert not (tmp_path / "crate").exists()


def test_manifests_of_checkpoints_hold_no_keys(root, tmp_path):
    path = tmp_path / "m.pt"
    torch.save({}, path)
    url = "https://example.org/m.pt?key=secret"
    settings = {"source": "timm", "path": str(path), "url": url, "sha256": None, "architecture": "resnet18"}
    manifest = describe_checkpoint(settings, identity={"dataset": "d", "threat": "none", "model": "m"})
    assert manifest["settings"] == settings | {"url": "https://example.org/m.pt?..."}
    # One of an earlier version.
    write_json(root / MANIFEST, {"settings": settings})
    with pytest.raises(InputError, match=rf"^{MANIFEST}: a url in it has a query"):
        crate_in(tmp_path / "crate", root)


def test_every_file_of_the_crate_is_there_with_its_digest_and_no_path_is_absolute(root, tmp_path):
    crate_in(tmp_path / "crate", root)
    text = (tmp_path / "crate/ro-crate-metadata.json").read_text(encoding="utf-8")
    files = [item for item in json.loads(text)["@graph"] if "sha256" in item]
    assert len(files) == 6
    for item in files:
        assert sha256_of_file(tmp_path / "crate" / item["@id"]) == item["sha256"]
    assert str(tmp_path) not in text
    assert not re.search(r'"@id": "(/|file:)', text)
    assert json.loads((tmp_path / "crate/config-of-this-run.json").read_text(encoding="utf-8"))["name"] == "日本語"


def test_two_crates_have_the_same_bytes(root, tmp_path):
    for name in ("one", "two"):
        crate_in(tmp_path / name, root)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
    text = (tmp_path / "one/ro-crate-metadata.json").read_text(encoding="utf-8")
    assert '"datePublished": "2023-11-14T22:13:20+00:00"' in text
    os.utime(root / "Snakefile", (0, 0))
    crate_in(tmp_path / "three", root)
    assert (tmp_path / "three/ro-crate-metadata.json").read_text(encoding="utf-8") == text


# ---- steps of the run ----

DATA_STEP = "workflow_scripts/fetch_dataset.py"
JUDGE_STEP = "workflow_scripts/judge_audit.py"
VERDICT = "results/audits/toy/verdict.json"


@pytest.fixture
def steps(root):
    """Two executions, the first of files of the user, the second of what the first had made."""
    for name, text in {
        DATA_STEP: '"""Open a dataset."""\n', JUDGE_STEP: '"""Judge an audit.\n\nMore."""\n', "CITATION.cff": "", "README.md": "",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    first = StepRun(
        script=DATA_STEP, name="fetch_dataset/toy", started=10, ended=20,
        inputs=["/home/me/my images", "/home/me/old/my images", DATA_STEP], outputs=[MANIFEST, "results/datasets/toy.parquet"],
    )  # fmt: skip
    second = StepRun(
        script=JUDGE_STEP, name="judge_audit/toy", started=30, ended=1_700_000_100.9,
        inputs=["results/datasets/toy.parquet", MANIFEST], outputs=[VERDICT, "results/audits/toy/figures"],
    )  # fmt: skip
    return [first, second]


WORKFLOW_WITH_STEPS = ("Snakefile", "rules/common.smk", DATA_STEP, JUDGE_STEP, "CITATION.cff", "README.md")
STATED = ExportSettings(
    author={"name": "Ada <Lovelace>", "orcid": "https://orcid.org/0000-0000-0000-0000"},
    publisher={"name": "An Institute", "url": "https://example.org/"},
    licence="CC-BY-4.0",
)


def entities_of(folder):
    text = (folder / "ro-crate-metadata.json").read_text(encoding="utf-8")
    return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}


def ids(value):
    return {item["@id"] for item in (value if isinstance(value, list) else [value])}


def test_executions_of_steps_name_script_inputs_outputs_and_times(root, tmp_path, steps):
    crate_in(tmp_path / "crate", root, workflow=WORKFLOW_WITH_STEPS, steps=steps, stated=STATED)
    entities = entities_of(tmp_path / "crate")
    run = entities["#execution-of-judge_audit/toy"]
    assert ids(run["instrument"]) == {JUDGE_STEP}
    assert ids(run["object"]) == {MANIFEST, "#file-results/datasets/toy.parquet"}
    figures = {"results/audits/toy/figures/a.png", "results/audits/toy/figures/b.svg"}
    assert ids(run["result"]) == {VERDICT, *figures}
    assert (run["startTime"], run["endTime"]) == ("1970-01-01T00:00:30+00:00", "2023-11-14T22:15:00+00:00")
    assert run["description"] == "Judge an audit."
    given = ids(entities["#execution-of-fetch_dataset/toy"]["object"])
    assert [entities[identifier]["name"] for identifier in given] == ["my images", "my images"]
    assert "/home/me" not in (tmp_path / "crate/ro-crate-metadata.json").read_text()
    whole = entities["#run-of-toy"]
    assert (whole["startTime"], whole["endTime"]) == ("1970-01-01T00:00:10+00:00", run["endTime"])
    assert entities["#step-fetch_dataset"]["position"] == "1"
    calls = entities["#snakemake-run"]["object"]
    assert [entities[call["@id"]]["object"]["@id"] for call in calls] == [
        "#execution-of-fetch_dataset/toy", "#execution-of-judge_audit/toy",
    ]  # fmt: skip


def test_a_file_whose_name_is_quoted_in_the_crate_is_found_in_it(root, tmp_path, steps):
    (root / "results/audits/toy/figures/cfps_a+b.png").write_text("drawing")
    named = StepRun(
        script=JUDGE_STEP, name="plot/a+b", started=40, ended=50, inputs=[], outputs=["results/audits/toy/figures/cfps_a+b.png"]
    )  # fmt: skip
    crate_in(tmp_path / "crate", root, workflow=WORKFLOW_WITH_STEPS, steps=[*steps, named])
    result = ids(entities_of(tmp_path / "crate")["#execution-of-plot/a%2Bb"]["result"])
    assert result == {"results/audits/toy/figures/cfps_a%2Bb.png"}


def test_without_records_of_steps_no_provenance_is_claimed(root, tmp_path):
    crate_in(tmp_path / "crate", root)
    entities = entities_of(tmp_path / "crate")
    assert not [name for name in ids(entities["./"]["conformsTo"]) if "provenance" in name]
    assert not [entity for entity in entities.values() if "HowToStep" in entity["@type"]]


def test_what_nobody_stated_is_not_in_the_crate(root, tmp_path, steps):
    crate_in(tmp_path / "unstated", root, workflow=WORKFLOW_WITH_STEPS, steps=steps)
    unstated = entities_of(tmp_path / "unstated")
    assert not {"author", "publisher"} & unstated["./"].keys()
    assert "MIT" not in unstated["./"]["license"]["@id"]
    crate_in(tmp_path / "stated", root, workflow=WORKFLOW_WITH_STEPS, steps=steps, stated=STATED)
    root_entity = entities_of(tmp_path / "stated")["./"]
    assert root_entity["license"]["@id"] == "https://spdx.org/licenses/CC-BY-4.0"
    assert root_entity["author"]["@id"] == STATED.author.orcid
    assert root_entity["publisher"]["@id"] == "https://example.org/"


def test_the_validator_finds_no_fault_required_or_recommended(root, tmp_path, steps):
    crate_in(tmp_path / "crate", root, workflow=WORKFLOW_WITH_STEPS, steps=steps, stated=STATED)
    assert faults_of_crate(tmp_path / "crate") == []
    (tmp_path / "crate" / VERDICT).unlink()
    assert {fault["severity"] for fault in faults_of_crate(tmp_path / "crate")} == {"required"}


PUBLISHED = ExportSettings(**STATED.model_dump(exclude={"code"}), code="https://example.org/code/{commit}/")
AT_A_COMMIT = {"name": "gfscore", "version": "0.1.0", "commit": "c" * 40, "changed": False}


def test_code_on_the_web_leaves_the_validator_nothing_to_find(root, tmp_path, steps, monkeypatch):
    monkeypatch.setattr(crate, "software", lambda: AT_A_COMMIT)
    crate_in(tmp_path / "crate", root, workflow=WORKFLOW_WITH_STEPS, steps=steps, stated=PUBLISHED)
    address = f"https://example.org/code/{'c' * 40}/"
    assert faults_of_crate(tmp_path / "crate", address, root) == []
    entities = entities_of(tmp_path / "crate")
    assert ids(entities["./"]["mainEntity"]) == {f"{address}Snakefile"}
    assert ids(entities["#execution-of-judge_audit/toy"]["instrument"]) == {f"{address}{JUDGE_STEP}"}
    assert entities["#step-judge_audit"]["description"] == "Judge an audit."
    # The crate holds the code nevertheless.
    for path in ("Snakefile", DATA_STEP, JUDGE_STEP):
        assert ids(entities[path]["url"]) == {address + path}
        assert sha256_of_file(tmp_path / "crate" / path) == entities[path]["sha256"]
    # Another file at the address is noticed.
    (root / JUDGE_STEP).write_text("")
    assert [fault["about"] for fault in faults_of_crate(tmp_path / "crate", address, root)] != []


@pytest.mark.parametrize("differs", [{"changed": True}, {"changed": None}, {"commit": None, "changed": None}])
def test_code_that_is_of_no_commit_is_not_on_the_web(root, tmp_path, steps, monkeypatch, differs):
    monkeypatch.setattr(crate, "software", lambda: AT_A_COMMIT | differs)
    with pytest.raises(InputError, match=r"^exports: code: https://example\.org/code/\{commit\}/ .* leave code out"):
        crate_in(tmp_path / "crate", root, workflow=WORKFLOW_WITH_STEPS, steps=steps, stated=PUBLISHED)


SNAKEFILE = """
rule all:
    input: "results/audits/b.txt"
rule one:
    input: "given.txt"
    output: "results/a.txt", "results/unread.txt"
    log: "results/logs/one/x.log"
    script: "workflow_scripts/one.py"
rule two:
    input: "results/a.txt"
    output: "results/audits/b.txt"
    log: "results/logs/two/y.log"
    script: "workflow_scripts/two.py"
"""


def test_steps_are_those_that_snakemake_recorded(tmp_path):
    script = "from pathlib import Path\nfor path in snakemake.output:\n    Path(path).write_text('made')\n"
    (tmp_path / "workflow_scripts").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"workflow_scripts/{name}.py").write_text(script)
    (tmp_path / "given.txt").write_text("given")
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    scripts = ["workflow_scripts/one.py", "workflow_scripts/two.py"]
    one, two = recorded_steps(["results/audits/b.txt"], root=tmp_path, workflow=scripts)
    assert (one.script, one.name, one.inputs, one.outputs) == (
        "workflow_scripts/one.py", "one/x", ["given.txt"], ["results/a.txt"],
    )  # fmt: skip
    assert (two.name, two.inputs, two.outputs) == ("two/y", ["results/a.txt"], ["results/audits/b.txt"])
    assert one.started <= one.ended <= two.ended
    # As of scripts that Snakemake fetches from elsewhere.
    for record in (tmp_path / ".snakemake/metadata").iterdir():
        record.write_text(json.dumps(json.loads(record.read_text()) | {"code": ""}))
    assert recorded_steps(["results/audits/b.txt"], root=tmp_path, workflow=scripts) == [one, two]
    assert recorded_steps(["results/audits/b.txt"], root=tmp_path, workflow=[]) == []
    # Replaced by somebody else: what made it is unknown.
    (tmp_path / "results/a.txt").write_text("other")
    assert recorded_steps(["results/audits/b.txt"], root=tmp_path, workflow=scripts) == [two]
    (tmp_path / "results/audits/b.txt").write_text("other")
    assert recorded_steps(["results/audits/b.txt"], root=tmp_path, workflow=scripts) == []


def test_a_crate_is_of_the_time_of_the_verdict_not_of_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    audit = synthetic_audit(models=2, per_class=10, measures=("clean",), calibrated=False)
    folder = audit.write(tmp_path / "audit")
    os.utime(folder.verdict_file, (0, 0))
    runs = []
    monkeypatch.setattr(export_audit, "write_crate", lambda target, run, settings: runs.append(run))
    monkeypatch.setattr(export_audit, "require_unchanged_audit", lambda path: None)
    targets = {name: str(tmp_path / name) for name in ("latex", "cards", "croissant", "crate")}
    nothing = dict.fromkeys(("workflow", "datasets", "samples", "inputs", "outputs"), ())
    given = {"title": "A toy", "measures": audit.named, "fp_lambda": LAM, "config": {"exports": {}}}
    export_audit.export_audit(folder, targets, **given, **nothing, workflow_folder=Path())
    assert datetime.fromtimestamp(runs[0].finished, UTC).isoformat() == folder.verdict().time


# ---- what exports and reports are made of ----


def test_the_workflow_is_whole_and_holds_no_leftovers():
    files = workflow_files(ROOT)
    assert files[0] == "Snakefile"
    assert {"config.yaml", "rules/common.smk", "workflow_scripts/export_audit.py", "requirements.lock"} <= set(files)
    included = re.findall(r'include: "(.*)"', (ROOT / "Snakefile").read_text())
    assert set(included) <= set(files)
    assert not any("__pycache__" in name or name.startswith("/") for name in files)


def test_manifests_name_the_data_and_every_classifier():
    config = shipped_configuration()
    found = deposited_inputs(Run(config).audits["digits"])
    assert found[0] == "results/datasets/digits.json"
    assert "results/trained/digits/none/PGD.json" in found
    assert len(found) == len(set(found))


def test_classifiers_that_come_as_logits_have_no_manifest():
    config = shipped_configuration()
    config["models"]["digits"]["none"]["PGD"] = {"source": "logits", "path": "given.npy"}
    found = deposited_inputs(Run(config).audits["digits"])
    assert "results/trained/digits/none/ERM.json" in found
    assert not [path for path in found if path.endswith("/PGD.json")]


def test_names_of_figures_are_taken_apart_at_the_longest_measure():
    assert run_output.chart_and_measure("cfps_a_b", ["b", "a_b"]) == ("cfps", "a_b")
    assert run_output.measure_of_figure("calibration_curves", ["clean"]) == run_output.SEVERAL
    assert run_output.labels_of("cfps_clean", ["clean"])["figure"] == "Share of the errors by class (CFPS)"
