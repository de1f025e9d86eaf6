"""An audit with a remedy: what runs, what its values are of, and what runs again after a change."""

import json
from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
import yaml

from gfscore.core.files import write_json
from gfscore.networks.offset_files import OffsetFile
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table
from gfscore.tables.table import DATASET

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(90)]

FILE = "remedy.yaml"
WITH = ("--configfile", FILE)
TRAINING = {"method": "PGD", "architecture": "small_convnet", "arguments": {"width": 8, "pool": 4}, "epochs": 4}
ATTACK = {"kind": "adversarial", "eps": 0.05, "attacks": [{"name": "pgd", "steps": 3}]}
CONFIGURATION = {
    "audits": {
        "digits": {
            "dataset": "digits",
            "measures": ["clean", "attack"],
            "remedy": {"models": ["digits/none/A"], "rounds": 3, "strengths": [0.5, 1]},
        }
    },
    "datasets": {"digits": {"source": "digits"}, "digits-train": {"source": "digits", "split": "train"}},
    "models": {
        "digits": {
            "defaults": {"train_on": "digits-train", "training": TRAINING, "attack": {"eps": 0.05, "steps": 2}},
            "none": {"A": {}, "B": {"training": {"seed": 2}}},
        }
    },
    "measures": {"attack": ATTACK},
}
TABLES = (*WITH, "--omit-from", "plot_figures", "--", "audit")


def write(repository, configuration):
    (repository.path / FILE).write_text(yaml.safe_dump(configuration, sort_keys=False))


@pytest.fixture(scope="module")
def remedied(fresh_copy):
    repository = fresh_copy()
    write(repository, CONFIGURATION)
    rules = repository.ran(*TABLES)
    assert (rules["choose_offsets"], rules["extract_logits"], rules["measure_model"]) == (1, 4, 5)
    return repository


def only(path, pattern):
    (file,) = path.glob(pattern)
    return file


def test_halves_offsets_and_values_belong_together(remedied):
    results = remedied.path / "results"
    halves = [read_table(results / f"datasets/digits-{half}.parquet", DATASET) for half in ("choosing", "judging")]
    whole = read_table(results / "datasets/digits.parquet", DATASET)
    assert sorted([*halves[0]["sample_id"], *halves[1]["sample_id"]]) == sorted(whole["sample_id"])

    chosen = OffsetFile.read(only(results, "offsets/digits-choosing/none/A/worst_class-*.json"))
    assert chosen.model == {"dataset": "digits-choosing", "threat": "none", "model": "A"}
    assert len(chosen.trail) <= 3
    checkpoint = json.loads((results / "trained/digits/none/A.json").read_text())["sha256"]
    assert chosen.made_from["checkpoint_sha256"] == checkpoint

    _, _, original = read_logits(results / "logits/digits-judging/none/A.parquet")
    adjusted_file = only(results, "logits/digits-judging/none/A+*-x1.parquet")
    _, _, adjusted = read_logits(adjusted_file)
    assert adjusted == pytest.approx(original + np.array(chosen.offsets, dtype=np.float32), abs=1e-5)
    identity = read_identity(adjusted_file)
    assert identity["checkpoint_sha256"] == checkpoint and identity["offsets"] == chosen.words(1)
    assert "offsets" not in read_identity(results / "logits/digits/none/A.parquet")


def test_a_finished_audit_asks_for_nothing(remedied):
    assert remedied.planned(*TABLES) == (Counter(), set())
    # Nor does its resolved configuration, from which it can be run again.
    resolved = remedied.read("results/audits/digits/config.yaml")
    (remedied.path / "again.yaml").write_text(resolved)
    rules, _ = remedied.planned("--configfile", "again.yaml", "--omit-from", "plot_figures", "--", "audit")
    assert set(rules) <= {"write_configuration", "judge_audit"}


def test_a_strength_more_costs_its_measurement_alone(remedied, tmp_path):
    copy = remedied.copy_to(tmp_path / "copy")
    changed = deepcopy(CONFIGURATION)
    changed["audits"]["digits"]["remedy"]["strengths"] = [0.25, 0.5, 1]
    write(copy, changed)
    rules, files = copy.planned(*TABLES)
    assert (rules["choose_offsets"], rules["extract_logits"], rules["measure_model"]) == (0, 0, 1)
    assert any(file.endswith("-x0.25.parquet") for file in files)


def test_a_second_audit_measures_no_model_again(remedied, tmp_path):
    copy = remedied.copy_to(tmp_path / "copy")
    changed = deepcopy(CONFIGURATION)
    changed["audits"]["other"] = {"dataset": "digits", "measures": ["clean", "attack"]}
    write(copy, changed)
    rules, _ = copy.planned(*TABLES)
    assert rules["train_model"] == rules["choose_offsets"] == rules["extract_logits"] == rules["measure_model"] == 0
    assert rules["tabulate_audit"] == 1


def test_one_model_again_takes_its_offsets_along_and_no_other_model(remedied, tmp_path):
    copy = remedied.copy_to(tmp_path / "copy")
    _, files = copy.planned("--forcerun", "results/trained/digits/none/A.safetensors", *TABLES)
    models = [file for file in files if "/none/" in file]
    assert any("/offsets/" in file for file in models)
    assert sum("digits-judging" in file for file in models) == 5
    assert not any("/none/B" in file for file in models)
    rules, files = copy.planned("--forcerun", "results/trained/digits/none/B.safetensors", *TABLES)
    assert rules["choose_offsets"] == 0 and not any("/none/A" in file for file in files)


def test_offsets_of_another_network_are_refused(remedied, tmp_path):
    copy = remedied.copy_to(tmp_path / "copy")
    folder = copy.path / "results/offsets/digits-choosing/none/A"
    file = next(folder.glob("*.json"))
    content = json.loads(file.read_text())
    content["made_from"]["checkpoint_sha256"] = "0" * 64
    content.pop("checksum")

    write_json(file, content)
    done = copy.snakemake(*TABLES, check=False)
    assert done.returncode == 1
    assert "chosen for a network of digest 000000000000" in done.text
