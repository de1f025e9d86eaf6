"""A measure, an attack, a source of models, a chart is one file each: the documents' examples, added, run, removed."""

import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import yaml

from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from made import gate_rule
from small_audits import small_audit, trained_for_one_epoch
from workflow.conftest import OVERLAY, SMALL

pytestmark = pytest.mark.workflow

FILE = "workflow_scripts/gfscore/measures/flips.py"


def audit_by(repository, *measures):
    """Lay other measures, of the two models that have a network, over the small audit."""
    given = yaml.safe_load(repository.read(OVERLAY))
    given["measures"] = {name: {"kind": "flips"} for name in measures}
    given["audits"]["one"] |= {
        "models": ["one/none/ERM", "one/none/Network"],
        "measures": ["clean", "great-softmax", *measures],
        "gate": [gate_rule((*measures, "clean")[0], at_least=0.1)],
    }
    (repository.path / OVERLAY).write_text(yaml.safe_dump(given, sort_keys=False))


def test_a_new_kind_is_one_file(small):
    (example,) = re.findall(r"^```python\n(\"\"\"Accuracy under.*?)^```", small.read("docs/measures.md"), re.M | re.S)
    audit_by(small, "flipped")
    refused = small.snakemake(*SMALL, "--dry-run", check=False)
    assert refused.returncode and "kind 'flips' is unknown" in refused.text

    (small.path / FILE).write_text(example)
    rules = small.ran(*SMALL)
    assert small.jobs_of_models(rules) == Counter(measure_model=2), "what others measured must stand"

    results = small.path / "results"
    scores = read_table(results / "audits/one/class_scores.parquet", CATALOGUE["class_scores"])
    flipped = scores[scores["measure"] == "flipped"]
    assert len(flipped) == 20 and flipped["value"].between(0, 1).all() and (flipped["low"] <= flipped["high"]).all()
    assert "Accuracy under horizontal flips" in small.read("results/audits/one/report.html")
    assert "flipped" in small.read("results/audits/one/verdict.json")
    subprocess.run([sys.executable, "tools/write_measures_page.py"], cwd=small.path, check=True)
    assert "| `flips` | 1 if its mirror image" in small.read("docs/measures.md")

    (small.path / FILE).unlink()
    audit_by(small)
    small.snakemake(*SMALL, "--omit-from", "plot_figures")
    scores = read_table(results / "audits/one/class_scores.parquet", CATALOGUE["class_scores"])
    assert "flipped" not in set(scores["measure"])


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


def test_a_new_chart_is_one_file(fresh_copy):
    """It is drawn of the tables that are there; nothing is measured or tabulated again."""
    repository = fresh_copy()
    config = repository.config()
    given = {
        "run": ["new"],
        "datasets": {"new": config["datasets"]["digits"] | {"models_of": "new"}},
        "models": {"new": {"none": trained_for_one_epoch(config, ["ERM", "PGD_mixer"])}},
        "audits": {"new": small_audit(config, dataset="new", models=["new/none/ERM", "new/none/PGD_mixer"])},
    }
    (repository.path / "new.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
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


def test_a_new_attack_is_one_file(fresh_copy):
    """It is run by a measure, named in its table, and stands in schema and docs."""
    repository = fresh_copy()
    config = repository.config()
    attacks = [{"name": "corners", "tries": 20}, {"name": "fgsm"}]
    audit = small_audit(config, dataset="new", models=["new/none/ERM"], measures=("clean", "great-softmax", "cornered"))
    given = {
        "run": ["new"],
        "datasets": {"new": config["datasets"]["digits"] | {"models_of": "new"}},
        "models": {"new": {"none": trained_for_one_epoch(config, ["ERM"])}},
        "measures": {"cornered": {"kind": "adversarial", "norm": "linf", "eps": 0.2, "attacks": attacks}},
        "audits": {"new": audit},
    }
    (repository.path / "new.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    options = ("--configfile", "config.yaml", "new.yaml")
    refused = repository.snakemake(*options, "--dry-run", check=False)
    assert refused.returncode and "name 'corners' is unknown" in refused.text

    attack = repository.path / "workflow_scripts/gfscore/attacks/corners.py"
    attack.write_text(repository.read("docs/examples/corners.py"))
    samples = "results/samples/cornered/new/none/ERM.parquet"
    repository.snakemake(*options, "--", samples)
    found = read_table(repository.path / samples, table_of("adversarial"))
    assert {"corners", "fgsm"} <= set(found["attack"].dropna()) <= {"corners", "fgsm", "clean"}
    for tool, page, line in (
        ("write_measures_page", "docs/measures.md", "| `attacks`: `corners` | tries: `100` |"),
        ("write_config_schema", "rules/schemas/config.schema.json", '"const": "corners"'),
    ):
        subprocess.run([sys.executable, f"tools/{tool}.py"], cwd=repository.path, check=True)
        assert line in repository.read(page)

    attack.unlink()
    assert "name 'corners' is unknown" in repository.snakemake(*options, "--dry-run", check=False).text
