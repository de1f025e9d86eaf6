"""Time of an audit's dashboard from its tables, start of Python and of every library included.

What all dashboards of a run share depends on no data and is made once, while the audits are computed: a row of its own.
"""

import pickle
import resource
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from timing import row

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [str(ROOT / "workflow_scripts"), str(ROOT / "tests")]
sys.path[:0] = FOLDERS

SIZES = ((17, 10, 5), (5, 1_000, 15))
"""Models, classes, and the seconds of processor time wanted."""

PREPARED = "import sys; from prepare_dashboards import prepare_dashboards; prepare_dashboards(sys.argv[1])"

BUILT = """
import pickle, sys
from pathlib import Path
from dashboard_pages import page_of
from gfscore.core.files import read_json
parts, made, page = sys.argv[1:]
Path(page).write_text(page_of(pickle.loads(Path(made).read_bytes()), shared=read_json(parts)))
"""


def spent(code, *arguments):
    """Seconds of processor time of Python running the code with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = {"PYTHONPATH": ":".join(FOLDERS)}
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=path, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows():
    """One row for each of SIZES, on synthetic audits that have every section but groups and projection."""
    audit_for_page = import_module("dashboard_pages").audit_for_page
    with tempfile.TemporaryDirectory() as name:
        parts, made, page = (Path(name) / file for file in ("parts.json", "made.pickle", "page.html"))
        shared = min(spent(PREPARED, parts) for _ in range(3))
        detail = f"{shared:.1f} s: the charts' library, their specifications and the ledger"
        yield row("what all dashboards of a run share", 1 / shared, detail, unit="times a second")
        for models, classes, wanted in SIZES:
            made.write_bytes(pickle.dumps(audit_for_page(models=models, classes=classes, calibrated=classes <= 10)))
            own = min(spent(BUILT, parts, made, page) for _ in range(3))
            yield row(
                f"dashboard of {models} models x {classes:,} classes",
                wanted / own,
                f"{own:.1f} s, {wanted} s wanted; with what all share {shared + own:.1f} s; "
                f"{page.stat().st_size / 2**20:.1f} MiB",
                target=1,
                unit="seconds wanted over seconds needed",
            )
