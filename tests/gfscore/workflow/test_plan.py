"""The plan of a run: models, datasets, judged measures, names that wildcards match, and files of steps and targets."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.core.identity import ModelName
from gfscore.workflow.audit_steps import job_records, table_settings, training_baselines
from gfscore.workflow.entries import PlannedDataset
from gfscore.workflow.plan import Run
from gfscore.workflow.targets import audit_results, model_results, verdict_results
from helpers.configurations import completed, refusal, shipped_configuration

ROOT = Path(__file__).resolve().parents[3]
CLASSES = ["u", "v"]


@pytest.fixture
def small():
    """What a user writes of two trained models, a probe and one of timm, on a dataset of another name than its zoo."""
    trained = {"train_on": "train", "training": {"method": "ERM"}}
    backbone = {"path": "b.pt", "architecture": "resnet18"}
    return {
        "datasets": {
            "copy": {
                "source": "npz",
                "path": "p",
                "classes": CLASSES,
                "models_of": "zoo",
                "published_accuracy": "full",
            },
            "train": {"source": "digits", "split": "train"},
        },
        "models": {
            "zoo": {
                "none": {
                    "X": {**trained, "published_clean_accuracy": 0.5},
                    "P.1": {**backbone, "source": "probe", "train_on": "train"},
                    "T": {**backbone, "source": "timm"},
                },
                "L2": {"Y": {**trained, "published_robust_accuracy": 0.25}},
            }
        },
        "measures": {"a+": {"kind": "adversarial"}, "b": {"kind": "minimal"}},
        "audits": {"a": {"dataset": "copy", "models": ["zoo/none/X", "zoo/L2/Y"], "measures": ["clean"]}},
    }


def planned(written):
    return Run(completed(written))


def test_models_carry_the_dataset_evaluated_and_are_defined_in_its_zoo(small):
    run = planned(small)
    x, y = run.audits["a"].models
    assert (x.name, y.name) == (ModelName("copy", "none", "X"), ModelName("copy", "L2", "Y"))
    assert x.zoo_path == "zoo/none/X" and x.manifest == "results/trained/zoo/none/X.json"
    assert x.published == {"published_clean_accuracy": 0.5, "published_robust_accuracy": None}
    assert run.model("copy", "L2", "Y") is y
    assert run.zoo_model("zoo", "L2", "Y").entry == y.entry


def test_datasets_of_an_audit_include_those_its_models_are_trained_on(small):
    assert [dataset.name for dataset in planned(small).audits["a"].datasets] == ["copy", "train"]


def test_only_what_decides_the_images_counts_as_their_settings(small):
    before = planned(small).datasets["copy"].image_settings()
    assert before["source"] == "npz" and not {"path", "classes", "models_of", "digest", "attributes"} & before.keys()
    small["datasets"]["copy"]["digest"] = "0" * 64
    assert planned(small).datasets["copy"].image_settings() == before


def test_jobs_on_a_half_read_which_samples_it_holds(small):
    small["audits"]["a"] |= {"measures": ["clean", "a+"], "remedy": {"models": ["zoo/none/X"]}}
    run = planned(small)
    files = run.classifier_files(run.model("copy-judging", "none", "X"))
    assert files["samples"] == "results/datasets/copy-judging.parquet"
    assert "samples" not in run.classifier_files(run.model("copy", "none", "X"))


def test_a_gate_reads_the_measures_of_its_rules_and_what_refutes_them(config):
    def judged(*rules):
        thresholds = {"rdi": "at_most", "falsification_rate": "at_most"}
        config["audits"]["digits"]["gate"] = [
            {"measure": name, "statistic": statistic, thresholds.get(statistic, "at_least"): 0.1}
            for name, statistic in rules
        ]
        audit = Run(config).audits["digits"]
        return list(audit.judged_measures)

    assert judged(("great-sigmoid", "wcr"), ("clean", "rdi")) == ["clean", "great-sigmoid"]
    assert judged(("great-softmax", "falsification_rate")) == ["great-softmax", "minimal-l2"]
    # What was attacked must be the network of the logits, also where the gate looks at nothing computed from them.
    assert judged(("minimal-l2", "wcr")) == ["clean", "minimal-l2"]


@pytest.fixture
def band(small):
    """The same audit with a proof and an attack in one ball, whose gate judges what is made of both."""
    small["audits"]["a"] |= {
        "measures": ["clean", "proven-linf-2of255", "adversarial-linf-2of255", "adversarial-linf-8of255"],
        "gate": [{"measure": "robust-linf-2of255", "at_least": 0.5}],
    }
    return small


def test_an_audit_of_a_proof_and_an_attack_has_what_is_made_of_both(band):
    audit = planned(band).audits["a"]
    assert list(audit.measures) == [*band["audits"]["a"]["measures"], "robust-linf-2of255"]
    judged = list(audit.judged_measures)
    assert judged == ["clean", "proven-linf-2of255", "adversarial-linf-2of255", "robust-linf-2of255"]
    files = audit.sample_files(audit.measures)
    assert len(files) == 6 and not [path for path in files if "robust" in path]
    assert not [record for record in job_records(audit) if record.measure == "robust-linf-2of255"]
    assert "robust" not in audit.run.network_measures()


def test_a_name_of_the_users_replaces_the_derived_one(band):
    band["measures"]["band"] = {"kind": "robust", "eps": "2/255"}
    band["audits"]["a"]["measures"].append("band")
    band["audits"]["a"]["gate"][0]["measure"] = "band"
    assert list(planned(band).audits["a"].measures) == band["audits"]["a"]["measures"]


def test_a_derived_measure_that_cannot_be_made_is_refused_where_the_audit_names_it(band):
    band["audits"]["a"]["measures"].append("robust-linf-8of255")
    assert re.search(r"audits: a: measures: 4: .*needs a measure of kind proven in l_inf 8/255", refusal(band))


@pytest.mark.parametrize("audit", ["cifar10-l2", "imagenet-linf"])
def test_the_audits_of_the_paper_are_calibrated_by_distances_of_its_attack_too(audit, config):
    paper = Run(config).audits[audit]
    measure = table_settings(paper).calibration.distances
    assert [attack["name"] for attack in config["measures"][measure]["attacks"]] == ["carlini-wagner"]
    assert measure in paper.measures


def test_a_probe_is_fetched_and_fitted(small):
    small["audits"]["a"] = {"dataset": "copy", "models": ["zoo/none/P.1", "zoo/none/T"], "measures": ["clean"]}
    run = planned(small)
    pattern = re.compile(run.models_from("probe"))
    assert [name for name in ("copy/none/P.1", "copy/none/Px1", "copy/none/T") if pattern.fullmatch(name)] == [
        "copy/none/P.1"
    ]
    assert not re.fullmatch(run.models_from("onnx"), "")
    probe, network = run.audits["a"].models
    assert [probe.fetched_manifest, network.manifest] == run.audits["a"].fetched_manifests()
    assert probe.manifest == "results/trained/zoo/none/P.1.json"
    assert probe.weights == "results/trained/zoo/none/P.1.safetensors" and network.weights == []


def test_names_match_exactly_the_measures_that_show_images(small):
    pattern = re.compile(planned(small).network_measures())
    assert {name for name in ("clean", "a+", "b", "aa", "a", "") if pattern.fullmatch(name)} == {"a+", "b"}
    small["measures"] = {}
    assert not re.fullmatch(planned(small).network_measures(), "")


def test_the_samples_that_fix_thresholds_of_attributes_belong_to_an_audit_that_compares_groups(config):
    run = Run(config)
    reference = run.datasets["digits"].reference_dataset
    assert run.datasets["digits"].attributes_reference() == f"results/datasets/{reference}.json"
    others = {"datasets": config["datasets"] | {"other": config["datasets"][reference]}}
    attributes = config["datasets"]["digits"]["attributes"] | {"fixed_on": "other"}
    others["datasets"]["digits"] = config["datasets"]["digits"] | {"attributes": attributes}
    for groups, expected in ((config["audits"]["digits"]["groups"], True), (None, False)):
        audits = config["audits"] | {"digits": config["audits"]["digits"] | {"groups": groups}}
        audit = Run(config | others | {"audits": audits}).audits["digits"]
        assert ("other" in [dataset.name for dataset in audit.datasets]) == expected
        assert (audit.attributes_table() != []) == expected


def test_attributes_beside_the_images_of_a_folder_are_known_by_their_files(tmp_path):
    def state(sex):
        pq.write_table(pa.table({"image": [b""], "label": [0], "sex": [sex]}), tmp_path / "part-0.parquet")
        return PlannedDataset("faces", entry).attributes_state()

    entry = {"source": "parquet", "path": str(tmp_path), "attributes": {"source": "columns", "columns": ["sex"]}}
    assert state("female") != state("male") == state("male")


@pytest.mark.parametrize(
    ("samples", "models", "named"),
    [
        (None, ["zoo/none/X", "zoo/L2/Y"], ["copy"]),
        ("full", ["zoo/none/X"], []),
        # A robust accuracy is never checked.
        (None, ["zoo/L2/Y"], []),
    ],
)
def test_a_dataset_is_named_once_where_published_accuracies_are_compared_with_nothing(small, samples, models, named):
    small["datasets"]["copy"]["published_accuracy"] = samples
    audit = {"dataset": "copy", "models": models, "measures": ["clean"]}
    small["audits"] = {"a": audit, "b": dict(audit)}
    assert planned(small).uncompared_datasets() == named


# ---- files of steps and targets ----


def test_generated_images_are_an_input_before_they_are_there():
    run = Run(shipped_configuration())
    drawn = [dataset for dataset in run.datasets.values() if dataset.source.drawn]
    assert drawn
    for dataset in drawn:
        assert dataset.stored_images() == f"results/generated/{dataset.name}.npz"
        assert dataset.generator_manifest == f"results/generated/{dataset.name}.json"


def test_a_verdict_stands_on_all_tables_and_measures_since_it_says_what_attacks_say(config):
    audit = Run(config).audits["digits"]
    files = set(verdict_results(audit))
    assert {"results/audits/digits/verdict.json", "results/audits/digits/class_scores.parquet"} < files
    assert set(audit.sample_files(audit.measures)) < files


def test_measures_from_logits_have_samples_tables_of_models_without_logits_alone(config):
    config["models"]["digits"]["none"]["PGD"] = {"source": "samples", "path": "given.tsv"}
    audit = Run(completed_samples(config)).audits["digits"]
    files = audit.sample_files(audit.measures)
    from_logits = [path for path in files if path.startswith("results/samples/clean/")]
    assert from_logits == ["results/samples/clean/digits/none/PGD.parquet"]


def completed_samples(config):
    """The configuration with the complete entry of its model PGD; the rest of it is complete."""
    entry = {"published_clean_accuracy": None, "published_robust_accuracy": None}
    config["models"]["digits"]["none"]["PGD"] |= entry
    return config


def test_every_table_is_a_result_of_every_audit(config):
    config["audits"]["digits"]["measures"] = ["clean"]
    results = audit_results(Run(config).audits["digits"])
    for table in TABLES_OF_AUDIT:
        assert {f"results/audits/digits/{table}.parquet", f"results/audits/digits/{table}.csv"} <= set(results)


def test_every_mapper_is_held_against_the_models_of_every_task(config):
    audit = Run(config).audits["fairface-tasks"]
    files = audit.projection_files()
    assert len(files) == 2 * 3 * 2 and len(set(files)) == 12
    assert files[2] == "results/projections/faces-vae/faces-age/none/convolutions.parquet"
    assert set(files) < set(model_results(audit))
    of_tasks = audit.task_files()
    assert of_tasks["task_attributes"] == [
        "results/attributes/faces-age.parquet",
        "results/attributes/faces-race.parquet",
    ]
    assert of_tasks["task_logits"][-1] == "results/logits/faces-race/none/transformer.parquet"

    config["audits"]["fairface-tasks"]["groups"] = None
    without = Run(config).audits["fairface-tasks"].task_files()
    assert not without["task_attributes"] and without["task_logits"] == of_tasks["task_logits"]
    assert len(without["task_datasets"]) == 2
    assert not any(Run(config).audits["digits"].task_files().values())


def test_files_of_a_projection_are_results_and_an_audit_without_one_has_none(config):
    files = model_results(Run(config).audits["digits"])
    assert "results/mappers/digits-vae.npz" in files
    assert "results/projections/digits-vae/digits/none/ERM.parquet" in files
    config["audits"]["digits"]["projection"] = None
    audit = Run(config).audits["digits"]
    assert not [path for path in model_results(audit) if "mapper" in path or "projection" in path]
    assert audit.mappers == []


def test_a_mapper_depends_on_its_own_settings_and_data_only(config):
    run = Run(config)
    mapper = run.mappers["digits-vae"]
    assert "search" not in mapper.training_settings() and mapper.training_settings()["beta"] == 10
    assert mapper.inputs() == {
        "train": "results/datasets/digits-train.json",
        "test": "results/datasets/digits.json",
        "train_attributes": [],
        "test_attributes": [],
    }
    conditional = run.mappers["digits-conditional"].inputs()
    assert conditional["train_attributes"] == "results/attributes/digits-train.parquet"


def test_data_of_the_mapper_are_data_of_the_audit(config):
    config["datasets"]["elsewhere"] = config["datasets"]["digits-train"]
    config["mappers"]["digits-vae"]["train_on"] = "elsewhere"
    assert "elsewhere" in [dataset.name for dataset in Run(config).audits["digits"].datasets]


def test_what_a_step_has_finished_waits_in_a_folder_that_begins_with_its_name():
    """A measure and a mapper may have one name, and each step removes its folder when it ends."""
    steps = []
    for path in (ROOT / "rules").glob("*.smk"):
        for block in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            steps += [(block.split(":")[0], name) for name in re.findall(r"results/progress/([^/]+)/", block)]
    assert len(steps) == 5 and all(step == name for step, name in steps), steps


def test_a_job_that_several_models_share_is_listed_once_with_its_cost(small):
    entries = {"X": small["models"]["zoo"]["none"]["X"] | {"evaluate_on": "copy"}}
    adjusted = {"source": "adjusted", "of": "none/X", "choose_on": "choosing", "measure": "a+"}
    for strength in (0.5, 1):
        entries[f"X+{strength}"] = adjusted | {"strength": strength}
    small["models"]["zoo"] = {"none": entries}
    small["datasets"]["choosing"] = small["datasets"]["copy"] | {"path": "q"}
    small["audits"]["a"]["models"] = [f"zoo/none/{name}" for name in entries]
    steps = [record.step for record in job_records(planned(small).audits["a"]) if record.measure is None]
    assert sorted(steps) == ["choose_offsets", *["extract_logits"] * 3, "train_model"]


def test_a_training_is_judged_against_the_method_that_it_changes(small):
    trainings = {
        "PGD": {"method": "PGD"},
        "TRADES": {"method": "TRADES"},
        "TRADES_2": {"method": "TRADES", "seed": 2},
        "WORST_CLASS": {"method": "WORST_CLASS"},
        "FRL": {"method": "FRL", "coefficients": {"held_out": 0.2, "beta": 6}},
        # Its beta is 1, that of TRADES 6.
        "FRL_of_its_own_beta": {"method": "FRL"},
        "DAFA_2": {"method": "DAFA", "seed": 2},
        "CFA_longer": {"method": "CFA", "epochs": 50},
    }
    small["models"]["zoo"]["Linf"] = {
        name: {"train_on": "train", "training": training} for name, training in trainings.items()
    }
    small["audits"]["a"]["models"] = ["zoo/none/X", "zoo/Linf/*"]
    expected = {"Linf/WORST_CLASS": "Linf/PGD", "Linf/FRL": "Linf/TRADES", "Linf/DAFA_2": "Linf/TRADES_2"}
    assert training_baselines(planned(small).audits["a"]) == expected
    weaker = {"train_on": "train", "training": {"method": "TRADES", "coefficients": {"beta": 1}}}
    small["models"]["zoo"]["Linf"]["TRADES_1"] = weaker
    expected["Linf/FRL_of_its_own_beta"] = "Linf/TRADES_1"
    assert training_baselines(planned(small).audits["a"]) == expected
    # Which of two is meant cannot be known.
    small["models"]["zoo"]["Linf"]["TRADES_again"] = {"train_on": "train", "training": {"method": "TRADES"}}
    assert "Linf/FRL" not in training_baselines(planned(small).audits["a"])
