"""Write docs/tables.md, and the table of metrics in docs/reading-an-audit.md, from what the package declares.

Run from anywhere: `.venv/bin/python tools/write_tables_page.py`.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.files import write_text  # noqa: E402
from gfscore.workflow.tables_page import page, with_metrics  # noqa: E402

PAGE = ROOT / "docs" / "tables.md"
READING = ROOT / "docs" / "reading-an-audit.md"

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_text(PAGE, page())
    write_text(READING, with_metrics(READING.read_text(encoding="utf-8")))
    print(f"wrote {PAGE.relative_to(ROOT)} and {READING.relative_to(ROOT)}")
