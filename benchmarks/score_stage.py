"""Time of the score stage of 22 models from their logits, start of jobs included: python benchmarks/score_stage.py.

A temporary copy of the repository holds made logits, 10,000 x 10 per model. What is timed is Snakemake on two cores,
from logits that are there and checked to class scores with intervals and every calibrated temperature.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml
from dag_scale import copy_of_the_repository, snakemake

MODELS = 22
CORES = 2
WANTED = 60
"""Seconds."""

GATE = {"measure": "great-softmax", "at_least": 0.1}


def overlay(folder):
    """Settings of an audit of made logits, whose files are written to the folder."""
    rng = np.random.default_rng(0)
    labels = (np.arange(10_000) % 10).astype(np.int32)
    np.save(folder / "labels.npy", labels)
    entries = {}
    for index in range(MODELS):
        logits = rng.normal(size=(len(labels), 10)).astype(np.float32)
        logits[np.arange(len(labels)), labels] += 2 + index / 20
        np.save(folder / f"{index}.npy", logits)
        entries[f"model_{index:02d}"] = {"path": f"{index}.npy"}
    return {
        "audits": {"made": {"dataset": "made", "measures": ["great-softmax"], "gate": [GATE]}},
        "datasets": {"made": {"path": "labels.npy", "classes": [f"class {k}" for k in range(10)]}},
        "models": {"made": {"none": entries}},
    }


def measure():
    """Row for benchmarks/results.json."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_repository(folder)
        given = overlay(folder)
        (folder / "made.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
        checks = [f"results/checks/made/none/{model}.json" for model in given["models"]["made"]["none"]]
        snakemake(folder, "--configfile", "made.yaml", "--", *checks)
        wanted = [f"results/audits/made/{table}.parquet" for table in ("class_scores", "calibration")]
        before = _processor_time()
        text, seconds, peak = snakemake(folder, "--configfile", "made.yaml", "--", *wanted)
    # Other work on the machine lengthens the time on the clock, which says nothing about the steps.
    spent = (_processor_time() - before) / CORES
    jobs = next(line.split()[1] for line in text.splitlines() if line.startswith("total "))
    return {
        "name": f"score stage of {MODELS} models",
        "ratio": WANTED / spent,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"{jobs} jobs, {spent:.0f} s of processor time per core of {CORES} ({seconds:.0f} s on the clock), "
        f"{WANTED} s wanted; {peak:.0f} MiB in the largest process",
    }


def _processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows():
    """The one row of this module."""
    # In a process of its own: the memory of the largest child would else be that of any benchmark before.
    run = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, check=True)
    yield json.loads(run.stdout)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
