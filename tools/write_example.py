"""Make docs/example, a small finished audit, and the picture of the README, its first screen.

    .venv/bin/python tools/write_example.py

Runs configs/example.yaml, which trains three networks, and bundles it with its logits in the place of docs/example.
The picture needs Chromium.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
AUDIT = "example"
EXAMPLE = ROOT / "docs" / "example"
PICTURE = ROOT / "docs" / "images" / "first-screen.png"
SCREEN = {"width": 1280, "height": 800}


def audit() -> None:
    """Run the audit of the example in this checkout."""
    _run("snakemake", "--cores", str(os.cpu_count()), "--configfile", f"configs/{AUDIT}.yaml")


def replace_example() -> None:
    """Bundle the audit, and put the bundle in the place of docs/example."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, AUDIT)
        _run("gfscore.workflow.command", "bundle", AUDIT, "--with", "logits", "--to", str(bundle))
        shutil.rmtree(EXAMPLE, ignore_errors=True)
        shutil.copytree(bundle, EXAMPLE)


def take_picture() -> None:
    """Picture of the first screen of the example's page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport=SCREEN)
        page.goto((EXAMPLE / "audits" / AUDIT / "report.html").as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


def _run(module: str, *arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    subprocess.run([sys.executable, "-P", "-m", module, *arguments], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    audit()
    replace_example()
    take_picture()
