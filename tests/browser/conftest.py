"""Headless Chromium for the tests of pages; without it they are skipped, except in CI, where they fail."""

import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """A headless browser."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory):
    """Folder of the screenshots: GFSCORE_TEST_ARTEFACTS, or one that pytest cleans up."""
    named = os.environ.get("GFSCORE_TEST_ARTEFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
