"""Print what changed between two audits of the same data, for each model and measure, as CSV.

    .venv/bin/python tools/compare_audits.py EARLIER LATER > changes.csv

EARLIER and LATER are folders results/audits/<audit>, of this folder or of another one, of the last release say. The
exit code is 0 whatever changed, and 2 when the audits cannot be compared.
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.audit.audit_changes import audit_changes  # noqa: E402
from gfscore.core.errors import InputError  # noqa: E402
from gfscore.tables.csv_export import as_cell  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("later", type=Path)
    parser.add_argument(
        "--calibration",
        default="none",
        help="rows at T = 1 (none, the default), or at the temperature that this objective chose in both audits",
    )
    given = parser.parse_args()
    try:
        changes = audit_changes(given.earlier, given.later, calibration=given.calibration)
    except InputError as error:
        parser.error(str(error))
    try:
        print(changes.map(as_cell).to_csv(index=False), end="", flush=True)
    except BrokenPipeError:
        # Who reads it, head say, has enough; Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
