"""Make docs/example, a small finished audit, and the pictures of the README, its first screen, wide and narrow.

    .venv/bin/python tools/write_example.py

Runs configs/example.yaml, which trains two networks, and bundles it. Of the bundle docs/example keeps what a reader
looks at, with the statement of all of it, and the logits. The pictures need Chromium.
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
PICTURES = ROOT / "docs" / "images"
SCREENS = {
    "first-screen.png": {"viewport": {"width": 1280, "height": 800}},
    "first-screen-narrow.png": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}
FOLDER = f"audits/{AUDIT}"
KEPT = (
    "statement.json",
    f"{FOLDER}/report.html",
    f"{FOLDER}/verdict.json",
    f"{FOLDER}/config.yaml",
    f"{FOLDER}/class_scores.csv",
    f"{FOLDER}/model_summary.csv",
    "logits/*/*/*.parquet",
)
"""Files of the bundle that docs/example keeps."""


def audit() -> None:
    """Run the audit of the example in this checkout."""
    _run("snakemake", "--cores", str(os.cpu_count()), "--configfile", f"configs/{AUDIT}.yaml")


def replace_example() -> None:
    """Bundle the audit, and put the files that are kept in the place of docs/example."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, AUDIT)
        _run("gfscore.workflow.command", "bundle", AUDIT, "--with", "logits", "--to", str(bundle))
        shutil.rmtree(EXAMPLE, ignore_errors=True)
        for pattern in KEPT:
            for file in bundle.glob(pattern):
                target = EXAMPLE / file.relative_to(bundle)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)


def take_pictures() -> None:
    """Pictures of the first screen of the example's page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for name, screen in SCREENS.items():
            page = browser.new_page(**screen)
            page.goto((EXAMPLE / "audits" / AUDIT / "report.html").as_uri())
            page.screenshot(path=PICTURES / name)
        browser.close()


def _run(module: str, *arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    subprocess.run([sys.executable, "-P", "-m", module, *arguments], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    audit()
    replace_example()
    take_pictures()
