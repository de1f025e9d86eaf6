"""Measure, metric, attack, chart, training method, source of data or models: one file each, the documents' examples."""

import json
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml

from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import gate_rule, small_audit, trained_for_one_epoch
from workflow.conftest import OVERLAY, SMALL

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(80)]

PACKAGE = "workflow_scripts/gfscore"


def example_in(text, opening):
    """The example in Python of a page that begins with a docstring."""
    (example,) = re.findall(rf'^```python\n("""{opening}.*?)^```', text, re.M | re.S)
    return example


def write_page(repository, tool):
    subprocess.run([sys.executable, f"tools/{tool}.py"], cwd=repository.path, check=True)


def audit_by(repository, *measures, rules=()):
    """Lay other measures, of the two models that have a network, over the small audit; `rules` stand in its gate too."""
    given = yaml.safe_load(repository.read(OVERLAY))
    given["measures"] = {name: {"kind": "flips"} for name in measures}
    given["audits"]["one"] |= {
        "models": ["one/none/ERM", "one/none/Network"],
        "measures": ["clean", "great-softmax", *measures],
        "gate": [gate_rule((*measures, "clean")[0], at_least=0.1), *rules],
    }
    (repository.path / OVERLAY).write_text(yaml.safe_dump(given, sort_keys=False))


def test_a_new_measure_and_a_new_metric_are_one_file_each(small):
    """One run has both in tables, page and gate, and measures nothing else."""
    measure, metric = small.path / PACKAGE / "measures/flips.py", small.path / PACKAGE / "audit/metrics/theil.py"
    rule = gate_rule("clean", statistic="theil", at_most=1)
    audit_by(small, "flipped", rules=[rule])
    refused = small.snakemake(*SMALL, "--dry-run", check=False)
    assert refused.returncode and "kind 'flips' is unknown" in refused.text

    measure.write_text(example_in(small.read("docs/measures.md"), "Accuracy under"))
    metric.write_text(small.read("docs/examples/theil.py"))
    rules = small.ran(*SMALL, "--omit-from", "plot_figures")
    assert small.jobs_of_models(rules) == Counter(measure_model=2), "what others measured must stand"

    results = small.path / "results"
    scores = read_table(results / "audits/one/class_scores.parquet", CATALOGUE["class_scores"])
    flipped = scores[scores["measure"] == "flipped"]
    assert len(flipped) == 20 and flipped["value"].between(0, 1).all() and (flipped["low"] <= flipped["high"]).all()
    summary = pd.read_parquet(results / "audits/one/model_summary.parquet")
    fresh = summary[summary["calibration"] == "none"]
    assert len(fresh) and ((fresh["theil_low"] <= fresh["theil"]) & (fresh["theil"] <= fresh["theil_high"])).all()
    page = small.read("results/audits/one/report.html")
    assert "Accuracy under horizontal flips" in page and "Theil index</th>" in page
    judged = json.loads(small.read("results/audits/one/verdict.json"))["rules"]
    assert [(one["measure"], one["statistic"]) for one in judged] == [("flipped", "wcr"), ("clean", "theil")]
    assert "Theil index" in judged[1]["title"] and judged[1]["models"]
    write_page(small, "write_measures_page")
    write_page(small, "write_tables_page")
    assert "| `flips` | 1 if its mirror image" in small.read("docs/measures.md")
    assert "| `theil` | float64 |" in small.read("docs/tables.md")

    measure.unlink()
    metric.unlink()
    audit_by(small, rules=[rule])
    refused = small.snakemake(*SMALL, "--dry-run", check=False)
    assert refused.returncode and "statistic 'theil' is unknown" in refused.text
    audit_by(small)
    small.snakemake(*SMALL, "--omit-from", "plot_figures")
    scores = read_table(results / "audits/one/class_scores.parquet", CATALOGUE["class_scores"])
    assert "flipped" not in set(scores["measure"])
    summary = pd.read_parquet(results / "audits/one/model_summary.parquet")
    assert [*summary] == [name for name, *_ in MODEL_SUMMARY.columns]


def test_a_new_source_of_data_and_one_of_models_are_one_file_each(fresh_copy):
    """The model gets logits, and attacks, since it has gradients."""
    repository = fresh_copy()
    rng = np.random.default_rng(0)
    np.savez(repository.path / "plane.npz", weight=rng.normal(size=(10, 64)), bias=np.zeros(10))
    pixels, labels = rng.integers(0, 256, (300, 8, 8), dtype=np.uint8), np.arange(300, dtype=np.uint8) % 10
    for name, array in (("images", pixels), ("labels", labels)):
        sizes = np.array(array.shape, dtype=">i4").tobytes()
        (repository.path / name).write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
    given = {
        "run": ["planes"],
        "datasets": {"planes": {"source": "idx", "path": "images", "labels": "labels"}},
        "models": {"planes": {"none": {"Plane": {"source": "linear", "path": "plane.npz"}}}},
        "measures": {"fast": {"kind": "adversarial", "eps": 0.1, "attacks": [{"name": "fgsm"}]}},
        "audits": {"planes": {"dataset": "planes", "measures": ["clean", "great-softmax", "fast"]}},
    }
    (repository.path / "planes.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    options = ("--configfile", "planes.yaml", "--", "results/audits/planes/class_scores.parquet")
    refused = repository.snakemake(*options, check=False)
    assert refused.returncode and "source 'linear'" in refused.text and "source 'idx'" in refused.text

    data, models = (
        repository.path / PACKAGE / f"{name}.py" for name in ("images/sources/idx", "networks/sources/linear")
    )
    data.write_text(example_in(repository.read("docs/add-a-dataset.md"), "MNIST and its relatives"))
    models.write_text(repository.read("docs/examples/linear.py"))
    repository.snakemake(*options)
    scores = read_table(
        repository.path / "results/audits/planes/class_scores.parquet", CATALOGUE["class_scores"]
    ).set_index(["measure", "class_index"])["value"]
    assert (scores["fast"] <= scores["clean"]).all() and 0 < scores["clean"].mean() < 0.5
    data.unlink()
    models.unlink()
    refused = repository.snakemake(*options, check=False)
    assert refused.returncode and "source 'linear'" in refused.text and "source 'idx'" in refused.text


def test_a_new_chart_is_one_file(small):
    """It is drawn of the tables that are there; nothing is measured or tabulated again."""
    options = (*SMALL, "--until", "plot_figures")
    figures = small.path / "results/audits/one/figures"
    assert (figures / "class_heatmap_clean.svg").is_file() and not list(figures.glob("class_spread*"))
    chart = small.path / PACKAGE / "show/charts/class_spread.py"
    chart.write_text(small.read("docs/examples/class_spread.py"))
    assert set(small.ran(*options)) == {"plot_figures"}
    assert {path.suffix for path in figures.glob("class_spread_clean.*")} == {".svg", ".pdf", ".png"}
    chart.unlink()
    assert set(small.planned(*options)[0]) == {"plot_figures"}, "which empties the folder first"


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

    attack = repository.path / PACKAGE / "attacks/corners.py"
    attack.write_text(repository.read("docs/examples/corners.py"))
    samples = "results/samples/cornered/new/none/ERM.parquet"
    repository.snakemake(*options, "--", samples)
    found = read_table(repository.path / samples, table_of("adversarial"))
    assert {"corners", "fgsm"} <= set(found["attack"].dropna()) <= {"corners", "fgsm", "clean"}
    for tool, page, line in (
        ("write_measures_page", "docs/measures.md", "| `attacks`: `corners` | tries: `100` |"),
        ("write_config_schema", "rules/schemas/config.schema.json", '"const": "corners"'),
    ):
        write_page(repository, tool)
        assert line in repository.read(page)

    attack.unlink()
    assert "name 'corners' is unknown" in repository.snakemake(*options, "--dry-run", check=False).text


def test_a_new_training_method_is_one_file(fresh_copy):
    """It trains a model, and stands in schema and docs."""
    repository = fresh_copy()
    training = {"method": "FOCAL", "epochs": 1, "coefficients": {"gamma": 1}}
    given = {
        "run": ["new"],
        "datasets": {"new": repository.config()["datasets"]["digits"] | {"models_of": "new"}},
        "models": {"new": {"none": {"Focal": {"train_on": "digits-train", "training": training}}}},
        "audits": {"new": {"dataset": "new", "measures": ["clean", "great-softmax"]}},
    }
    (repository.path / "new.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    options = ("--configfile", "config.yaml", "new.yaml")
    refused = repository.snakemake(*options, "--dry-run", check=False)
    assert refused.returncode and "FOCAL" in refused.text

    method = repository.path / PACKAGE / "training/methods/focal.py"
    method.write_text(repository.read("docs/examples/focal.py"))
    manifest = "results/trained/new/none/Focal.json"
    repository.snakemake(*options, "--", manifest)
    described = json.loads(repository.read(manifest))
    assert described["method"] == "FOCAL" and described["clean_accuracy"] > 0.2
    for tool, page, line in (
        ("write_tables_page", "docs/add-a-model.md", "| `FOCAL` | images as they are, more on those it is unsure of |"),
        ("write_config_schema", "rules/schemas/config.schema.json", '"FOCAL": "#/$defs/models/parts/Focal"'),
    ):
        write_page(repository, tool)
        assert line in repository.read(page)

    method.unlink()
    refused = repository.snakemake(*options, "--dry-run", check=False)
    assert refused.returncode and "FOCAL" in refused.text
