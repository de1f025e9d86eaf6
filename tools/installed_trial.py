"""Try an installed gfscore: run by tools/release.py in an environment that holds a release and nothing else.

    python -I installed_trial.py DOCS

Audits the logits of DOCS/example, and runs the Python blocks of DOCS/notebook.md that need no torch.
"""

import difflib
import sys
import tempfile
from pathlib import Path

# Python looks for modules beside a script, but not where it is isolated.
sys.path.append(str(Path(__file__).parent))

import numpy as np
import pandas as pd

from gfscore import audit_logits
from run_notebook import run

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


def run_notebook(page: Path) -> None:
    """Run the blocks of a page that need no torch; exits where they print something else than the page shows."""
    with tempfile.TemporaryDirectory() as folder:
        text = run(page, Path(folder), torch=False)
    lines = difflib.unified_diff(page.read_text(encoding="utf-8").splitlines(), text.splitlines(), "page", "run")
    difference = "\n".join(lines)
    if difference:
        sys.exit(f"{difference}\nerror: {page}: its blocks print something else here")


if __name__ == "__main__":
    docs = Path(sys.argv[1])
    print(f"{audit_example(docs / 'example')} models of docs/example audited from their logits")
    run_notebook(docs / "notebook.md")
    print("docs/notebook.md prints what it shows")
