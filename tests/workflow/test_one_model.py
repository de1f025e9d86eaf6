"""One model computed again: each way of docs/re-running.md, with the jobs that run and the files that change."""

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from gfscore.core.digests import sha256_of_file
from gfscore.images.manifests import open_described
from gfscore.tables.parquet_tables import read_identity
from helpers.configurations import place_logits, place_network
from workflow.conftest import OVERLAY, SMALL, rules_in

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(110)]

TABLES = (*SMALL, "--omit-from", "plot_figures")
"""Leaves out figures, the costliest of what is made of an audit, and the report that shows them."""

MODELS = ["ERM", "Network", "Given"]
LOGITS = Counter(extract_logits=1)
"""Of a model whose measures are all made of its logits."""
JUDGED_ANEW = Counter(write_configuration=1, judge_audit=1, build_report=1, build_index=1)
"""After any change of the configuration, whose digest the verdict carries."""


def edit_entry(repository, model, **settings):
    """Change settings of one model's entry; those of its training by their own names."""
    overlay = yaml.safe_load(repository.read(OVERLAY))
    entry = overlay["models"]["one"]["none"][model]
    for name, value in settings.items():
        place = entry if name in entry else entry["training"]
        assert place[name] != value
        place[name] = value
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))


def files_of_models(repository):
    """What the files of each model hold: {model: {path: (time of change, sha256)}}."""
    found = {model: {} for model in MODELS}
    for path in (repository.path / "results").rglob("*"):
        if path.is_file() and path.stem in found and not {"logs", "costs"} & set(path.parts):
            found[path.stem][path] = (path.stat().st_mtime_ns, sha256_of_file(path))
    return found


def planned(repository, model, *options):
    """Jobs of models in a dry run, after checking that they are all of one model and aggregates run once each."""
    rules, files = repository.planned(*SMALL, *options)
    jobs = repository.jobs_of_models(rules)
    assert {name for name in MODELS if any(f"/{name}." in file for file in files)} == ({model} if jobs else set())
    assert rules["score_models"] == rules["judge_audit"] == 1
    return jobs


def rerun(repository, model, *options):
    """The same of a run, after which no file of another model has changed and nothing is left to do."""
    before = files_of_models(repository)
    rules = repository.ran(*TABLES, *options)
    after = files_of_models(repository)
    assert {name for name in MODELS if after[name] != before[name]} == {model}
    assert repository.planned(*TABLES) == (Counter(), set())
    return repository.jobs_of_models(rules, until="build_report")


# ---- its entry ----


def test_a_changed_training_trains_it_again(small):
    edit_entry(small, "ERM", seed=7)
    assert rerun(small, "ERM") == Counter(train_model=1) + LOGITS


def test_what_is_published_about_it_moves_no_image(small):
    edit_entry(small, "ERM", clean_accuracy_tolerance=0.9)
    assert planned(small, "ERM") == Counter()


def test_another_preprocessing_of_a_checkpoint_computes_its_logits_again(small):
    edit_entry(small, "Network", mean=[0.5])
    assert planned(small, "Network") == Counter(fetch_checkpoint=1) + LOGITS


# ---- its files ----


def test_another_checkpoint_is_refused_until_the_change_is_meant(small):
    stood_there = small.path / "checkpoints/stood_there.pt"
    (small.path / "checkpoints/Network.pt").rename(stood_there)
    place_network(small.path, "Network", image_shape=(1, 8, 8), classes=10, seed=1)
    refused = small.snakemake(*SMALL, check=False)
    assert refused.returncode != 0
    assert "recorded in Network.pt.sha256" in refused.text
    # The verdict on the other network no longer stands.
    judged = small.path / "results/audits/one"
    assert not (judged / "verdict.json").exists() and not (judged / "report.html").exists()
    assert (judged / "previous/verdict.json").is_file() and (judged / "previous/report.html").is_file()
    # Nor is anything lost: with the old one back, nothing of a model is made again.
    refused_one = small.path / "checkpoints/refused.pt"
    (small.path / "checkpoints/Network.pt").rename(refused_one)
    stood_there.rename(small.path / "checkpoints/Network.pt")
    rules, _ = small.planned(*SMALL)
    assert rules and not {"fetch_checkpoint", "extract_logits", "score_models", "tabulate_audit"} & set(rules)
    refused_one.rename(small.path / "checkpoints/Network.pt")
    (small.path / "checkpoints/Network.pt.sha256").unlink()
    assert rerun(small, "Network") == Counter(fetch_checkpoint=1) + LOGITS


def test_another_checkpoint_with_its_digest_pinned(small):
    place_network(small.path, "Network", image_shape=(1, 8, 8), classes=10, seed=1)
    edit_entry(small, "Network", sha256=sha256_of_file(small.path / "checkpoints/Network.pt"))
    assert planned(small, "Network") == Counter(fetch_checkpoint=1) + LOGITS


@pytest.mark.parametrize("name", ["mine", "layers"])
def test_another_definition_of_its_network_or_of_what_that_imports(small, name):
    manifest = json.loads(small.read("results/checkpoints/one/none/Network.json"))
    paths = [file["path"] for file in manifest["architecture_files"]]
    assert paths == ["architectures/layers.py", "architectures/mine.py"]
    identity = read_identity(small.path / "results/scores/one.parquet")["logits"]["none/Network"]
    assert identity["architecture_sha256"] == manifest["architecture_sha256"]
    assert manifest["architecture_sha256"] in small.read("results/audits/one/report.html")
    edited = small.path / f"architectures/{name}.py"
    edited.write_text(f"{edited.read_text()}\n# changed\n")
    # As mv and cp -a would, whose files may be older than what was made of others.
    os.utime(edited, (0, 0))
    assert planned(small, "Network") == Counter(fetch_checkpoint=1) + LOGITS


def test_other_logits_of_somebody_else(small):
    images, _ = open_described(small.path / "results/datasets/one.json")
    place_logits(small.path, "Given", labels=images.labels, classes=10, seed=1)
    assert planned(small, "Given") == Counter()


def test_the_gate_reads_files_of_users_again_though_nothing_tells_of_their_change(small):
    given = small.path / "Given.npy"
    before = given.stat()
    damaged = bytearray(given.read_bytes())
    damaged[-1] ^= 1
    given.write_bytes(damaged)
    os.utime(given, ns=(before.st_atime_ns, before.st_mtime_ns))
    # A file of this size is hashed before each run; one of more than 1 MiB is told by size and time alone.
    by_time = (*SMALL, "--rerun-triggers", "mtime", "--")
    assert small.planned(*by_time) == (Counter(), set())
    refused = small.snakemake(*by_time, "gate", check=False)
    assert refused.returncode != 0
    assert f"{given.name}: not the file" in refused.text and "the gate stays closed" not in refused.text


# ---- its data ----


def pin(repository, **digests):
    overlay = yaml.safe_load(repository.read(OVERLAY))
    for name, digest in digests.items():
        overlay["datasets"].setdefault(name, {})["digest"] = digest
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))


def test_pinning_a_recorded_digest_runs_no_step_of_its_data(small):
    names = ("one", "digits-train")
    recorded = {name: json.loads(small.read(f"results/datasets/{name}.json"))["digest"] for name in names}
    before = contents(small)
    pin(small, **recorded)
    assert small.ran(*SMALL) == JUDGED_ANEW
    assert before.items() <= contents(small).items()
    assert small.planned(*SMALL) == (Counter(), set())
    # Made anew, the manifest is the same.
    (small.path / "results/datasets/one.json").unlink()
    small.snakemake(*SMALL, "--", "results/datasets/one.json")
    assert before.items() <= contents(small).items()
    assert small.planned(*SMALL) == (Counter(), set())


def test_another_digest_is_refused_when_it_is_pinned_and_when_the_data_are_fetched(small):
    pin(small, one="0" * 64)
    refused = small.snakemake(*SMALL, check=False)
    assert refused.returncode != 0 and not rules_in(refused.text)
    assert "results/datasets/one.json: the data have digest" in refused.text and "config.yaml pins 0000" in refused.text
    (small.path / "results/datasets/one.json").unlink()
    refused = small.snakemake(*SMALL, "--", "results/datasets/one.json", check=False)
    assert refused.returncode != 0
    assert "restore the data, or correct `digest`" in refused.text


# ---- by hand ----


@pytest.mark.parametrize(
    ("model", "file", "expected"),
    [
        ("ERM", "results/trained/one/none/ERM.safetensors", Counter(train_model=1) + LOGITS),
        ("Network", "results/checkpoints/one/none/Network.json", Counter(fetch_checkpoint=1) + LOGITS),
        ("Given", "results/scores/one.parquet", Counter()),
    ],
)
def test_a_file_named_after_forcerun_is_made_again_and_all_that_follows(small_once, model, file, expected):
    assert planned(small_once, model, "-R", file) == expected


# ---- files that are lost or damaged ----


def test_a_damaged_table_is_named_with_the_command_that_makes_it_anew(small):
    """And what is made anew has the same bytes: computing a model again is a check, not another result."""
    name = "results/logits/one/none/ERM.parquet"
    path, before = small.path / name, contents(small)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    refused = small.snakemake(*TABLES, check=False)
    assert refused.returncode != 0
    assert "Traceback" not in refused.text
    (advice,) = set(re.findall(rf"(?s)error: {re.escape(name)}: .*?add ARGS=\"(-R \S+)\" to make audit", refused.text))
    rules = small.ran(*TABLES, *advice.split())
    assert small.jobs_of_models(rules, until="build_report") == LOGITS
    assert contents(small) == before
    assert small.planned(*TABLES) == (Counter(), set())


def test_damage_that_leaves_the_time_of_change_alone_is_noticed_by_nobody_until_the_file_is_read(small):
    path = small.path / "results/logits/one/none/ERM.parquet"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:100])
    os.utime(path, ns=times)
    assert small.planned(*SMALL) == (Counter(), set())


def test_every_result_is_missed_when_it_is_lost(small):
    """One stage at a time: a stage alone tells what is missing in it, with all that follows in place."""
    stages = {}
    for path in kept(small):
        stages.setdefault(path.relative_to(small.path).parts[1], []).append(path)
    assert set(stages) >= {"datasets", "checkpoints", "trained", "logits", "scores", "sweeps", "audits"}
    for stage, paths in stages.items():
        for path in paths:
            path.rename(f"{path}.lost")
        _, files = small.planned(*SMALL)
        missed = {str(path.relative_to(small.path)) for path in paths if path.parent.name != "figures"}
        assert missed <= files, stage
        for path in paths:
            Path(f"{path}.lost").rename(path)


def kept(repository):
    """Every file of results/ that a step made as its output."""
    files = sorted((repository.path / "results").rglob("*"))
    other = {"logs", "costs", "progress", "cache", "previous"}
    return [path for path in files if path.is_file() and path.name != ".gitignore" and not other & set(path.parts)]


def contents(repository):
    """Digest of each of them, but what says when, how long, or all that was asked for."""
    told = ("costs", "config", "verdict")
    paths = [path for path in kept(repository) if path.stem not in told and path.suffix != ".html"]
    return {str(path.relative_to(repository.path)): sha256_of_file(path) for path in paths}
