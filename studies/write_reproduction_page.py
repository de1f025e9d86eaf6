"""Write docs/what-reproduces.md from the claims and the numbers that the package computes for them.

Run from anywhere: `.venv/bin/python studies/write_reproduction_page.py`.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path[:0] = [str(ROOT / "workflow_scripts"), str(ROOT)]

from gfscore.core.files import write_text  # noqa: E402
from studies.reproduction.page import page  # noqa: E402

PAGE = ROOT / "docs" / "what-reproduces.md"

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_text(PAGE, page())
    print(f"wrote {PAGE.relative_to(ROOT)}")
