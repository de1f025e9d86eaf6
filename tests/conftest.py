"""Fixtures of every test."""

import os
import signal
from pathlib import Path

import pytest

# Before torch is imported: the networks here are so small that several threads only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A `make test ARGS=...` that runs the tests must not hand its options on to a `make audit` that they run.
for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS"):
    os.environ.pop(name, None)
# A chart that cannot be drawn is left out of an audit; here it is a defect.
os.environ["GFSCORE_STRICT_CHARTS"] = "yes"
# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start, and interrupt, from there.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


QUICK_SECONDS = 30


def pytest_addoption(parser):
    """Add the options of `make test` and `make torture`; those of a folder's own conftest.py would be read too late."""
    parser.addoption("--quick", action="store_true", help="no runs of the workflow, no files of over half a minute")
    parser.addoption("--torture", action="store_true", help="faults: ten times the trials, other seeds included")


def pytest_collection_modifyitems(config, items):
    """Files that take long start first, so that two processes that share the files end at about the same time."""
    items.sort(key=seconds_of_file, reverse=True)
    if config.getoption("quick"):
        slow = [item for item in items if seconds_of_file(item) > QUICK_SECONDS or item.get_closest_marker("workflow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


def seconds_of_file(item):
    """What the file of a test says that it takes; 0 where it says nothing."""
    mark = item.get_closest_marker("seconds")
    return mark.args[0] if mark else 0


@pytest.fixture(scope="session")
def real_data():
    """Folder of the real data pack; without it the test is skipped, except in CI, where it fails."""
    folder = Path(os.environ.get("GFSCORE_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no real data at {folder} (GFSCORE_TEST_DATA)")
    return folder
