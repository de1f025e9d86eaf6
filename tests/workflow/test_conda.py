"""`--use-conda`: environments that are complete, and jobs that use them and nothing else.

No conda and no channel here: helpers/conda/stand_in.py solves and installs with py-rattler from a channel made for the
test, and Snakemake really runs the scripts by which pip fills the environments. What that leaves open stands in
docs/conda.md.
"""

import ast
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from rattler import MatchSpec

import lock
from gfscore.workflow.sources import sources_of
from helpers.processes import make_conda, observations, observe_in, observing, step_of
from install import entries
from workflow.conftest import SMALL

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(240)]

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ["analysis", "torch"]
WITH_PYTHON = {"pip", "setuptools"}


def described(name):
    return yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())


def pins_of(name):
    """What the script that Snakemake runs in a new environment asks for."""
    return re.findall(r"\S+==\S+", (ROOT / f"envs/{name}.post-deploy.sh").read_text())


def pinned():
    """Markers of every pin of requirements.lock, by `name==version`."""
    lines = map(lock.pin_of, entries(lock.LOCK.read_text())[1].values())
    return {line.split(" ; ")[0]: line.partition(" ; ")[2] for line in lines}


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


# ---- the files ----


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_conda_brings_python_and_pip_and_no_more(name):
    environment = described(name)
    assert environment["channels"] == ["conda-forge"]
    specs = {
        spec.name.normalized: spec for spec in (MatchSpec(line, strict=True) for line in environment["dependencies"])
    }
    assert set(specs) == {"python", "pip"}
    assert str(specs["python"]) == "python 3.11.*"
    assert str(specs["pip"]) == "pip"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_its_packages_are_of_the_lock_and_lack_nothing(name, tmp_path):
    pins, markers = pins_of(name), pinned()
    assert set(pins) <= markers.keys()
    (tmp_path / "pins.txt").write_text("".join(f"{pin} ; {markers[pin]}\n" for pin in pins).replace(" ; \n", "\n"))
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "pins.txt", "--universal"]
    command += ["--fork-strategy", "fewest", "--python-version", "3.11", "--no-annotate", "--no-header", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {re.split(r"[ ;]", line)[0] for line in done.stdout.splitlines()} == set(pins)


# ---- jobs ----


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """Environment variables of a conda that makes environments of envs/, and where it puts them: about 3 GB."""
    if not platform.python_version().startswith("3.11."):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the environments are of Python 3.11, this is another")
    base = tmp_path_factory.mktemp("conda")
    prefixes = base / "environments"
    yield make_conda(base), prefixes
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def plain(small_once, tmp_path_factory):
    """An audit made without conda."""
    return small_once.copy_to(tmp_path_factory.mktemp("plain") / "copy")


@pytest.fixture(scope="module")
def under_conda(plain, conda):
    """The options of --use-conda, with both environments made."""
    environment, prefixes = conda
    options = (*SMALL, "--use-conda", "--conda-prefix", str(prefixes))
    everything = ("--forceall", "--conda-create-envs-only")
    plain.snakemake(*options, *everything, environment=environment)
    for name in ENVIRONMENTS:
        observe_in(prefix_of(conda, name))
    return options, environment


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_is_made_as_described(under_conda, conda, name):
    prefix = prefix_of(conda, name)
    assert {file.name.split("-")[0] for file in (prefix / "conda-meta").glob("*.json")} == {"python", "pip"}
    command = [prefix / "bin/python", "-m", "pip", "list", "--format=json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # The CPU build is the same release as the one that every user gets.
    installed = {f"{normalised(one['name'])}=={one['version'].removesuffix('+cpu')}" for one in listed}
    markers = pinned()
    assert {pin for pin in pins_of(name) if not markers[pin]} <= installed
    assert {pin.split("==")[0] for pin in installed} <= {pin.split("==")[0] for pin in pins_of(name)} | WITH_PYTHON


def test_going_over_to_conda_and_back_runs_nothing_again(plain, under_conda):
    options, environment = under_conda
    done = plain.snakemake(*options, environment=environment)
    assert "Nothing to be done" in done.text
    assert plain.planned(*SMALL) == (Counter(), set())


@pytest.fixture(scope="module")
def seen(plain, under_conda, tmp_path_factory):
    """What every job of the whole audit loaded, run again under conda."""
    options, environment = under_conda
    folder = tmp_path_factory.mktemp("seen") / "jobs"
    # Figures are drawn by what draws the page too.
    plain.snakemake(*options, "--forceall", "--omit-from", "plot_figures", environment=environment | observing(folder))
    return [one for one in observations(folder) if step_of(one)]


def test_every_job_ran_in_the_environment_of_its_rule(plain, conda, seen):
    of_rule = plain.environments_of_rules()
    assert {"train_model", "extract_logits", "tabulate_audit", "build_report"} <= {step_of(one) for one in seen}
    for one in seen:
        prefix = Path(one["prefix"])
        assert prefix.parent == conda[1], step_of(one)
        name = of_rule[step_of(one)]
        assert Path(f"{prefix}.yaml").read_text() == (ROOT / f"envs/{name}.yaml").read_text()
        assert one["executable"] != sys.executable
        assert Path(one["modules"]["gfscore"]).is_relative_to(plain.path / "workflow_scripts")
        for package in ("numpy", "torch"):
            if package in one["modules"]:
                assert Path(one["modules"][package]).is_relative_to(prefix)
    with_numpy = {step_of(one) for one in seen if "numpy" in one["modules"]}
    assert {"train_model", "extract_logits", "tabulate_audit", "build_report"} <= with_numpy
    with_torch = {step_of(one) for one in seen if "torch" in one["modules"]}
    assert {"train_model", "extract_logits"} <= with_torch
    assert {of_rule[step] for step in with_torch} == {"torch"}


def test_no_job_borrows_a_package_from_the_driver(plain, seen):
    """Snakemake appends the driver's whole sys.path, so that a package missing from envs/ would go unnoticed.

    Of what other packages import, all that they need is pinned; what they use only where it is there (torch takes
    tabulate, pyarrow cloudpickle) may come from there, beside Snakemake itself.
    """
    for one in seen:
        assert "snakemake" in borrowed(one)
        assert borrowed(one) & imported_by(plain.path / f"workflow_scripts/{step_of(one)}.py") == set(), step_of(one)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_package_that_a_step_may_import_is_in_its_environment(plain, under_conda, conda, name):
    """Of imports inside functions too, whether or not the audit above came by them."""
    steps = [step for step, environment in plain.environments_of_rules().items() if environment == name]
    wanted = set().union(*(imported_by(plain.path / f"workflow_scripts/{step}.py") for step in steps))
    if name == "analysis":
        # Cheap steps reach modules that build networks, never the functions that do: no job above loaded torch.
        wanted -= {"torch"}
    code = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    command = [prefix_of(conda, name) / "bin/python", "-I", "-c", code, *sorted(wanted)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_package_that_is_missing_would_be_seen_as_borrowed(plain, under_conda, conda, tmp_path):
    """The test of the test: without pandas in the environment the job still succeeds, with the driver's."""
    options, environment = under_conda
    pandas = prefix_of(conda, "analysis") / "lib/python3.11/site-packages/pandas"
    hidden = pandas.rename(pandas.with_name("hidden"))
    try:
        file = "results/scores/one.parquet"
        plain.snakemake(*options, "-R", file, "--", file, environment=environment | observing(tmp_path / "jobs"))
    finally:
        hidden.rename(pandas)
    (one,) = (one for one in observations(tmp_path / "jobs") if step_of(one))
    assert "pandas" in borrowed(one) & imported_by(plain.path / "workflow_scripts/score_models.py")


def prefix_of(conda, name):
    """Where the environment of a name was made: Snakemake keeps a copy of its file beside it."""
    text = (ROOT / f"envs/{name}.yaml").read_text()
    (path,) = (path for path in conda[1].glob("*.yaml") if path.read_text() == text)
    return path.with_suffix("")


def borrowed(observation):
    """Packages that a job loaded from the driver's environment."""
    driver = Path(sys.prefix)
    return {
        name.split(".")[0]
        for name, file in observation["modules"].items()
        if file and Path(file).is_relative_to(driver)
    }


def imported_by(script):
    """Third-party packages that a step's script or the modules that it reaches import anywhere."""
    names = set()
    for path in (path for path in sources_of(script) if path.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module)
    own = {"gfscore"} | {path.stem for path in Path(script).parent.glob("*.py")}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - own
