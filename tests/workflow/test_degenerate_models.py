"""Models at the ends of what can be audited, and a chart that fails: there is a verdict and a page of each."""

import json

import numpy as np
import pytest
import yaml

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(40)]

CLASSES = [f"class {index}" for index in range(10)]
LABELS = np.arange(300) % 10
LOGITS = {
    "equal": np.zeros((300, 10)),
    "wrong": 5.0 * np.eye(10)[(LABELS + 1) % 10] + np.random.default_rng(0).normal(0, 0.1, (300, 10)),
    "perfect": 80.0 * np.eye(10)[LABELS],
}
"""All logits equal; never right; always right, by margins at which the scores saturate."""
VERDICTS = {"equal": "FAIL", "wrong": "FAIL", "perfect": "PASS"}

BROKEN = """
def failing(subject):
    return 1 / 0
"""
"""Data of a chart that cannot be drawn."""


@pytest.fixture(scope="module")
def audited(fresh_copy):
    """A copy in which one run audited the three models, with a chart that always fails."""
    repository = fresh_copy()
    np.save(repository.path / "labels.npy", LABELS)
    for name, logits in LOGITS.items():
        np.save(repository.path / f"{name}.npy", logits.astype(np.float32))
    gate = [{"measure": "clean", "at_least": 0.5}]
    config = {
        "datasets": {"made": {"source": "labels", "path": "labels.npy", "classes": CLASSES}},
        "audits": {name: {"dataset": "made", "models": [f"{name}.npy"], "gate": gate} for name in LOGITS},
    }
    (repository.path / "three.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    example = repository.read("docs/examples/class_spread.py")
    chart = example.replace("class_spread", "class_failing").replace("data=spread", "data=failing")
    chart = chart.replace("\n\nCHART = ", f"\n{BROKEN}\n\nCHART = ").replace("Spread of the models by class", "Failing")
    (repository.path / "workflow_scripts/gfscore/show/charts/class_failing.py").write_text(chart)
    repository.snakemake("--configfile", "three.yaml", environment={"GFSCORE_STRICT_CHARTS": ""})
    return repository


@pytest.mark.parametrize("name", LOGITS)
def test_each_has_a_verdict_a_page_and_every_figure_but_the_one_that_fails(audited, name):
    folder = audited.path / f"results/audits/{name}"
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == VERDICTS[name]
    assert (folder / "figures/rdi_concentration_great-softmax.svg").is_file()
    missing = {path.name for path in (folder / "figures").glob("*.not-drawn.txt")}
    assert missing == {f"class_failing_{measure}.not-drawn.txt" for measure in ("clean", "great-softmax")}
    log = audited.read(f"results/logs/plot_figures/{name}.log")
    page = (folder / "report.html").read_text()
    for text in (log, page):
        assert "Failing of clean: not drawn" in text and "ZeroDivisionError" in text


def test_where_charts_are_tested_the_step_fails(audited):
    target = "results/audits/perfect/figures"
    done = audited.snakemake("--configfile", "three.yaml", "--forcerun", "plot_figures", "--", target, check=False)
    assert done.returncode and "ZeroDivisionError" in done.text
