"""Results say which software made them: one version everywhere, and the commit of a checkout."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from gfscore import VERSION
from gfscore.core import software as module
from gfscore.core.software import software, version_in_words

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def asked_anew():
    software.cache_clear()
    yield
    software.cache_clear()


def git(folder, *arguments):
    who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    done = subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Folder with one commit, which stands for the checkout that the package runs from."""
    folder = tmp_path / "checkout"
    for name in ("Snakefile", "config.yaml", "workflow_scripts/step.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("as committed\n")
    git(tmp_path, "init", "--quiet", folder)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "one")
    monkeypatch.setattr(module, "ROOT", folder)
    return folder


def test_a_checkout_is_named_by_its_commit(checkout):
    made_by = {"name": "gfscore", "version": VERSION, "commit": git(checkout, "rev-parse", "HEAD"), "changed": False}
    assert software() == made_by
    assert version_in_words(made_by) == f"{VERSION}, commit {made_by['commit']}"


@pytest.mark.parametrize(
    "name, changed", [("Snakefile", True), ("workflow_scripts/new.py", True), ("config.yaml", False)]
)
def test_changed_says_that_the_code_differs_and_not_its_configuration(checkout, name, changed):
    (checkout / name).write_text("edited\n")
    assert software()["changed"] is changed
    assert version_in_words(software()).endswith(", code changed since") is changed


def test_another_repository_is_never_taken_for_the_checkout(checkout, tmp_path, monkeypatch):
    """Neither that of a hook, which names it in the environment, nor one that the folder lies in."""
    commit = git(checkout, "rev-parse", "HEAD")
    git(tmp_path, "init", "--quiet", tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/index"))
    assert (software()["commit"], software()["changed"]) == (commit, False)
    monkeypatch.undo()
    (checkout / "inside").mkdir()
    monkeypatch.setattr(module, "ROOT", checkout / "inside")
    software.cache_clear()
    assert software() == {"name": "gfscore", "version": VERSION, "commit": None, "changed": None}


def test_without_git_the_version_stands_alone(checkout, monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert software()["commit"] is None
    assert version_in_words(software()) == VERSION


def test_the_version_is_one():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gfscore.VERSION"}
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line[:3] == "## "]
    assert headings[0].split()[1] == VERSION


def test_rules_do_not_ask_for_the_commit():
    """As a setting of a rule it would make every result out of date at each commit."""
    readers = [*ROOT.glob("rules/*.smk"), *ROOT.glob("workflow_scripts/gfscore/workflow/*.py"), ROOT / "Snakefile"]
    assert [path.name for path in readers if "gfscore.core.software" in path.read_text(encoding="utf-8")] == []
