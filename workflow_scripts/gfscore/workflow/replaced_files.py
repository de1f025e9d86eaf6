"""Files of users that are others than those that earlier steps read, though neither size nor time tells."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gfscore.core import digests
from gfscore.workflow import plan


def replaced_files(config: Mapping[str, Any], audits: Iterable[str]) -> dict[str, str]:
    """Manifests in results/ that describe other files than there are now, each with the first such file.

    Looks at checkpoints and generators by all their files, and at the images that the audits evaluate. What was read
    before and has not changed since (see gfscore.core.digests) is not read again. Checkpoints that are missing and
    can be downloaded are no replacement, nor is a manifest that cannot be read: the step that needs it says so.
    """
    names = list(dict.fromkeys(audits))
    return dict(_replaced_networks(config, names)) | _replaced_images(config, names)


def _replaced_networks(config: Mapping[str, Any], audits: Iterable[str]) -> Iterator[tuple[str, str]]:
    for manifest, entry in fetched_models(config, audits).items():
        for file in _content(manifest).get("files", []):
            if _is_another(file, or_missing=not plan.is_downloaded(entry)):
                yield manifest, file["path"]
                break
    for audit in audits:
        for dataset in plan.tasks_of(config, audit):
            manifest = f"results/generated/{dataset}.json"
            generator = _content(manifest).get("generator")
            if isinstance(generator, dict) and _is_another(generator, or_missing=True):
                yield manifest, generator["path"]


def fetched_models(config: Mapping[str, Any], audits: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Entries of the classifiers and backbones of audits that come from files, by the path of their manifest."""
    entries = {}
    for audit in audits:
        for model in plan.models_of_tasks(config, audit):
            entry = plan.entry_of(config, **model)
            if entry["source"] in plan.FETCHED:
                zoo = plan.zoo_of(config, model["dataset"])
                entries[f"results/checkpoints/{zoo}/{model['threat']}/{model['model']}.json"] = entry
    return entries


def _is_another(file: Mapping[str, str], *, or_missing: bool) -> bool:
    try:
        return digests.sha256(file["path"]) != file["sha256"]
    except FileNotFoundError:
        return or_missing
    except OSError:
        # The step that opens it says why it cannot be read.
        return True


def _replaced_images(config: Mapping[str, Any], audits: Iterable[str]) -> dict[str, str]:
    changed = []
    for dataset in dict.fromkeys(task for audit in audits for task in plan.tasks_of(config, audit)):
        manifest = f"results/datasets/{dataset}.json"
        content = _content(manifest)
        if reads_files(content):
            stored = digests.recall(manifest)
            if stored is None or stored.digest != content.get("digest"):
                changed.append(manifest)
    if not changed:
        return {}
    # In a process of its own: reading images needs numpy, which planning does not load.
    command = [sys.executable, "-P", "-m", "gfscore.images.manifests", *changed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        differing: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return dict.fromkeys(changed, f"images that could not be read again ({last[:200]})")
    return {manifest: words for manifest, words in differing.items() if words is not None}


def reads_files(manifest: Mapping[str, Any]) -> bool:
    """Whether the images of a dataset's manifest come from files, not from a package."""
    return bool(manifest.get("path") or ((manifest.get("settings") or {}).get("corrupted") or {}).get("path"))


def _content(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
