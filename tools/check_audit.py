"""Check that the files of a finished audit are as they were written, and agree with each other.

    .venv/bin/python tools/check_audit.py FOLDER

FOLDER is results/audits/<audit>, of this machine or as you were given it; nothing else is read. The exit code is 0
when nothing is wrong, 1 when something is (each file by name), and 2 when the folder holds no audit.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.errors import InputError  # noqa: E402
from gfscore.core.names import printable  # noqa: E402
from gfscore.workflow.audit_check import check_audit  # noqa: E402

UNPROVEN = """\
What this cannot prove: who changes a file and makes its checksums again, or takes away a table that not every audit
has, is not found, and whether the values are true, only a run of one's own tells, on the same data and models."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    try:
        checked = check_audit(folder)
    except InputError as error:
        parser.error(str(error))
    for kind, count in checked.counts.items():
        print(f"{count:5} {kind}")
    if checked.unchecked:
        names = ", ".join(printable(path) for path in checked.unchecked)
        print(f"{len(checked.unchecked):5} others, not checked: {names}")
    for fault in checked.faults:
        print(f"WRONG {printable(fault.replace(f'{folder}/', ''))}")
    print(f"{len(checked.faults)} wrong." if checked.faults else "All files are as they were written.")
    print(UNPROVEN)
    sys.exit(bool(checked.faults))
