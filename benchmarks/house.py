"""The demo whole, and an attack on a real network beside other work: python benchmarks/house.py."""

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
from real_measures import DATA

from gfscore.networks.architecture_files import FOLDER_VARIABLE
from helpers.real_audits import ARCHITECTURES, every_measure

CORES, LONGEST_DEMO, MOST_BESIDE = 2, 180, 1.5
"""Cores; seconds that the demo may take; how much longer an attack may take beside work on all cores but one."""

NETWORK = "cifar10-real/Linf/cnn_a_adv"
COST = f"results/costs/measure_model/adversarial-linf/{NETWORK}.json"
BUSY = "while True: pass"


def demo():
    """Row of the demo by the command of the README, its environment there."""
    with tempfile.TemporaryDirectory() as folder:
        copy_of_the_repository(Path(folder))
        venv = Path(sys.executable).parent.parent
        started = time.perf_counter()
        command = ["make", "audit", f"VENV={venv}", f"CORES={CORES}"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        taken = time.perf_counter() - started
    return {
        "name": "house: demo",
        "ratio": LONGEST_DEMO / taken,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"make audit on {CORES} cores, packages there: {taken:.0f} s, {LONGEST_DEMO} s wanted",
    }


def attack_beside_work():
    """Row of the time of an attack beside busy processes on all cores but one, over its time alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_repository(folder)
        (folder / "real.yaml").write_text(yaml.safe_dump(every_measure(DATA, None), sort_keys=False))
        _attacked(folder)  # its images and checkpoint are read once
        alone = _attacked(folder)
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() - 1)]
        try:
            beside = _attacked(folder)
        finally:
            for process in busy:
                process.kill()
    return {
        "name": "house: attack on a real network beside other work",
        "ratio": MOST_BESIDE * alone / beside,
        "target": 1,
        "unit": "of 1.5 times its time alone over its time beside",
        "detail": f"adversarial-linf of cnn_a_adv, 1,017 images: {alone:.1f} s alone, {beside:.1f} s beside "
        f"{len(busy)} busy of {os.cpu_count()} cores",
    }


def _attacked(folder):
    # Seconds of the job; its table is made anew.
    table = f"results/samples/adversarial-linf/{NETWORK}.parquet"
    command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), "--configfile", "real.yaml"]
    command += ["--forcerun", "measure_model", "--", table]
    subprocess.run(
        command, cwd=folder, env=os.environ | {FOLDER_VARIABLE: str(ARCHITECTURES)}, check=True, capture_output=True
    )
    return json.loads((folder / COST).read_text())["wall_s"]


def rows():
    """The rows of this module."""
    yield demo()
    yield attack_beside_work()


if __name__ == "__main__":
    print(json.dumps(list(rows()), indent=1))
