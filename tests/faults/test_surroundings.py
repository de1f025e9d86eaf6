"""What changes around a run without its knowing: files that trade places, another copy of the package."""

import os
import shutil
from collections import Counter

import numpy as np
import pytest

from faults.audits import OPTIONS, OVERLAY, TARGETS, undated

pytestmark = pytest.mark.seconds(80)


def test_files_that_traded_places_are_read_again(undisturbed, tmp_path):
    """Times of change stay, and are older than what was made of the files."""
    repository = undisturbed.copy_to(tmp_path / "exchanged")
    assert repository.planned("--configfile", "config.yaml", OVERLAY, "--", *TARGETS) == (Counter(), set())
    first, second, aside = (repository.path / name for name in ("A.npy", "B.npy", "aside.npy"))
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    rules, files = repository.planned("--configfile", "config.yaml", OVERLAY, "--", *TARGETS)
    assert rules["score_models"] == 1 and "results/scores/cheap.parquet" in files


def test_labels_older_than_what_was_made_of_the_first_ones_are_read_again(undisturbed, tmp_path):
    """A file that was unpacked or copied keeps the time of change of its origin; a copy of the same one is the same."""
    repository = undisturbed.copy_to(tmp_path / "older")
    labels, before = repository.path / "labels.npy", (undisturbed.path / "CHANGELOG.md").stat()
    times = before.st_atime_ns, before.st_mtime_ns
    labels.write_bytes(labels.read_bytes())
    os.utime(labels, ns=times)
    assert repository.planned("--configfile", "config.yaml", OVERLAY, "--", *TARGETS) == (Counter(), set())
    np.save(labels, np.load(labels)[::-1])
    os.utime(labels, ns=times)
    rules, _ = repository.planned("--configfile", "config.yaml", OVERLAY, "--", *TARGETS)
    assert rules["fetch_dataset"] == 1


def test_other_settings_are_refused_where_the_records_of_snakemake_are_lost(undisturbed, tmp_path):
    """As after a copy of results/ alone, of which nobody can say what fits the settings of now."""
    repository = undisturbed.copy_to(tmp_path / "unrecorded")
    shutil.rmtree(repository.path / ".snakemake")
    text = repository.read(OVERLAY)
    assert "at_least: 0." in text
    repository.snakemake(*OPTIONS, "--", *TARGETS)
    (repository.path / OVERLAY).write_text(text.replace("at_least: 0.", "at_least: 0.9"))
    refused = repository.snakemake(*OPTIONS, "--", *TARGETS, check=False)
    assert refused.returncode != 0 and "cheap/config.yaml: states other settings" in refused.text
    assert "--forceall" in refused.text and "Traceback" not in refused.text
    repository.snakemake(*OPTIONS, "--forceall", "--", *TARGETS)
    verdict = "results/audits/cheap/verdict.json"
    assert undated(repository.path / verdict) != undated(undisturbed.path / verdict)


@pytest.mark.parametrize("lost", ["A.npy", "labels.npy"])
def test_nothing_stands_on_a_file_that_is_not_there(undisturbed, tmp_path, lost):
    """However often, and whatever of it, is asked for: the first failure takes the output that others stand on."""
    repository = undisturbed.copy_to(tmp_path / "moved")
    text = repository.read(OVERLAY)
    assert lost in text
    (repository.path / OVERLAY).write_text(text.replace(lost, f"renamed-{lost}"))
    for target in ("audit", "audit", "gate"):
        done = repository.snakemake(*OPTIONS, "--", target, check=False)
        assert done.returncode != 0, target
        assert f"renamed-{lost}: there is no such file" in done.text
        assert "Traceback" not in done.text
    (repository.path / OVERLAY).write_text(text)
    repository.snakemake(*OPTIONS, "--", *TARGETS)
    verdict = "results/audits/cheap/verdict.json"
    assert undated(repository.path / verdict) == undated(undisturbed.path / verdict)


def test_jobs_take_the_package_of_the_repository(configured, tmp_path):
    """Whatever copy is installed or stands on the search path."""
    (tmp_path / "gfscore").mkdir()
    (tmp_path / "gfscore/__init__.py").write_text("raise SystemExit('another copy of the package ran')\n")
    repository = configured()
    repository.snakemake(*OPTIONS, "--", "results/datasets/made.json", environment={"PYTHONPATH": str(tmp_path)})
    assert (repository.path / "results/datasets/made.json").exists()


def test_a_run_up_to_some_step_succeeds_without_a_verdict(configured):
    """What is printed at the end speaks of verdicts only where the whole audit was asked for."""
    text = configured().snakemake(*OPTIONS, "--until", "fetch_dataset").text
    assert "report.html" not in text
