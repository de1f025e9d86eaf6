"""Mistakes that people make: each a clear error with a remedy, exit code not 0, nothing half-written."""

import json

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_identity, read_logits, write_logits
from made import gate_rule

pytestmark = pytest.mark.workflow

LOGITS = "results/logits/digits/none/ERM.parquet"
CHECK = "results/checks/digits/none/ERM.json"


def refusal(repository, *arguments):
    """Output of a run of Snakemake that must fail."""
    done = repository.snakemake(*arguments, check=False)
    assert done.returncode != 0
    return done.text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  fp_lambda: 0.5\n", "  fp_lamda: 0.5\n", "did you mean 'fp_lambda'"),
        ("      - digits/none/TRADES\n", "      - digits/none/TRADE\n", "did you mean 'digits/none/TRADES'"),
        (
            "    measures: [clean, great-softmax, great-sigmoid]\n",
            "    measures: [great-sofmax]\n",
            "did you mean 'great-softmax'",
        ),
        ("low: 0.01, high: 10.0", "low: 0, high: 10.0", "minimum of 0"),
        ("low: 0.01, high: 10.0", "low: 2, high: 10.0", "low < 1 < high"),
        (
            "          <<: *digits-training\n          method: FGSM\n",
            "          <<: *digits-training\n          method: FGSMM\n",
            "did you mean 'FGSM'",
        ),
        ("  confidence: 0.95\n  # order", "  confidence: 1.0\n  # order", "intervals: confidence"),
        ("run: [digits]\n", "run: [digit]\n", "did you mean 'digits'"),
        (
            "      ERM_DA:\n        <<: *digits-model\n",
            "      '../ERM_DA':\n        <<: *digits-model\n",
            "may hold only letters",
        ),
        ("    source: digits\n    split: test\n", "    source: digit\n    split: test\n", "did you mean 'digits'"),
        ("report:\n", "reports:\n", "did you mean 'report'"),
    ],
)
def test_a_mistake_in_config_is_named_before_any_job_starts(fresh_copy, old, new, expected):
    repository = fresh_copy()
    repository.edit("config.yaml", old, new)
    text = refusal(repository, "--dry-run")
    assert "config.yaml" in text
    assert expected in text
    assert "Traceback" not in text


def test_a_config_that_is_no_yaml_is_named_with_its_line_and_no_traceback(fresh_copy):
    repository = fresh_copy()
    (repository.path / "config.yaml").write_bytes(b"run: [digits]\n# caf\xe9\n")
    text = refusal(repository, "--dry-run")
    assert "config.yaml: line 2 is not UTF-8 text; save it as UTF-8" in text
    assert "UnicodeDecodeError" not in text and "site-packages" not in text


def test_run_as_text_is_explained(fresh_copy):
    assert "--config 'run=[digits]'" in refusal(fresh_copy(), "--dry-run", "--config", "run=digits")


def change_logits(repository, change):
    """Rewrite the logits of ERM after `change(labels, logits)` worked on them in place."""
    path = repository.path / LOGITS
    identity = read_identity(path)
    sample_id, labels, logits = (np.array(part) for part in read_logits(path))
    change(labels, logits)
    write_logits(path, sample_id=sample_id, label=labels, logits=logits, identity=identity)


def set_nan(labels, logits):
    logits[7, 3] = np.nan


def set_label(labels, logits):
    labels[5] = 11


def set_probabilities(labels, logits):
    logits[:] = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_nan, "row 7, class 3 is nan"),
        (set_label, "row 5 has label 11, outside 0..9"),
        (set_probabilities, "these are probabilities, not logits"),
    ],
)
def test_bad_logits_are_refused_by_the_gate(audited, change, expected):
    change_logits(audited, change)
    text = refusal(audited, CHECK)
    assert expected in text
    assert LOGITS in text
    assert "Traceback" not in text
    assert not (audited.path / CHECK).exists()
    assert expected in audited.read("results/logs/check_logits/digits/none/ERM.log")


@pytest.mark.parametrize(
    "name",
    [
        "results/trained/digits/none/PRL.safetensors",
        "results/checks/digits/none/PRL.json",
        "results/sweeps/great-softmax/digits/none/PRL.parquet",
        "results/audits/digits/model_summary.csv",
        "results/audits/digits/verdict.json",
    ],
)
def test_the_loss_of_any_file_is_noticed(audited, name):
    (audited.path / name).unlink()
    _, files = audited.planned()
    assert name in files


def test_a_class_without_samples_in_a_users_file_is_refused(audited):
    labels = np.repeat(np.arange(9), 3)
    np.savez(audited.path / "own.npz", x=np.zeros((27, 1, 8, 8), dtype=np.float32), y=labels)
    (audited.path / "own.yaml").write_text(
        "datasets:\n  own: {source: npz, path: own.npz, value_range: 1, channels: first, "
        "classes: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'], models_of: digits, label_error_rate: null, published_accuracy: null, subset: null, digest: null, attributes: null}\n"
    )
    text = refusal(audited, "--configfile", "own.yaml", "--", "results/datasets/own.json")
    assert "own.npz" in text
    assert "'9'" in text
    assert not (audited.path / "results/datasets/own.json").exists()


def test_a_checkpoint_that_was_tampered_with_is_not_used(audited):
    path = audited.path / "results/trained/digits/none/ERM.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    text = refusal(audited, LOGITS)
    assert "ERM.safetensors" in text
    assert "sha256" in text.lower()
    assert "Traceback" not in text


def test_the_gate_stops_on_failure_and_on_doubt_only_where_a_rule_says_so(audited):
    def asked(**changes):
        rule = gate_rule("great-softmax") | changes
        (audited.path / "gate.yaml").write_text(yaml.safe_dump({"audits": {"digits": {"gate": [rule]}}}))
        return "--configfile", "gate.yaml", "--", "gate"

    closed = "the gate stays closed\nresults/audits/digits/verdict.json: "
    assert f"{closed}FAIL" in refusal(audited, *asked(at_least=1.2))
    # TRADES has an RDI of about .69, which 90 samples per class cannot place on either side.
    doubtful = {"statistic": "rdi", "at_most": 0.75}
    assert f"{closed}INCONCLUSIVE" in refusal(audited, *asked(**doubtful))
    waved = audited.snakemake(*asked(**doubtful, on_inconclusive="pass")).text
    assert "\ndigits: INCONCLUSIVE" in waved and "\nThe gate is open." in waved
    assert json.loads(audited.read("results/audits/digits/verdict.json"))["verdict"] == "INCONCLUSIVE"
    audited.snakemake(*asked(at_least=0.01))
    assert json.loads(audited.read("results/audits/digits/verdict.json"))["verdict"] == "PASS"
