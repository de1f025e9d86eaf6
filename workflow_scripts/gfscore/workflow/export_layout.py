"""Paths of an audit's exports and of their inputs. Expects a complete configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.workflow import layout, plan

EXPORTS = ("latex", "model-cards", "ro-crate")

WORKFLOW = (
    *("rules/**/*", "workflow_scripts/**/*", "envs/*", "profiles/**/*"),
    *("config.yaml", "configs/*.yaml", "requirements.lock", "tools/install.py", "LICENSE", "CITATION.cff", "README.md"),
)
"""Glob patterns of the workflow's files, besides its Snakefile."""

LEFTOVERS = {"__pycache__", ".ruff_cache"}
"""Cache folders of tools, left out of exports."""


def export_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Folders of an audit's exports."""
    return [f"results/audits/{audit}/exports/{name}" for name in EXPORTS]


def workflow_files(root: Path) -> list[str]:
    """Paths of the Snakefile and all other files of the workflow, relative to the folder `root`."""
    found = {path for pattern in WORKFLOW for path in root.glob(pattern) if path.is_file()}
    found = {path for path in found if not LEFTOVERS.intersection(path.parts)}
    return ["Snakefile", *sorted(path.relative_to(root).as_posix() for path in found)]


def manifests(config: Mapping[str, Any], audit: str) -> list[str | list[str]]:
    """Manifests of the datasets and classifiers of an audit, which contain their digests."""
    found = [f"results/datasets/{name}.json" for name in plan.datasets_of(config, audit)]
    # Models given as logits or samples have no manifest.
    return found + [
        layout.checkpoint_file(config, **model, extension="json")
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] in plan.FITTED | plan.FETCHED
    ]


def deposited_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Results of an audit without the verdict."""
    verdict = f"results/audits/{audit}/verdict.json"
    return [path for path in layout.audit_results(config, audit) if path != verdict]
