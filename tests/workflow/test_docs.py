"""Every command and every Python block of the documents runs; every link leads somewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers import own_files
from helpers.configurations import laid_over, small_audit, trained_for_one_epoch

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(180)]

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN_ELSEWHERE = {"make test": "what CI runs", "make lint": "what CI runs"}


def blocks(language):
    """(document, text) of every fenced block of a language."""
    for document in DOCUMENTS:
        for text in re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), flags=re.MULTILINE | re.DOTALL):
            yield pytest.param(text, id=f"{document.name}-{text.splitlines()[0][:40]}")


def commands():
    for parameters in blocks("bash"):
        for line in parameters.values[0].splitlines():
            if line and line not in RUN_ELSEWHERE:
                yield line


@pytest.fixture(scope="module")
def workplace(audited_once, tmp_path_factory, real_data):
    """An audited copy with an environment at .venv, as a user has it after `make audit`."""
    repository = audited_once.copy_to(tmp_path_factory.mktemp("docs") / "copy")
    (repository.path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    # The command gfscore of this copy, as every make leaves it.
    subprocess.run(["make", "setup"], cwd=repository.path, check=True)
    # net.onnx, vit/, weights.pth, images/ and the like, as documents name files of a user.
    own_files.write_models(repository.path, real_data)
    own_files.write_data(repository.path, real_data, count=200)
    own_files.write_two_classes(repository.path)
    own_files.write_vit(repository.path, real_data)
    (repository.path / "my_networks.py").write_text(own_files.DEFINITION + "\n\nsmall = marabou\n")
    return repository.path


@pytest.fixture(scope="module")
def quick_workplace(fresh_copy):
    """The same with a `digits` of one network, trained for an epoch, whose bundle is made and computed again in seconds."""
    repository = fresh_copy()
    (repository.path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    config = repository.config()
    overlay = {
        "audits": {"digits": small_audit(config, dataset="digits", models=["digits/none/ERM"])},
        "models": {"digits": {"none": trained_for_one_epoch(config, ["ERM"])}},
    }
    (repository.path / "quick.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False))
    repository.snakemake("--configfile", "config.yaml", "quick.yaml", "--omit-from", "plot_figures")
    return repository.path


OF_BUNDLES = re.compile("gfscore (bundle|verify|compare)|signing-key")
"""Commands that make and read bundles, in the order of the documents."""


@pytest.mark.parametrize("command", dict.fromkeys(commands()))
def test_every_command_of_the_documents_can_be_run(request, command):
    """What makes something with Snakemake is planned only: other tests make it."""
    workplace = request.getfixturevalue("quick_workplace" if OF_BUNDLES.search(command) else "workplace")
    if re.search("audit|adjust", command) and "net.onnx" in command:
        command += " ARGS='--dry-run --force'" if command.startswith("make") else " --dry-run --force"
    elif command.startswith("make audit"):
        command += " ARGS=--dry-run"
    elif "snakemake" in command and "--unlock" not in command:
        command = re.sub("(?<=snakemake )", "--dry-run ", command)
    done = subprocess.run(
        ["bash", "-c", command], cwd=workplace, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    # The exit code of a gate is the verdict: the demo's is FAIL.
    assert done.returncode == (1 if "gfscore gate" in command else 0), done.stdout[-4000:]


def test_the_generated_audit_scores_samples_of_the_embedded_generator(workplace):
    file = "results/audits/digits-generated/class_scores.parquet"
    (workplace / "few.yaml").write_text("audits: {digits-generated: {models: [digits/none/ERM, digits/none/PGD]}}\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "configs/digits-generated.yaml"]
    subprocess.run([*command, "few.yaml", "--", file], cwd=workplace, check=True)
    folder = workplace / "results"
    scores = read_table(workplace / file, CATALOGUE["class_scores"])
    assert set(scores["n"]) == {1000}
    assert scores["label_error_rate"].between(0, 0.2).all()
    rates = json.loads((folder / "generated/digits-generated.json").read_text())["label_error_rate"]
    one = scores[(scores["model"] == "ERM") & (scores["measure"] == "clean")].sort_values("class_index")
    right = np.rint(1000 * one["value"].to_numpy())
    # Clopper and Pearson's lower limit, an alpha of .05 shared by ten classes and two sides, then the wrong labels
    low = stats.beta.ppf(0.05 / 20, right, 1000 - right + 1)
    assert one["low"].to_numpy() == pytest.approx(np.maximum((low - rates) / (1 - np.array(rates)), 0), abs=1e-9)


def test_commands_that_are_not_run_here_are_run_by_ci():
    ci = (ROOT / ".ci/run").read_text()
    assert all(command in ci for command in RUN_ELSEWHERE)


def test_ci_runs_every_file_of_tests():
    """pytest leaves out folders that a folder around them, named beside them, has left out."""
    ci = (ROOT / ".ci/run").read_text()
    assert re.search("^make test-slurm", ci, re.MULTILINE)
    (arguments,) = re.findall('^make test ARGS="(.*)"', ci, re.MULTILINE)
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "--numprocesses=0", *arguments.split()]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    collected = {line.partition("::")[0] for line in listed.splitlines() if "::" in line}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert collected == {file for file in files if not file.startswith("tests/slurm/")}


# Those of docs/notebook.md share their names: tests/gfscore/notebook/test_document.py.
PYTHON = [block for block in blocks("python") if not block.id.startswith("notebook.md")]


@pytest.mark.parametrize("code", PYTHON)
def test_every_python_block_runs(code, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)


def test_arrays_are_fetched_as_documented(workplace):
    """The first dataset of its page, with a file as the page describes."""
    example = next(p.values[0] for p in blocks("yaml") if "data/mine.npz" in p.values[0])
    audit = "audits: {mine: {dataset: mine, models: [given.npy]}}\n"
    (workplace / "mine.yaml").write_text(example + audit)
    (workplace / "data").mkdir(exist_ok=True)
    labels = np.repeat(np.arange(10), 2)
    np.savez(
        workplace / "data/mine.npz",
        x=np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8),
        y=labels,
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "mine.yaml"]
    subprocess.run([*command, "--", "results/datasets/mine.json"], cwd=workplace, check=True)
    found = json.loads((workplace / "results/datasets/mine.json").read_text())
    assert found["image_shape"] == [3, 8, 8] and found["classes"] == list("0123456789")


def test_the_audit_of_logits_runs_as_documented(workplace):
    """The entries of that page, with files as it describes, and its command."""
    page = (ROOT / "docs/audit-logits.md").read_text()
    entries = {}
    for block in re.findall(r"^```yaml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        entries = laid_over(entries, yaml.safe_load(block))
    (workplace / "mine.yaml").write_text(yaml.safe_dump(entries))
    labels = np.repeat(np.arange(3), 40)
    logits = np.random.default_rng(0).normal(size=(120, 3)) + 3 * np.eye(3)[labels]
    np.save(workplace / "mine_labels.npy", labels)
    np.save(workplace / "first.npy", logits)
    command = next(line for line in page.splitlines() if line == "make audit CONFIG=mine.yaml")
    without_figures = os.environ | {"ARGS": "--omit-from plot_figures"}

    def said(line):
        done = subprocess.run(
            ["bash", "-c", line], cwd=workplace, env=without_figures, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    code, text = said(command)
    assert code == 0, text
    assert "cat" in (workplace / "results/audits/mine/report.html").read_text()
    gate = next(line for line in page.splitlines() if line == ".venv/bin/gfscore gate mine")
    assert {command, gate} <= set((ROOT / "docs/add-a-model.md").read_text().splitlines())

    code, text = said(gate)
    assert code == 0 and text.startswith("mine: PASS: ")
    entries["audits"]["mine"]["gate"][0]["at_least"] = 1.2
    (workplace / "mine.yaml").write_text(yaml.safe_dump(entries))
    assert said(command)[0] == 0, "an audit reports"
    code, text = said(gate)
    assert code == 1 and text.startswith("mine: FAIL: "), "a threshold that no class reaches closes the gate"
    # Another file than was judged.
    np.save(workplace / "first.npy", np.full_like(logits, np.nan))
    code, text = said(gate)
    assert code == 3 and "first.npy: not the file" in text
    assert said(command)[0] != 0
    assert said(gate)[0] == 3, "and no verdict of an earlier run stands after one that failed"


def headings(document):
    """Headings of a document as the ends of links name them."""
    text = re.sub("```.*?```", "", document.read_text(), flags=re.DOTALL)
    titles = re.findall("^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_links_pictures_and_headings_exist():
    for document in DOCUMENTS:
        for target, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", document.read_text()):
            if "://" not in target:
                path = document.parent / target if target else document
                assert path.exists(), f"{document.name}: {target}"
                assert not heading or heading in headings(path), f"{document.name}: {target}#{heading}"
