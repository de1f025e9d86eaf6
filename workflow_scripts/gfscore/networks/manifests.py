"""Manifests of checkpoints: whose a checkpoint is, its files with their digests, how to open it.

Imports no torch, so that fetching works on a login node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gfscore.core.addresses import without_queries
from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.checkpoint_files import NEEDS_PINNED_DIGEST, obtain
from gfscore.networks.model_source import module_of


def describe_checkpoint(settings: Mapping[str, Any], *, identity: Mapping[str, str]) -> dict[str, Any]:
    """Manifest of a checkpoint, a JSON-able mapping: whose it is, its files with their digests, how to open it.

    Of a network defined in architectures/ it has the digest of that code too (see gfscore.networks.architecture_files).

    `settings` is the model's entry: `source`, `path` (where the file lies or is to be put), `sha256` (hex, or None to
    record it now) and `url` (or None for a file placed by hand; the manifest hides its query), with the source's own
    keys; `identity` holds dataset (the zoo), threat and model. Fetches what is missing. Raises InputError, naming file
    and remedy, for a file that is absent and has no url, that cannot be downloaded, that is no checkpoint, or that has
    another digest.
    """
    if settings.get("trust_pickle") and not settings.get("sha256"):
        raise InputError(f"{'/'.join(identity.values())}: {NEEDS_PINNED_DIGEST}")
    files = [{"path": str(file["path"]), "sha256": obtain(**file)} for file in files_of(settings)]
    require_usable = _of_source(settings, "require_usable")
    if require_usable:
        require_usable(files[0]["path"])
    return {
        **identity,
        "source": settings["source"],
        "path": files[0]["path"],
        "sha256": files[0]["sha256"],
        "architecture": settings.get("architecture") or settings["source"],
        **(describe_network(settings["architecture"]) if settings["source"] == "torch" else {}),
        "pinned": bool(settings.get("sha256")),
        "files": files,
        "settings": without_queries(settings),
    }


def files_of(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Files of a model entry: mappings with path, url (or None) and sha256 (or None), the first the one to open.

    A source may know better than config.yaml (several files, addresses in a table of its own): then its module has a
    function of this name.
    """
    own = _of_source(settings, "files_of")
    return own(settings) if own else [{key: settings.get(key) for key in ("path", "url", "sha256")}]


def _of_source(settings, name):
    # Function of the module of a source, None where it has none of this name.
    return getattr(module_of(settings["source"]), name, None)
