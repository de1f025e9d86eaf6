"""Audit the real networks at hand and write what is kept of it: studies/reference/real_networks.csv and .json.

    GFSCORE_TEST_DATA=../shared/data .venv/bin/python studies/audit_real_networks.py FOLDER

FOLDER gets a copy of the repository with the audits' results, and is taken up where it was left. Then
studies/write_reproduction_page.py and studies/write_findings_page.py make the pages of it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("workflow_scripts", "benchmarks", "tests"))]

import yaml  # noqa: E402
from dag_scale import copy_of_the_repository  # noqa: E402

from gfscore.core.files import write_text  # noqa: E402
from gfscore.networks.architecture_files import FOLDER_VARIABLE  # noqa: E402
from helpers.real_audits import ARCHITECTURES  # noqa: E402
from studies.real_networks.audits import AUDITS  # noqa: E402
from studies.real_networks.evidence import class_table  # noqa: E402
from studies.real_networks.measurements import measurements  # noqa: E402

DATA = Path(os.environ.get("GFSCORE_TEST_DATA", ROOT.parent / "shared" / "data")).resolve()
"""Absolute: the audits run in another folder."""


def run_audits(folder, cores):
    """Make every audit in a copy of the repository there."""
    copy_of_the_repository(folder)
    for names, configuration in AUDITS.items():
        file = folder / f"{names[0]}.yaml"
        file.write_text(yaml.safe_dump(configuration(DATA), sort_keys=False), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--configfile", file.name]
        command += ["--config", f"run=[{','.join(names)}]", "--rerun-incomplete", "--omit-from", "plot_figures"]
        subprocess.run(command, cwd=folder, env=os.environ | {FOLDER_VARIABLE: str(ARCHITECTURES)}, check=True)


def write_reference(folder):
    """Write the results of the audits there, numbers to nine significant digits: some scores are below 1e-10."""
    reference = ROOT / "studies/reference"
    write_text(reference / "real_networks.csv", class_table(folder).to_csv(index=False, float_format="%.9g"))
    text = json.dumps(measurements(folder, DATA))
    numbers = json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}"))
    write_text(reference / "real_networks.json", json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the audits are made")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    run_audits(arguments.folder.resolve(), arguments.cores)
    write_reference(arguments.folder.resolve())
