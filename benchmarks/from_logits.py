"""Time of audits from logits, start of jobs included: python benchmarks/from_logits.py.

A temporary copy of the repository holds made logits. What is timed is Snakemake on two cores: the tables of 22 models,
whole audits with their pages, and the same audit once there is one model more, or nothing to do.
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

CORES = 2
TABLES = ("results/audits/made/class_scores.parquet", "results/audits/made/calibration.parquet")
CASES = {
    "score stage of 22 models": {"models": 22, "samples": 10_000, "wanted": 60, "measures": ["great-softmax"]},
    "house: 29 models of 1,017 samples": {"models": 29, "samples": 1_017, "wanted": 60},
    "house: 500 models of 300 samples": {"models": 500, "samples": 300, "wanted": 300},
}
"""Models, samples of ten classes, seconds wanted and, but for an audit's own choice, measures."""

ONE_MORE, NOTHING = "one model more", "nothing to do"
AGAIN = {"house: 500 models of 300 samples": {ONE_MORE: 60, NOTHING: 10}}
"""Seconds wanted for the same audit again, with a model more and as it is."""


def overlay(folder, models, samples, measures=None):
    """Settings of an audit of made logits, whose files are written to the folder where they are not there."""
    labels = (np.arange(samples) % 10).astype(np.int32)
    np.save(folder / "labels.npy", labels)
    for index in range(models):
        path = folder / f"{index}.npy"
        if not path.exists():
            logits = np.random.default_rng(index).normal(size=(samples, 10)).astype(np.float32)
            logits[np.arange(samples), labels] += 2 + index / models
            np.save(path, logits)
    audit = {"dataset": "made", "gate": [{"measure": "great-softmax", "at_least": 0.1}]}
    return {
        "audits": {"made": audit | ({"measures": measures} if measures else {})},
        "datasets": {"made": {"path": "labels.npy", "classes": [f"class {k}" for k in range(10)]}},
        "models": {"made": {"none": {f"model_{index:03d}": {"path": f"{index}.npy"} for index in range(models)}}},
    }


def measure(name):
    """Rows for benchmarks/results.json of one of CASES."""
    case = dict(CASES[name])
    wanted = case.pop("wanted")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_of_the_repository(folder)
        _write(folder, **case)
        snakemake(folder, "--configfile", "made.yaml", "--", "results/datasets/made.json")
        targets = ("--", *TABLES) if "measures" in case else ()
        yield _timed(name, folder, targets, wanted)
        for again, seconds in AGAIN.get(name, {}).items():
            if again == ONE_MORE:
                _write(folder, **case | {"models": case["models"] + 1})
            yield _timed(f"{name}, {again}", folder, targets, seconds)


def _write(folder, **case):
    (folder / "made.yaml").write_text(yaml.safe_dump(overlay(folder, **case), sort_keys=False))


def _timed(name, folder, targets, wanted):
    before = _processor_time()
    text, seconds, peak = snakemake(folder, "--configfile", "made.yaml", *targets)
    # Other work on the machine lengthens the time on the clock, which says nothing about the steps.
    spent = (_processor_time() - before) / CORES
    jobs = next((line.split()[1] for line in text.splitlines() if line.startswith("total ")), 0)
    return {
        "name": name,
        "ratio": wanted / spent,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"{jobs} jobs, {spent:.0f} s of processor time per core of {CORES} ({seconds:.0f} s on the clock), "
        f"{wanted} s wanted; {peak:.0f} MiB in the largest process",
    }


def _processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows():
    """The rows of this module."""
    for name in CASES:
        # In a process of its own: the memory of the largest child would else be that of any benchmark before.
        run = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, check=True)
        yield from json.loads(run.stdout)


if __name__ == "__main__":
    print(json.dumps([row for name in sys.argv[1:] or CASES for row in measure(name)], indent=1))
