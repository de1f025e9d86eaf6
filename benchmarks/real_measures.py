"""Every measure on four real robust classifiers and 1,017 images: python benchmarks/real_measures.py.

The audit is the one that tests/workflow/test_real_measures.py makes on 100 images. Its cost table, what each measure
takes beside the attack-free score, goes into the figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / folder) for folder in ("workflow_scripts", "tests"))]

import yaml
from dag_scale import copy_of_the_repository

from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.real_audits import ARCHITECTURES, MEASURES, every_measure

# Absolute: the audit runs in another folder.
DATA = Path(os.environ.get("GFSCORE_TEST_DATA", HERE.parents[1] / "shared" / "data")).resolve()
LONGEST = 3600
"""Seconds that the audit may take on two cores."""


def measure(samples):
    """Rows for benchmarks/results.json: the whole audit, then each measure's cost over the attack-free score's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_repository(folder)
        (folder / "real.yaml").write_text(yaml.safe_dump(every_measure(DATA, samples), sort_keys=False))
        started = time.perf_counter()
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "real.yaml"]
        subprocess.run(command, cwd=folder, env=os.environ | {FOLDER_VARIABLE: str(ARCHITECTURES)}, check=True)
        taken = time.perf_counter() - started
        costs = read_table(folder / "results/audits/every-measure/costs.parquet", CATALOGUE["costs"])
    whole = {
        "name": "every measure on four real classifiers",
        "ratio": LONGEST / taken,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"{samples or 1017:,} images, {taken / 60:.1f} min, 60 allowed",
    }
    return [whole, *beside_the_score(costs)]


def beside_the_score(costs):
    """Core-seconds per sample of the attack-free score, its logits included, over those of each costly measure."""
    logits = costs[costs["step"] == "extract_logits"]["cpu_s"].median()
    per_sample = costs.assign(each=costs["cpu_s"] / costs["samples"]).groupby("measure")["each"].median()
    score = per_sample["great-softmax"] + logits / costs["samples"].max()
    return [
        {
            "name": f"cost of the attack-free score over that of {measure}",
            "ratio": score / per_sample[measure],
            "target": None,
            "unit": "of its core-seconds per sample",
            "detail": f"core-ms per sample, start-up included: {1e3 * score:.2f} and {1e3 * per_sample[measure]:.1f}, "
            f"{per_sample[measure] / score:.1f} times as much",
        }
        for measure in MEASURES
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, help="how many images, drawn at random; all 1,017 by default")
    print(json.dumps(measure(parser.parse_args().images), indent=1))
