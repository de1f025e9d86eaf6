"""The repository copied to a temporary folder, audited there by Snakemake."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from filelock import FileLock

from gfscore.workflow.configuration import resolved_configuration
from helpers.configurations import place_small_audit
from helpers.processes import forked_snakemake

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow_scripts"


class Repository:
    """A copy of the repository in which Snakemake can run."""

    def __init__(self, path):
        self.path = path

    def snakemake(self, *arguments, check=True, environment=(), within=()):
        """Run Snakemake there, by the command `within` (unshare, say); its output is `.text` of what is returned."""
        options = ["--cores", "2", *arguments]
        if within:
            done = self._run([*within, sys.executable, "-m", "snakemake", *options], environment)
        else:
            done = forked_snakemake(options, folder=self.path, environment=os.environ | dict(environment))
        done.text = done.stdout
        assert not check or done.returncode == 0, done.text[-4000:]
        return done

    def make(self, target, *variables):
        """Run make there with the environment of these tests; returns the exit status, and what was said."""
        return self._said("make", target, f"VENV={Path(sys.executable).parent.parent}", "CORES=2", *variables)

    def gfscore(self, *arguments):
        """Run the command gfscore of that copy; returns the exit status, and what was said."""
        command = [sys.executable, "-P", "-m", "gfscore.workflow.command", *arguments]
        return self._said(*command, environment={"PYTHONPATH": str(self.path / "workflow_scripts")})

    def _said(self, *command, environment=()):
        done = self._run(command, environment)
        return done.returncode, done.stdout

    def _run(self, command, environment):
        return subprocess.run(
            command,
            cwd=self.path,
            env=os.environ | dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def planned(self, *arguments):
        """What a dry run would do: a Counter of rules, and the set of files that would be written."""
        text = self.snakemake("--dry-run", *arguments).text
        outputs = re.findall(r"^ +output: (.+)$", text, flags=re.MULTILINE)
        files = {name for line in outputs for name in line.split(", ")}
        return rules_in(text), files

    def ran(self, *arguments, **options):
        """What a run did: a Counter of rules."""
        return rules_in(self.snakemake(*arguments, **options).text)

    def environments_of_rules(self):
        """Rule to the name of its environment in envs/, from the rule files."""
        found = {}
        for path in (self.path / "rules").glob("*.smk"):
            for block in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
                found[block.split(":")[0]] = re.search(r'"../envs/(\w+)\.yaml"', block)[1]
        return found

    def copy_to(self, path):
        """Another copy, times of change included, so that nothing counts as changed in it."""
        shutil.copytree(self.path, path, symlinks=True)
        return Repository(path)

    def read(self, name):
        return (self.path / name).read_text(encoding="utf-8")

    def edit(self, name, old, new):
        """Replace a text that stands exactly once in a file."""
        text = self.read(name)
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (self.path / name).write_text(text.replace(old, new), encoding="utf-8")

    def leave_out_figures(self):
        """From here on no run makes figures as files, the costliest of what is made of an audit."""
        with (self.path / "profiles/default/config.yaml").open("a") as profile:
            profile.write("\nomit-from: [plot_figures]\n")

    def jobs_of_models(self, rules, *, until="build_report"):
        """Those of a Counter of rules that concern single models, after checking that the others ran once each.

        The others are those of an audit up to some step, and of all audits.
        """
        text = "".join(path.read_text() for path in (self.path / "rules").glob("*.smk"))
        # Steps of an audit, or of all audits, have no other wildcard in the name of their log.
        aggregates = set(re.findall(r'"results/logs/(\w+)(?:/\{audit\})?\.log"', text))
        assert {"tabulate_audit", until} <= aggregates & set(rules)
        assert all(rules[rule] == 1 for rule in aggregates & set(rules))
        return Counter({rule: count for rule, count in rules.items() if rule not in aggregates})

    def config(self):
        """The demo of this copy, every value written."""
        return resolved_configuration([self.path / "config.yaml"], {}, thorough=False).config


def rules_in(text):
    """Counter of the rules that Snakemake says to have started, or would."""
    # A dry run indents the jobs of a group.
    rules = re.findall(r"^ *(?:local)?rule (\w+):$", text, flags=re.MULTILINE)
    return Counter(rule for rule in rules if rule not in TARGETS)


TARGETS = set(re.findall(r"^rule (\w+):", (ROOT / "Snakefile").read_text(), flags=re.MULTILINE))
"""Rules that only name what is to be made."""

TWO_MODELS = "tests/workflow/two_models.yaml"

OVERLAY = "one.yaml"
SMALL = ("--configfile", "config.yaml", OVERLAY)
"""Options of the small audit."""


@pytest.fixture(scope="session")
def fresh_copy(tmp_path_factory):
    """Function that copies what git tracks or would track, without results, and the package's bytecode that is there."""

    def copy():
        target = tmp_path_factory.mktemp("repository")
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target / name)
        # Else the first job of each copy would compile every module anew.
        for folder in SCRIPTS.rglob("__pycache__"):
            # Without what another process is about to write.
            shutil.copytree(folder, target / folder.relative_to(ROOT), ignore=shutil.ignore_patterns("*.pyc.*"))
        return Repository(target)

    return copy


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Function: the copy of a name, which `make(copy)` fills; tests do not change it.

    Where several processes run the tests, the first one makes it and the others wait. `make` returns what was said.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def repository(name, make):
        made, said = Repository(folder / name), folder / f"{name}.txt"
        with FileLock(folder / f"{name}.lock"):
            if not said.exists():
                assert not made.path.exists(), f"{name} could not be made, see the first test that needs it"
                said.write_text(make(made))
        made.first_output = said.read_text()
        return made

    return repository


@pytest.fixture(scope="session")
def audited_once(fresh_copy, made_once):
    """The default audit, made by the command of the README; tests do not change this copy."""

    def make(repository):
        shutil.move(fresh_copy().path, repository.path)
        code, said = repository.make("audit")
        assert code == 0, said[-4000:]
        return said

    return made_once("audited_once", make)


@pytest.fixture
def audited(audited_once, tmp_path):
    """A copy of the audited repository that the test may change."""
    return audited_once.copy_to(tmp_path / "copy")


@pytest.fixture(scope="session")
def small_once(fresh_copy, made_once):
    """An audit of one trained model (for an epoch), one checkpoint and one file of logits; tests do not change it."""

    def make(repository):
        shutil.move(fresh_copy().path, repository.path)
        place_small_audit(repository)
        return repository.snakemake(*SMALL).text

    return made_once("small_once", make)


@pytest.fixture
def small(small_once, tmp_path):
    """A copy of it that the test may change."""
    return small_once.copy_to(tmp_path / "copy")
