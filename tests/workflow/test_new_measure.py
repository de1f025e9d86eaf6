"""A kind of measure is one file: the example of docs/measures.md, added to a copy of the repository, run, removed."""

import json
import re
import subprocess
import sys
from collections import Counter

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
