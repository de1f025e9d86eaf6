"""Speed, strength and memory side by side: python benchmarks/run.py [NAME ...].

Figures go to results.json, and into the table of README.md beside it.
Ratios, not seconds: higher is better, and the target beside each is what is wanted. Times are of the processor (by the
clock where work is to overlap), taken in turns with what they are compared with, so that other work on the machine
disturbs both alike. Without names all benchmarks run; with names the figures of the others stay as they were.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS, README = HERE / "results.json", HERE / "README.md"
sys.path[:0] = [str(HERE), str(HERE.parent / "workflow_scripts")]

import numpy as np
from measured import missed, put_into

from gfscore.workflow.jobs import VARIABLES, set_job_variables


def of_module(name):
    """Rows that a module beside this one measures in this process."""
    return lambda: import_module(name).rows()


def of_script(name, *arguments):
    """Rows that a script beside this one writes to the file that --output names."""

    def rows():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.json"
            subprocess.run([sys.executable, HERE / f"{name}.py", *arguments, "--output", path], check=True)
            return json.loads(path.read_text())

    return rows


def planning():
    """Time of the planning of many models."""
    dag_scale = import_module("dag_scale")
    return (row for models in dag_scale.TARGETS for row in dag_scale.measure(models))


BENCHMARKS = {
    "score": of_module("scores"),
    "extraction": of_module("extraction"),
    "gpu": of_module("gpu"),
    "forwards": of_module("forwards"),
    "storage": of_module("storage"),
    "growth": of_module("growth"),
    "projection": of_module("projection"),
    "attacks": of_script("attacks"),
    "minimal_norm": of_script("minimal_norm"),
    "remedy": of_script("remedy"),
    "regression_gate": of_module("regression_gate"),
    "proven": of_script("proven"),
    "from_logits": of_module("from_logits"),
    "onboarding": of_module("onboarding"),
    "dag_scale": planning,
    "house": of_module("house"),
    "page": of_module("page"),
    "notebook": of_module("notebook"),
    "real_measures": lambda: import_module("real_measures").measure(None),
}
"""Functions that yield rows (name, ratio, target, unit, detail), by the name that chooses them."""


def described(row):
    """One row in words."""
    target = "" if row["target"] is None else f" (wanted {row['target']:.3g}{', MISSED' if missed(row) else ''})"
    return f"{row['name']}: {row['ratio']:.3g} {row['unit']}{target}\n    {row['detail']}"


def main():
    """Run what is asked for, print each row and put it into the file of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(BENCHMARKS))
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the figures go")
    given = parser.parse_args()
    unknown = set(given.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"
    known = json.loads(given.output.read_text()) if given.output.exists() else []
    for name in given.names or BENCHMARKS:
        rows = []
        for row in BENCHMARKS[name]():
            rows.append({"benchmark": name, **row, "machine": machine})
            print(described(row), flush=True)
        if not rows:
            print(f"{name}: this machine cannot measure it; figures of another stay as they are")
            continue
        order = list(BENCHMARKS)
        known = [row for row in known if row.get("benchmark") not in (name, None)] + rows
        known.sort(key=lambda row: order.index(row["benchmark"]))
        given.output.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        if given.output == RESULTS:
            README.write_text(put_into(README.read_text(encoding="utf-8"), known), encoding="utf-8")


if __name__ == "__main__":
    if not VARIABLES.keys() <= os.environ.keys():
        # As in a job: the C library reads these when a process starts.
        set_job_variables()
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()
