"""A measure, a source of models, a chart is one file each: the examples of the documents, added, run, removed."""

import json
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from small_audits import small_audit, trained_for_one_epoch

pytestmark = pytest.mark.workflow

FILE = "workflow_scripts/gfscore/measures/flips.py"
MEASURES = ("clean", "great-softmax")


@pytest.fixture(scope="module")
def repository(fresh_copy):
    """An audit of two models without the new measure."""
    repository = fresh_copy()
    overlay(repository, MEASURES)
    repository.snakemake("--configfile", "config.yaml", "new.yaml")
    return repository


def overlay(repository, measures):
    """Lay an audit by these measures over the configuration."""
    config = repository.config()
    names = ["ERM", "PGD_mixer"]
    audit = small_audit(config, dataset="new", models=[f"new/none/{name}" for name in names], measures=measures)
    given = {
        "run": ["new"],
        "datasets": {"new": config["datasets"]["digits"] | {"models_of": "new"}},
        "models": {"new": {"none": trained_for_one_epoch(config, names)}},
        "measures": {name: {"kind": "flips"} for name in measures if name == "flipped"},
        "audits": {"new": audit},
    }
    (repository.path / "new.yaml").write_text(yaml.safe_dump(given, sort_keys=False))


def test_a_new_kind_is_one_file(repository):
    example = re.search(r"^```python\n(\"\"\"Accuracy under.*?)^```", repository.read("docs/measures.md"), re.M | re.S)[
        1
    ]
    overlay(repository, (*MEASURES, "flipped"))
    refused = repository.snakemake("--configfile", "config.yaml", "new.yaml", "--dry-run", check=False)
    assert refused.returncode and "kind 'flips' is unknown" in refused.text

    (repository.path / FILE).write_text(example)
    rules = repository.ran("--configfile", "config.yaml", "new.yaml")
    assert repository.jobs_of_models(rules) == Counter(measure_model=2), "what others measured must stand"

    results = repository.path / "results"
    scores = read_table(results / "audits/new/class_scores.parquet", CATALOGUE["class_scores"])
    flipped = scores[scores["measure"] == "flipped"]
    assert len(flipped) == 20 and flipped["value"].between(0, 1).all() and (flipped["low"] <= flipped["high"]).all()
    assert "Accuracy under horizontal flips" in repository.read("results/audits/new/report.html")
    verdict = json.loads(repository.read("results/audits/new/verdict.json"))
    assert "flipped" in json.dumps(verdict)
    subprocess.run([sys.executable, "tools/write_measures_page.py"], cwd=repository.path, check=True)
    assert "| `flips` | 1 if its mirror image" in repository.read("docs/measures.md")

    (repository.path / FILE).unlink()
    overlay(repository, MEASURES)
    repository.snakemake("--configfile", "config.yaml", "new.yaml")
    assert "Accuracy under horizontal flips" not in repository.read("results/audits/new/report.html")


def test_a_new_source_of_models_is_one_file(fresh_copy):
    """Its model gets logits, and attacks, since it has gradients."""
    repository = fresh_copy()
    rng = np.random.default_rng(0)
    np.savez(repository.path / "plane.npz", weight=rng.normal(size=(10, 64)), bias=np.zeros(10))
    given = {
        "run": ["planes"],
        "datasets": {"planes": {"source": "digits"}},
        "models": {"planes": {"none": {"Plane": {"source": "linear", "path": "plane.npz"}}}},
        "measures": {"fast": {"kind": "adversarial", "eps": 0.1, "attacks": [{"name": "fgsm"}]}},
        "audits": {"planes": {"dataset": "planes", "measures": ["clean", "great-softmax", "fast"]}},
    }
    (repository.path / "planes.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    options = ("--configfile", "planes.yaml", "--", "results/audits/planes/class_scores.parquet")
    refused = repository.snakemake(*options, check=False)
    assert refused.returncode and "source 'linear'" in refused.text

    source = repository.path / "workflow_scripts/gfscore/networks/sources/linear.py"
    source.write_text(repository.read("docs/examples/linear.py"))
    repository.snakemake(*options)
    scores = read_table(
        repository.path / "results/audits/planes/class_scores.parquet", CATALOGUE["class_scores"]
    ).set_index(["measure", "class_index"])["value"]
    assert (scores["fast"] <= scores["clean"]).all() and 0 < scores["clean"].mean() < 0.5
    source.unlink()
    assert repository.snakemake(*options, check=False).returncode


def test_a_new_chart_is_one_file(repository):
    """It is drawn of the tables that are there; nothing is measured or tabulated again."""
    overlay(repository, MEASURES)
    options = ("--configfile", "config.yaml", "new.yaml", "--", "results/audits/new/figures")
    repository.snakemake(*options)
    figures = repository.path / "results/audits/new/figures"
    assert (figures / "class_heatmap_clean.svg").is_file() and not list(figures.glob("class_spread*"))
    chart = repository.path / "workflow_scripts/gfscore/show/charts/class_spread.py"
    chart.write_text(repository.read("docs/examples/class_spread.py"))
    assert set(repository.ran(*options)) == {"plot_figures"}
    assert {path.suffix for path in figures.glob("class_spread_clean.*")} == {".svg", ".pdf", ".png"}
    chart.unlink()
    repository.snakemake(*options)
    assert not list(figures.glob("class_spread*"))
