"""Audits without files: time of the import, and of an audit of 17 models, from logits to their comparison."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "workflow_scripts"

REPEATS = 3
AUDIT_SECONDS = 5
IMPORT_SECONDS = 1

IMPORT = """
import time
start = time.process_time()
from gfscore import audit_logits, audit_values
print(time.process_time() - start)
"""

AUDIT = """
import time
import numpy as np
from gfscore import audit_logits

rng = np.random.default_rng(0)
labels = np.arange(10_000) % 10
logits = {}
for model in range(17):
    logits[f"model {model}"] = rng.normal(size=(10_000, 10)).astype(np.float32)
    logits[f"model {model}"][np.arange(10_000), labels] += 1 + model / 10
start = time.process_time()
audit = audit_logits(logits, labels)
assert len(audit.classes) == 170 and len(audit.metrics) == 17
assert len(audit.comparison) == 136 and len(audit.class_comparison) == 1360
print(time.process_time() - start)
"""


def rows():
    """The rows of this module."""
    yield _row("notebook: import of gfscore's functions", IMPORT, IMPORT_SECONDS)
    yield _row("notebook: 17 x 10,000 x 10 logits to classes, metrics and comparison", AUDIT, AUDIT_SECONDS)


def _row(name, code, wanted):
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    seconds = []
    for _ in range(REPEATS):
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True, text=True
        )
        seconds.append(float(run.stdout))
    median = statistics.median(seconds)
    return {
        "name": name,
        "ratio": wanted / median,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"{median:.2f} s of processor time in a fresh process, {min(seconds):.2f} to {max(seconds):.2f} in "
        f"{REPEATS} runs, one thread, what is imported at first use included; {wanted} s wanted",
    }


if __name__ == "__main__":
    print(json.dumps(list(rows()), indent=1))
