"""Time and memory that Snakemake needs to plan an audit of many models, and to find nothing left to do.

    python benchmarks/dag_scale.py 190 2000

No model is run: every file that the plan names is made empty and marked as up to date, with the settings that it would
have been made with, so that finding nothing to do compares the same things as after a real run.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {190: {"dry run": 10, "nothing to do": 10}, 2000: {"dry run": 90, "nothing to do": 90}}
"""Seconds wanted, on two cores."""

MEASURES = [
    *("clean", "great-softmax", "great-sigmoid", "great-sigmoid-of-softmax", "great-softmax-of-sigmoid"),
    *("adversarial-linf-8of255", "adversarial-l2-0.5", "targeted-linf-8of255", "targeted-l2-0.5", "minimal-l2"),
    *("minimal-linf", "certified-0.25", "corruption"),
    *("probabilistic-linf_ball-8of255-0.01", "probabilistic-l2_ball-0.5-0.01"),
]
"""Every kind of measure, those with a norm or an activation in each."""


def made_config(models):
    """An audit of so many checkpoints of others by every measure."""
    names = [f"model_{index:04d}" for index in range(models)]
    shared = {"architecture": "torchvision.models:resnet18"}
    entries = {name: {"path": f"checkpoints/{name}.pt"} for name in names}
    return {
        "datasets": {"many": {"source": "cifar"}},
        "models": {"many": {"defaults": shared, "Linf": entries}},
        "audits": {"many": {"dataset": "many", "measures": MEASURES}},
    }


def copy_of_the_repository(folder):
    """What git tracks or would track, without results."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())


def snakemake(folder, *arguments):
    """Run Snakemake there; its output, seconds, and peak memory in MiB of the largest process so far."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return done.stdout + done.stderr, time.perf_counter() - started, peak


def make_every_file(folder, plan):
    """Make each output that a dry run names, and each checkpoint, so that --touch can mark it."""
    for line in re.findall(r"^    output: (.+)$", plan, flags=re.MULTILINE):
        for name in line.split(", "):
            path = folder / name
            if path.suffix:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            else:
                path.mkdir(parents=True, exist_ok=True)


def measure(models):
    """Rows for benchmarks/results.json about so many models."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_repository(folder)
        (folder / "config.yaml").write_text(yaml.safe_dump(made_config(models), sort_keys=False))
        (folder / "data/cifar10").mkdir(parents=True)
        plan, dry, memory = snakemake(folder, "--dry-run")
        jobs = int(re.search(r"^total +(\d+)", plan, flags=re.MULTILINE).group(1))
        # The one file that has to be real: results that state other settings are refused.
        snakemake(folder, "results/audits/many/config.yaml", "--quiet", "all")
        make_every_file(folder, plan)
        snakemake(folder, "--touch", "--quiet", "all")
        text, nothing, memory_of_nothing = snakemake(folder, "--dry-run")
        if "Nothing to be done" not in text:
            raise SystemExit(f"after marking every file there is still something to do:\n{text[-2000:]}")
    rows = []
    for what, seconds, peak in (("dry run", dry, memory), ("nothing to do", nothing, memory_of_nothing)):
        wanted = TARGETS.get(models, {}).get(what)
        rows.append(
            {
                "name": f"house: planning {models:,} models, {what}",
                "ratio": wanted / seconds if wanted else None,
                "target": 1 if wanted else None,
                "unit": "seconds wanted over seconds needed",
                "detail": f"{jobs:,} jobs, {seconds:.1f} s, {peak:.0f} MiB",
            }
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=int, nargs="*", default=[190, 2000], help="numbers of models")
    print(json.dumps([row for models in parser.parse_args().models for row in measure(models)], indent=1))
