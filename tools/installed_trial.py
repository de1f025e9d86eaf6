"""Try an installed gfscore: run by tools/release.py in an environment that holds a release and nothing else.

    python -I installed_trial.py DOCS

Audits the logits of DOCS/example, and runs the Python blocks of DOCS/notebook.md that need no torch.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gfscore import audit_logits

MEASURE = "great-softmax"
"""Measure of the example whose class values are computed from its logits again."""

TOLERANCE = 1e-9
"""Difference of two processors in a class value."""


def audit_example(folder: Path) -> int:
    """Audit the logits of an example anew; returns the number of models.

    Raises SystemExit for class values that differ from those of its table.
    """
    scores = pd.read_csv(next(folder.glob("audits/*/class_scores.csv")))
    scores = scores[(scores["measure"] == MEASURE) & (scores["calibration"] == "none")]
    files = sorted(folder.glob("logits/*/*/*.parquet"))
    for file in files:
        table = pd.read_parquet(file)
        audit = audit_logits(np.stack(table["logits"]), table["label"])
        expected = scores[scores["model"] == file.stem].sort_values("class_index")
        difference = np.abs(audit.classes["value"].to_numpy() - expected["value"].to_numpy()).max()
        if not difference <= TOLERANCE:
            sys.exit(f"error: {file}: class values differ by {difference:g} from those of the example's table")
    if not files:
        sys.exit(f"error: {folder}: no logits")
    return len(files)


def run_notebook(page: Path) -> int:
    """Run the blocks of a page that need no torch, as cells of one notebook; returns their number."""
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "torch" not in block]
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    if not blocks:
        sys.exit(f"error: {page}: no block of Python")
    return len(blocks)


if __name__ == "__main__":
    docs = Path(sys.argv[1])
    print(f"{audit_example(docs / 'example')} models of docs/example audited from their logits")
    print(f"{run_notebook(docs / 'notebook.md')} blocks of docs/notebook.md run")
