"""Write docs/findings.md and its pictures from what was measured on the real networks.

Run from anywhere: `.venv/bin/python studies/write_findings_page.py`.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path[:0] = [str(ROOT / "workflow_scripts"), str(ROOT)]

from gfscore.core.files import write_text  # noqa: E402
from studies.drawing import PNG_DPI, PNG_METADATA, drawing  # noqa: E402
from studies.findings.page import page, pictures  # noqa: E402

PAGE = ROOT / "docs" / "findings.md"

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_text(PAGE, page())
    with drawing():
        for name, figure in pictures().items():
            figure.savefig(ROOT / "docs" / "images" / f"{name}.png", dpi=PNG_DPI, metadata=PNG_METADATA)
    print(f"wrote {PAGE.relative_to(ROOT)} and its pictures")
