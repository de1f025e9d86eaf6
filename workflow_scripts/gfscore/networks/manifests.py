"""Manifests of checkpoints: the model's identity, its files with their digests, and its settings.

Imports no torch, so that downloads work on a login node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from gfscore.core.addresses import without_queries
from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.checkpoint_files import NEEDS_PINNED_DIGEST, obtain
from gfscore.networks.model_source import model_sources, module_of


def describe_checkpoint(
    settings: Mapping[str, Any], *, identity: Mapping[str, str], record: bool = True
) -> dict[str, Any]:
    """Manifest of a checkpoint, a mapping for JSON; missing files are downloaded.

    `settings` is the model's entry: `source`, `path` of the file, `sha256` (hex, or None to record it now) and `url`
    (or None for a file placed by hand; the manifest omits its query), with the keys of the source; `identity` holds
    dataset (the zoo), threat and model; `record`: whether digests that are not pinned are recorded. For a network
    defined in architectures/ the manifest includes the digest of its code (see gfscore.networks.architecture_files).
    Raises InputError, naming file and remedy, for a file that is missing without a url, cannot be downloaded, is no
    checkpoint, or has another digest.
    """
    if settings.get("trust_pickle") and not settings.get("sha256"):
        raise InputError(f"{'/'.join(identity.values())}: {NEEDS_PINNED_DIGEST}")
    files = []
    for file in files_of(settings):
        files.append({"path": str(file["path"]), "sha256": obtain(**file, record=record)})
    for file in _files_beside(settings, files[0]["path"]):
        files.append({"path": str(file["path"]), "sha256": obtain(**file, record=record, plain=True)})
    require_usable = _of_source(settings, "require_usable")
    if require_usable:
        require_usable(files[0]["path"])
    return {
        **identity,
        "source": settings["source"],
        "path": files[0]["path"],
        "sha256": model_digest(settings["source"], [file["sha256"] for file in files]),
        "architecture": settings.get("architecture") or settings["source"],
        **(describe_network(settings["architecture"]) if settings["source"] == "torch" else {}),
        "pinned": bool(settings.get("sha256")),
        "files": files,
        "settings": without_queries(settings),
    }


def files_of(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Files of a model entry: mappings with path, url (or None) and sha256 (or None), the main file first.

    A source whose files are not in the entry (several files, URLs in a table) has a function of this name.
    """
    of_source = _of_source(settings, "files_of")
    return of_source(settings) if of_source else [{key: settings.get(key) for key in ("path", "url", "sha256")}]


def model_digest(source: str, digests: Sequence[str]) -> str:
    """SHA-256 that identifies a model.

    Parameters
    ----------
    source : str
        Its source.
    digests : sequence of str
        SHA-256 (hex) of its files, in the order of its manifest.

    Returns
    -------
    str
        The digest of the first file. Where the source says that all files identify a model and there are several, the
        SHA-256 of their digests, each in a line of its own: `sha256sum FILES | cut -c1-64 | sha256sum`.
    """
    if len(digests) == 1 or not model_sources()[source].all_files_identify:
        return digests[0]
    lines = "".join(f"{digest.lower()}\n" for digest in digests)
    return hashlib.sha256(lines.encode()).hexdigest()


def _files_beside(settings: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    # Files that the main file, once it is there, names itself.
    of_source = _of_source(settings, "files_beside")
    return of_source(path) if of_source else []


def _of_source(settings, name):
    # Function of the module of a source, None if it has none of this name.
    return getattr(module_of(settings["source"]), name, None)
