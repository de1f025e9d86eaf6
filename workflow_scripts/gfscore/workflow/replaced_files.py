"""Files of users that are missing, or others than earlier steps read; data of earlier runs that are not as pinned."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.core import digests
from gfscore.core.digests import require_pinned
from gfscore.core.errors import InputError
from gfscore.networks.model_source import Manifest
from gfscore.workflow.entries import PlannedDataset, PlannedModel
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.user_files import RESULTS


def missing_files(audits: Iterable[PlannedAudit]) -> list[str]:
    """Files that steps of some audits need and that are neither there nor downloaded, a message for each.

    Files that an earlier run has read, whose results are there, are not needed any more.
    """
    messages: dict[str, str] = {}
    for audit in audits:
        for dataset in audit.datasets:
            messages.update(_missing_of_dataset(dataset))
        for model in audit.models:
            messages.update(_missing_of_model(model))
        values, release = audit.release_values(), audit.settings.last_release
        is_needed = isinstance(values, str) and not Path(values).exists()
        if release and is_needed and not Path(release.bundle).is_dir():
            message = f"{release.bundle}: there is no such folder, the last release of audit {audit.name}"
            messages[release.bundle] = message
    return list(messages.values())


def _missing_of_dataset(dataset: PlannedDataset) -> dict[str, str]:
    messages: dict[str, str] = {}
    if Path(dataset.manifest).exists():
        return messages
    paths = [dataset.path]
    if dataset.settings.corrupted:
        paths.append(dataset.settings.corrupted.path)
    if dataset.generator:
        paths.append(dataset.generator.path)
    for path in paths:
        if path and not _is_made(path) and not Path(path).exists():
            messages[path] = _no_such(path, f"file or folder, of dataset {dataset.name}")
    return messages


def _is_made(path: str) -> bool:
    # By a step: a file that none makes is Snakemake's to report.
    return path.startswith(RESULTS)


def _no_such(path: str, description: str) -> str:
    message = f"{path}: there is no such {description}"
    plain = Path(path).as_posix()
    # Snakemake knows files that steps make by such a path only.
    return f"{message}; if a step makes it, write {plain}" if _is_made(plain) else message


def _missing_of_model(model: PlannedModel) -> dict[str, str]:
    path = model.path
    if not path or model.is_downloaded or Path(model.fetched_manifest).exists():
        return {}
    if not _is_made(path) and not Path(path).exists():
        return {path: _no_such(path, f"file, of model {model.label}")}
    messages: dict[str, str] = {}
    for file in model.weight_files():
        if not file.exists():
            message = f"{file}: there is no such file, which holds weights of {path}; put it beside that file"
            messages[str(file)] = message
    return messages


def replaced_files(audits: Sequence[PlannedAudit]) -> dict[str, str]:
    """Manifests in results/ that describe other files than there are by now.

    Looks at checkpoints and generators by all their files, and at the images that the audits evaluate. What was read
    before and has not changed since (see gfscore.core.digests) is not read again. Checkpoints that are missing and
    can be downloaded are no replacement, nor is a manifest that cannot be read: the step that needs it reports it.

    Returns
    -------
    dict
        The first replaced file by the path of the manifest.
    """
    replaced: dict[str, str] = {}
    for manifest, model in fetched_models(audits).items():
        for file in _content(manifest).get("files", []):
            if _is_replaced(file, or_missing=not model.is_downloaded):
                replaced[manifest] = file["path"]
                break

    tasks: dict[str, PlannedDataset] = {}
    for audit in audits:
        tasks.update((task.name, task) for task in [*audit.tasks, *audit.halves])
    for task in tasks.values():
        manifest = f"results/generated/{task.name}.json"
        generator = _content(manifest).get("generator")
        if isinstance(generator, dict) and _is_replaced(generator, or_missing=True):
            replaced[manifest] = generator["path"]
    replaced.update(_replaced_images(task.manifest for task in tasks.values()))
    return replaced


def other_than_pinned(audits: Iterable[PlannedAudit], *, fetched_anew: Collection[str]) -> list[str]:
    """Datasets of earlier runs with another digest than the configuration pins, a message for each.

    Parameters
    ----------
    audits : iterable of PlannedAudit
        Audits that are run.
    fetched_anew : collection of str
        Manifests that the run makes anew, whose step compares the digests itself.
    """
    messages: dict[str, str] = {}
    for audit in audits:
        for dataset in audit.datasets:
            digest = _content(dataset.manifest).get("digest")
            if digest is None or dataset.manifest in fetched_anew:
                continue
            remedy = "correct `digest`, or delete that manifest if the data have changed since, and run again"
            try:
                require_pinned(digest, dataset.settings.digest, where=dataset.manifest, remedy=remedy)
            except InputError as error:
                messages[dataset.name] = str(error)
    return list(messages.values())


def fetched_models(audits: Iterable[PlannedAudit]) -> dict[str, PlannedModel]:
    """Classifiers and backbones of audits that come from files, by the path of their manifest."""
    models = {}
    for audit in audits:
        for model in audit.task_models:
            if model.network.source.fetched:
                models[model.fetched_manifest] = model.network
    return models


def _is_replaced(file: Mapping[str, str], *, or_missing: bool) -> bool:
    try:
        return digests.cached_sha256(file["path"]) != file["sha256"]
    except FileNotFoundError:
        return or_missing
    except OSError:
        # The step that opens it reports why it cannot be read.
        return True


def _replaced_images(manifests: Iterable[str]) -> dict[str, str]:
    changed = list(filter(_may_have_changed, manifests))
    if not changed:
        return {}
    # In a process of its own: reading images needs numpy, which planning does not load.
    command = [sys.executable, "-P", "-m", "gfscore.images.manifests", *changed]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        differing: dict[str, str | None] = json.loads(process.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        lines = process.stderr.strip().splitlines() or ["it said nothing"]
        return dict.fromkeys(changed, f"images that could not be read again ({lines[-1][:200]})")
    return {manifest: path for manifest, path in differing.items() if path is not None}


def _may_have_changed(manifest: str) -> bool:
    # Whether images come from files, at least one of which was touched since they were read.
    content = _content(manifest)
    if not reads_files(content):
        return False
    stored = digests.recall(manifest)
    return stored is None or stored.digest != content.get("digest")


def reads_files(manifest: Manifest) -> bool:
    """Whether the images of a dataset's manifest come from files, not from a package."""
    if manifest.get("path"):
        return True
    settings = manifest.get("settings") or {}
    corrupted = settings.get("corrupted") or {}
    return bool(corrupted.get("path"))


def _content(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
