"""What runs again, and what does not, after each kind of change."""

import os
from collections import Counter

import pytest

from gfscore.workflow.audit_steps import step_of
from gfscore.workflow.plan import Run

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(30)]

MODELS = ["ERM", "ERM_DA", "PGD", "TRADES", "PRL", "IBP", "WORST_CLASS"]


def whole_chain(repository):
    """All jobs of one model that follow its checkpoint: logits, one for each measure of images, projection."""
    config = repository.config()
    measures = Run(config).audits["digits"].measures.values()
    # The evidence interval is made of other measures, by no job.
    steps = Counter(step_of(measure) for measure in measures if measure.kind.needs != "measures")
    return Counter(extract_logits=1, measure_model=steps["measure_model"], project_attributes=1)


def names_a_model(files, models):
    """Models of a list that any of the files belongs to."""
    return {model for model in models if any(f"/{model}." in name for name in files)}


def test_touching_every_source_does_nothing(audited):
    for folder in ("rules", "workflow_scripts", "envs", "profiles", "tests"):
        for path in (audited.path / folder).rglob("*"):
            if path.is_file():
                os.utime(path)
    for name in ("Snakefile", "config.yaml", "requirements.lock"):
        os.utime(audited.path / name)
    assert audited.planned() == (Counter(), set())


def test_a_comment_or_a_title_does_not_rerun_the_science(audited):
    audited.edit("config.yaml", "title: Seven classifiers of handwritten digits\n", "title: Other words # a comment\n")
    rules, _ = audited.planned()
    # The verdict carries the digest of the configuration it was judged by.
    assert set(rules) == {"write_configuration", "judge_audit", "build_report", "build_index"}


def test_what_exports_state_reruns_the_exports_alone(audited):
    audited.snakemake("exports")
    with (audited.path / "config.yaml").open("a") as file:
        file.write("\nexports: {author: {name: Ada Lovelace}, licence: CC-BY-4.0}\n")
    assert audited.planned() == (Counter(), set())
    rules, _ = audited.planned("exports")
    assert set(rules) == {"export_audit"}


def test_editing_a_metric_reruns_what_looks_through_the_metrics_and_what_is_made_of_it(audited):
    next(audited.path.glob("workflow_scripts/gfscore/**/metrics/nrgc.py")).open("a").write("\n# changed\n")
    rules, _ = audited.planned()
    looking = {"score_models", "tabulate_audit", "judge_audit"}
    assert set(rules) == looking | {"plot_figures", "build_report", "build_index"}


def test_editing_a_source_of_attributes_reads_them_again_and_shows_no_image_to_a_model(audited):
    (audited.path / "workflow_scripts/gfscore/images/attributes/digits.py").open("a").write("\n# changed\n")
    rules, _ = audited.planned()
    assert rules["read_attributes"] and rules["tabulate_audit"]
    assert not rules["measure_model"] + rules["extract_logits"] + rules["train_model"]


def test_editing_an_expensive_step_reruns_nothing_until_its_version_is_raised(audited):
    for name in (
        "gfscore/training/loop.py",
        "gfscore/networks/architectures.py",
        "train_model.py",
        "extract_logits.py",
    ):
        (audited.path / "workflow_scripts" / name).open("a").write("\n# changed\n")
    assert audited.planned() == (Counter(), set())
    audited.edit("workflow_scripts/versions.yaml", "extract_logits: 1", "extract_logits: 2")
    rules, _ = audited.planned()
    # The model with a remedy has logits of the judging half too, as it is and with its offsets.
    assert rules["extract_logits"] == len(MODELS) + 2
    assert rules["train_model"] == 0


def test_an_arithmetic_of_the_search_that_is_stated_reruns_the_attacks_alone(audited):
    with (audited.path / "config.yaml").open("a") as file:
        file.write("\ninference: {search: bfloat16}\n")
    rules, files = audited.planned()
    attacked = {name.split("/")[2].split("-")[0] for name in files if name.startswith("results/samples/")}
    # A proof starts with an attack of its own.
    assert attacked == {"adversarial", "minimal", "proven", "targeted"}
    assert rules["train_model"] == 0
    # Offsets are chosen by attacks, and the logits with these offsets follow.
    assert rules["choose_offsets"] == rules["extract_logits"] == 1


def test_another_number_of_images_at_a_time_shows_no_image_to_a_model(audited):
    with (audited.path / "config.yaml").open("a") as file:
        file.write("\ninference: {batch_size: 17}\n")
    rules, _ = audited.planned()
    assert set(rules) == {"write_configuration", "judge_audit", "build_report", "build_index"}


def test_changing_one_models_entry_reruns_its_chain_and_the_aggregates_only(audited):
    audited.edit("config.yaml", "method: TRADES, coefficients: {beta: 6", "method: TRADES, coefficients: {beta: 5")
    rules, files = audited.planned()
    assert audited.jobs_of_models(rules) == whole_chain(audited) + Counter(train_model=1)
    assert names_a_model(files, MODELS) == {"TRADES"}


def test_another_checkpoint_reruns_its_chain_and_the_aggregates_only(audited):
    trained = audited.path / "results/trained/digits/none"
    for extension in ("safetensors", "json"):
        (trained / f"PRL.{extension}").write_bytes((trained / f"ERM.{extension}").read_bytes())
    rules, files = audited.planned()
    assert audited.jobs_of_models(rules) == whole_chain(audited)
    assert names_a_model(files, MODELS) == {"PRL"}


def test_adding_a_model_leaves_the_others_alone(audited):
    audited.edit("config.yaml", "      ERM_DA: {", "      NEW: {training: {method: ERM}}\n      ERM_DA: {")
    rules, files = audited.planned()
    assert audited.jobs_of_models(rules) == whole_chain(audited) + Counter(train_model=1)
    assert names_a_model(files, [*MODELS, "NEW"]) == {"NEW"}
