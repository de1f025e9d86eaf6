"""Time of an audit's page from its tables, start of Python and of every library included."""

import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import row

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [str(ROOT / "workflow_scripts"), str(ROOT / "tests")]
sys.path[:0] = FOLDERS

from helpers.pages import audit_for_page

SIZES = ((17, 10, 5), (5, 1_000, 15))
"""Models, classes, and the seconds of processor time wanted."""

BUILT = """
import pickle, sys
from pathlib import Path
from helpers.pages import page_of
made, page = sys.argv[1:]
Path(page).write_text(page_of(pickle.loads(Path(made).read_bytes())))
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
    with tempfile.TemporaryDirectory() as name:
        made, page = (Path(name) / file for file in ("made.pickle", "page.html"))
        for models, classes, wanted in SIZES:
            made.write_bytes(pickle.dumps(audit_for_page(models=models, classes=classes, calibrated=classes <= 10)))
            own = min(spent(BUILT, made, page) for _ in range(3))
            yield row(
                f"page of {models} models x {classes:,} classes",
                wanted / own,
                f"{own:.1f} s, {wanted} s wanted; {page.stat().st_size / 2**20:.1f} MiB",
                target=1,
                unit="seconds wanted over seconds needed",
            )
