"""A release: one version everywhere, and distributions that work in an empty environment."""

import shutil
import subprocess
from pathlib import Path

import pytest

import release

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("workflow_scripts/gfscore/__init__.py", "CITATION.cff", "CHANGELOG.md")

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(60)]


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit of the files that name the version."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_version_is_one(checkout):
    assert release.version_of(checkout) == release.version_of(ROOT)


@pytest.mark.parametrize("name", NAMES)
def test_another_version_in_one_place_is_refused(checkout, name):
    version = release.version_of(checkout)
    pattern = f"## {version}" if name == "CHANGELOG.md" else version
    edit(checkout / name, pattern, pattern.replace(version, "9.9.9"))
    with pytest.raises(release.Disagreement, match=r"9\.9\.9 in " + name):
        release.version_of(checkout)


def test_a_release_is_dated_committed_and_tagged(checkout):
    version = release.version_of(checkout)
    assert len(release.missing_for_a_release(checkout, version)) == 2, "no date, and no tag"
    edit(checkout / "CHANGELOG.md", f"## {version} (unreleased)", f"## {version} (2026-01-01)")
    assert len(release.missing_for_a_release(checkout, version)) == 2, "no commit, and no tag"
    commit(checkout)
    git(checkout, "tag", f"v{version}")
    assert release.missing_for_a_release(checkout, version) == []


def test_a_tag_of_another_version_is_refused(checkout):
    git(checkout, "tag", "v9.9.9")
    with pytest.raises(release.Disagreement, match=r"v9\.9\.9"):
        release.missing_for_a_release(checkout, release.version_of(checkout))


def test_wheel_and_source_distribution_work_in_an_empty_environment(tmp_path):
    distributions = release.build(ROOT, tmp_path / "dist")
    assert sorted(path.suffix for path in distributions) == [".gz", ".whl"]
    for distribution in distributions:
        release.try_installed(distribution)
