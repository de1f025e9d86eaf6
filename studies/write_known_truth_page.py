"""Write docs/known-truth.md, and its figure, from what every measure says about classifiers of known robustness.

Run from anywhere: `.venv/bin/python studies/write_known_truth_page.py [DATA]`. DATA is the folder of the real test
data; without it the part about real networks stays as it is.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path[:0] = [str(ROOT), str(ROOT / "workflow_scripts"), str(ROOT / "tests")]

from gfscore.core.files import write_text  # noqa: E402
from studies.drawing import PNG_DPI, PNG_METADATA, drawing  # noqa: E402
from studies.known_truth.figure import known_truth_figure  # noqa: E402
from studies.known_truth.page import bounds_of, page  # noqa: E402
from studies.known_truth.suite import run_suite  # noqa: E402

PAGE, FIGURE = ROOT / "docs" / "known-truth.md", ROOT / "docs" / "images" / "known-truth.png"
CLASSES = (2, 3, 10)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/known-truth.md and its figure.")
    parser.add_argument("data", nargs="?", type=Path, help="folder of the real test data")
    data = parser.parse_args().data
    if data:
        from helpers.real_bounds import bounds_table, compare_bounds

        bounds = bounds_table(compare_bounds(data))
    else:
        bounds = bounds_of(PAGE.read_text(encoding="utf-8"))
    suites = {classes: run_suite(classes) for classes in CLASSES}
    write_text(PAGE, page(suites, bounds))
    with drawing():
        known_truth_figure(suites[max(CLASSES)]).savefig(FIGURE, dpi=PNG_DPI, metadata=PNG_METADATA)
    print(f"wrote {PAGE.relative_to(ROOT)} and {FIGURE.relative_to(ROOT)}")
