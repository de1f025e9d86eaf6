"""Mistakes that people make: each a clear error with a remedy, exit code not 0, nothing half-written."""

import json

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_identity, read_logits, write_logits
from helpers.configurations import gate_rule
from workflow.conftest import SMALL

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(60)]

LOGITS = "results/logits/digits/none/ERM.parquet"
SELECTION = "results/audits/digits/models.json"


def refusal(repository, *arguments):
    """Output of a run of Snakemake that must fail."""
    done = repository.snakemake(*arguments, check=False)
    assert done.returncode != 0
    return done.text


def test_a_mistake_in_a_configuration_is_named_before_any_job_starts(audited_once, tmp_path):
    (tmp_path / "mine.yaml").write_text("run: [digits]\naudits: {digits: {grups: null}}\n")
    text = refusal(audited_once, "--dry-run", "--configfile", "config.yaml", str(tmp_path / "mine.yaml"))
    assert "mine.yaml, line 2" in text and "'groups'" in text
    assert "Traceback" not in text and "site-packages" not in text


def test_a_config_that_is_no_yaml_is_named_with_its_line_and_no_traceback(fresh_copy):
    repository = fresh_copy()
    (repository.path / "config.yaml").write_bytes(b"run: [digits]\n# caf\xe9\n")
    text = refusal(repository, "--dry-run")
    assert "config.yaml, line 2" in text and "UTF-8" in text
    assert "UnicodeDecodeError" not in text and "site-packages" not in text


def test_mistakes_on_the_command_line_are_named_as_such(audited_once):
    text = refusal(audited_once, "--dry-run", "--config", "run=digts")
    assert "--config: run" in text and "'digits'" in text


def change_logits(repository, change):
    """Rewrite the logits of ERM after `change(labels, logits)` worked on them in place."""
    path = repository.path / LOGITS
    identity = read_identity(path)
    sample_id, labels, logits = (np.array(part) for part in read_logits(path))
    change(labels, logits)
    write_logits(path, sample_id=sample_id, label=labels, logits=logits, identity=identity)


def test_bad_logits_are_refused_before_they_are_scored(audited):
    def set_nan(_, logits):
        logits[7, 3] = np.nan

    change_logits(audited, set_nan)
    text = refusal(audited, SELECTION)
    assert "row 7, class 3 is nan" in text
    assert LOGITS in text
    assert "Traceback" not in text
    assert not (audited.path / SELECTION).exists() and not (audited.path / "results/scores/digits.parquet").exists()
    assert "row 7, class 3 is nan" in audited.read("results/logs/score_models/digits.log")


def test_a_checkpoint_that_was_tampered_with_is_not_used(audited):
    path = audited.path / "results/trained/digits/none/ERM.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    text = refusal(audited, LOGITS)
    assert "ERM.safetensors" in text
    assert "sha256" in text.lower()
    assert "Traceback" not in text


def test_the_gate_stops_on_failure_and_on_doubt_only_where_a_rule_says_so(small):
    def asked(**changes):
        rule = gate_rule("great-softmax") | changes
        (small.path / "gate.yaml").write_text(yaml.safe_dump({"audits": {"one": {"gate": [rule]}}}))
        return (*SMALL, "gate.yaml", "--", "gate")

    closed = "the gate stays closed\nresults/audits/one/verdict.json: "
    assert f"{closed}FAIL" in refusal(small, *asked(at_least=1.2))
    # The RDI of the model that was trained is about .24, which 90 samples per class cannot place on either side of .2.
    doubtful = {"statistic": "rdi", "at_most": 0.2}
    assert f"{closed}INCONCLUSIVE" in refusal(small, *asked(**doubtful))
    waved = small.snakemake(*asked(**doubtful, on_inconclusive="pass")).text
    assert "\none: INCONCLUSIVE" in waved and "\nThe gate is open." in waved
    assert json.loads(small.read("results/audits/one/verdict.json"))["verdict"] == "INCONCLUSIVE"
