"""One model computed again: each way of docs/re-running.md, with the jobs that run and the files that change."""

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from foreign_models import place_logits, place_network
from gfscore.core.files import sha256_of_file
from gfscore.images.datasets import open_described
from gfscore.tables.parquet_tables import read_identity
from small_audits import small_audit, trained_for_one_epoch

pytestmark = pytest.mark.workflow

OVERLAY = "one.yaml"
OPTIONS = ("--configfile", "config.yaml", OVERLAY)
TABLES = (*OPTIONS, "--omit-from", "plot_figures")
"""Leaves out figures, the costliest of what is made of an audit, and the report that shows them."""

MODELS = ["ERM", "Network", "Given"]
LOGITS = Counter(extract_logits=1)
"""Of a model whose measures are all made of its logits."""


@pytest.fixture(scope="module")
def once(fresh_copy):
    """An audit of three models: one trained (for an epoch), one checkpoint, one file of logits."""
    repository = fresh_copy()
    config = repository.config()
    models = trained_for_one_epoch(config, ["ERM"]) | {
        "Network": place_network(repository.path, "Network", image_shape=(1, 8, 8), classes=10),
        "Given": {"source": "logits", "path": "Given.npy"},
    }
    overlay = {
        "run": ["one"],
        "datasets": {"one": config["datasets"]["digits"] | {"models_of": "one"}},
        "models": {"one": {"none": models}},
        "audits": {"one": small_audit(config, dataset="one", models=[f"one/none/{name}" for name in MODELS])},
    }
    repository.snakemake("--", "results/datasets/digits.json")
    images, _ = open_described(repository.path / "results/datasets/digits.json")
    models["Given"] = place_logits(repository.path, "Given", labels=images.labels, classes=10)
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))
    repository.snakemake(*OPTIONS)
    return repository


@pytest.fixture
def audited_one(once, tmp_path):
    return once.copy_to(tmp_path / "copy")


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
    rules, files = repository.planned(*OPTIONS, *options)
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
    return repository.jobs_of_models(rules, until="build_dashboard")


# ---- its entry ----


def test_a_changed_training_trains_it_again(audited_one):
    edit_entry(audited_one, "ERM", seed=7)
    assert rerun(audited_one, "ERM") == Counter(train_model=1) + LOGITS


def test_what_is_published_about_it_moves_no_image(audited_one):
    edit_entry(audited_one, "ERM", clean_accuracy_tolerance=0.9)
    assert planned(audited_one, "ERM") == Counter()


def test_another_preprocessing_of_a_checkpoint_computes_its_logits_again(audited_one):
    edit_entry(audited_one, "Network", mean=[0.5])
    assert planned(audited_one, "Network") == Counter(fetch_checkpoint=1) + LOGITS


# ---- its files ----


def test_another_checkpoint_is_refused_until_the_change_is_meant(audited_one):
    stood_there = audited_one.path / "checkpoints/stood_there.pt"
    (audited_one.path / "checkpoints/Network.pt").rename(stood_there)
    place_network(audited_one.path, "Network", image_shape=(1, 8, 8), classes=10, seed=1)
    refused = audited_one.snakemake(*OPTIONS, check=False)
    assert refused.returncode != 0
    assert "recorded in Network.pt.sha256" in refused.text
    # The verdict on the other network no longer stands.
    judged = audited_one.path / "results/audits/one"
    assert not (judged / "verdict.json").exists() and not (judged / "report.html").exists()
    assert (judged / "previous/verdict.json").is_file() and (judged / "previous/report.html").is_file()
    # Nor is anything lost: with the old one back, nothing of a model is made again.
    refused_one = audited_one.path / "checkpoints/refused.pt"
    (audited_one.path / "checkpoints/Network.pt").rename(refused_one)
    stood_there.rename(audited_one.path / "checkpoints/Network.pt")
    rules, _ = audited_one.planned(*OPTIONS)
    assert rules and not {"fetch_checkpoint", "extract_logits", "score_models", "tabulate_audit"} & set(rules)
    refused_one.rename(audited_one.path / "checkpoints/Network.pt")
    (audited_one.path / "checkpoints/Network.pt.sha256").unlink()
    assert rerun(audited_one, "Network") == Counter(fetch_checkpoint=1) + LOGITS


def test_another_checkpoint_with_its_digest_pinned(audited_one):
    place_network(audited_one.path, "Network", image_shape=(1, 8, 8), classes=10, seed=1)
    edit_entry(audited_one, "Network", sha256=sha256_of_file(audited_one.path / "checkpoints/Network.pt"))
    assert planned(audited_one, "Network") == Counter(fetch_checkpoint=1) + LOGITS


@pytest.mark.parametrize("name", ["mine", "layers"])
def test_another_definition_of_its_network_or_of_what_that_imports(audited_one, name):
    manifest = json.loads(audited_one.read("results/checkpoints/one/none/Network.json"))
    paths = [file["path"] for file in manifest["architecture_files"]]
    assert paths == ["architectures/layers.py", "architectures/mine.py"]
    identity = read_identity(audited_one.path / "results/scores/one.parquet")["logits"]["none/Network"]
    assert identity["architecture_sha256"] == manifest["architecture_sha256"]
    assert manifest["architecture_sha256"] in audited_one.read("results/audits/one/report.html")
    edited = audited_one.path / f"architectures/{name}.py"
    edited.write_text(f"{edited.read_text()}\n# changed\n")
    # As mv and cp -a would, whose files may be older than what was made of others.
    os.utime(edited, (0, 0))
    assert planned(audited_one, "Network") == Counter(fetch_checkpoint=1) + LOGITS


def test_other_logits_of_somebody_else(audited_one):
    images, _ = open_described(audited_one.path / "results/datasets/one.json")
    place_logits(audited_one.path, "Given", labels=images.labels, classes=10, seed=1)
    assert planned(audited_one, "Given") == Counter()


# ---- its data ----


def pin(repository, **digests):
    overlay = yaml.safe_load(repository.read(OVERLAY))
    for name, digest in digests.items():
        overlay["datasets"].setdefault(name, {})["digest"] = digest
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))


def test_pinning_a_recorded_digest_runs_nothing_but_its_check(audited_one):
    names = ("one", "digits-train")
    recorded = {name: json.loads(audited_one.read(f"results/datasets/{name}.json"))["digest"] for name in names}
    before = contents(audited_one)
    pin(audited_one, **recorded)
    assert audited_one.ran(*OPTIONS) == Counter(check_digest=2, write_configuration=1)
    assert before.items() <= contents(audited_one).items()
    assert audited_one.planned(*OPTIONS) == (Counter(), set())
    # Made anew, the manifest is the same.
    (audited_one.path / "results/datasets/one.json").unlink()
    audited_one.snakemake(*OPTIONS, "--", "results/datasets/one.json")
    assert before.items() <= contents(audited_one).items()
    assert audited_one.planned(*OPTIONS) == (Counter(), set())


def test_another_digest_is_refused_when_it_is_pinned_and_when_the_data_are_fetched(audited_one):
    pin(audited_one, one="0" * 64)
    assert audited_one.planned(*OPTIONS)[0] == Counter(check_digest=1, write_configuration=1)
    refused = audited_one.snakemake(*OPTIONS, check=False)
    assert refused.returncode != 0
    assert "results/datasets/one.json: the data have digest" in refused.text and "config.yaml pins 0000" in refused.text
    (audited_one.path / "results/datasets/one.json").unlink()
    refused = audited_one.snakemake(*OPTIONS, "--", "results/datasets/one.json", check=False)
    assert refused.returncode != 0
    assert "restore the data, or correct `digest`" in refused.text


# ---- by hand ----


@pytest.mark.parametrize(
    ("model", "file", "expected"),
    [
        ("ERM", "results/logits/one/none/ERM.parquet", LOGITS),
        ("ERM", "results/trained/one/none/ERM.safetensors", Counter(train_model=1) + LOGITS),
        ("Network", "results/checkpoints/one/none/Network.json", Counter(fetch_checkpoint=1) + LOGITS),
        ("Given", "results/scores/one.parquet", Counter()),
    ],
)
def test_a_file_named_after_forcerun_is_made_again_and_all_that_follows(once, model, file, expected):
    assert planned(once, model, "-R", file) == expected


# ---- files that are lost or damaged ----


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("results/logits/one/none/ERM.parquet", LOGITS),
        ("results/scores/one.parquet", Counter()),
        ("results/audits/one/class_scores.parquet", Counter()),
    ],
)
def test_a_damaged_table_is_named_with_the_command_that_makes_it_anew(audited_one, name, expected):
    """And what is made anew has the same bytes: computing a model again is a check, not another result."""
    path = audited_one.path / name
    before = contents(audited_one)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    refused = audited_one.snakemake(*TABLES, check=False)
    assert refused.returncode != 0
    assert "Traceback" not in refused.text
    (advice,) = set(re.findall(rf"(?s)error: {re.escape(name)}: .*?adding (-R \S+) to the command", refused.text))
    rules = audited_one.ran(*TABLES, *advice.split())
    assert audited_one.jobs_of_models(rules, until="build_dashboard") == expected
    assert contents(audited_one) == before
    assert audited_one.planned(*TABLES) == (Counter(), set())


def test_truncated_tables_are_named_and_healed_by_deleting_them(audited_one):
    before = contents(audited_one)
    # What is made last comes first, so that each is read although those after it are gone.
    for name in (
        "results/audits/one/class_scores.parquet",
        "results/scores/one.parquet",
        "results/logits/one/none/ERM.parquet",
    ):
        path = audited_one.path / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        refused = audited_one.snakemake(*TABLES, check=False)
        assert refused.returncode != 0
        assert f"{name}: not a Parquet file, or truncated" in refused.text
        assert "delete it" in refused.text
        path.unlink()
    audited_one.snakemake(*TABLES)
    assert contents(audited_one) == before


def test_damage_that_leaves_the_time_of_change_alone_is_noticed_by_nobody_until_the_file_is_read(audited_one):
    path = audited_one.path / "results/logits/one/none/ERM.parquet"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:100])
    os.utime(path, ns=times)
    assert audited_one.planned(*OPTIONS) == (Counter(), set())


def test_lost_files_are_made_again_by_the_same_command(audited_one):
    report = "results/audits/one/report.html"
    before, page = contents(audited_one), audited_one.read(report)
    lost = [
        "results/audits/one/models.json",
        "results/scores/one.parquet",
        "results/audits/one/model_summary.csv",
        report,
    ]
    for name in lost:
        (audited_one.path / name).unlink()
    rules = audited_one.ran(*OPTIONS)
    assert rules["extract_logits"] == rules["train_model"] == 0
    assert contents(audited_one) == before
    assert audited_one.read(report) == page


def test_every_result_is_missed_when_it_is_lost(audited_one):
    """One stage at a time: a stage alone tells what is missing in it, with all that follows in place."""
    stages = {}
    for path in kept(audited_one):
        stages.setdefault(path.relative_to(audited_one.path).parts[1], []).append(path)
    assert set(stages) >= {"datasets", "checkpoints", "trained", "logits", "scores", "sweeps", "audits"}
    for stage, paths in stages.items():
        for path in paths:
            path.rename(f"{path}.lost")
        _, files = audited_one.planned(*OPTIONS)
        missed = {str(path.relative_to(audited_one.path)) for path in paths if path.parent.name != "figures"}
        assert missed <= files, stage
        for path in paths:
            Path(f"{path}.lost").rename(path)


def kept(repository):
    """Every file of results/ that a step made as its output."""
    files = sorted((repository.path / "results").rglob("*"))
    other = {"logs", "costs", "progress", "cache", "previous"}
    return [path for path in files if path.is_file() and path.name != ".gitignore" and not other & set(path.parts)]


def contents(repository):
    """Digest of each of them, but what says how long something took, or all that was asked for."""
    paths = [path for path in kept(repository) if path.stem not in ("costs", "config") and path.suffix != ".html"]
    return {str(path.relative_to(repository.path)): sha256_of_file(path) for path in paths}
