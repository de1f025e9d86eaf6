"""Checkpoint files: download, digests, and checks that do not unpickle anything.

The digest of every file is enforced: the one pinned in config.yaml, or else the one recorded in a file next to the
checkpoint when it was first used. Imports no torch, so that downloads work on a login node.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import require_regular, unpacks_too_far, write_text
from gfscore.core.names import without_queries
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.model_source import model_sources, module_of

NEEDS_PINNED_DIGEST = (
    "trust_pickle: true runs code of the file, so its sha256 must be pinned in config.yaml; pin it, or set "
    "trust_pickle: false"
)

AGAIN = "download it in a browser and put it in place by hand, or correct the url"


def obtain(
    path: Path | str,
    *,
    url: str | None = None,
    sha256: str | None = None,
    record: bool = True,
    plain: bool = False,
) -> str:
    """SHA-256 (hex) of a complete checkpoint at `path`, downloaded from `url` if it is missing.

    Without `sha256` the digest in `<path>.sha256` is enforced, or recorded there at the first use (in the format of
    sha256sum). `plain`: whether the file holds numbers alone, of which no first bytes tell. Raises InputError. A
    refused file is left in place, since it may be the only copy.
    """
    path = Path(path)
    require_regular(path)
    # With a pinned digest nothing is written, so that the folder may be read-only.
    expected = sha256.lower() if sha256 else recorded_digest(path)
    if not path.exists():
        if not url:
            raise InputError(
                f"{path}: there is no such checkpoint, and the entry has no url; put the file there, or correct `path` "
                "in config.yaml"
            )
        # Imported late, because every job that opens a classifier imports this module.
        from gfscore.networks.downloads import download

        download(url, path, check=require_checkpoint, sha256=expected)
    try:
        if plain:
            require_content(path)
        else:
            require_checkpoint(path)
        found = sha256_of_file(path)
        if expected and found != expected:
            known = "pinned; correct that" if sha256 else f"recorded in {_record_of(path).name}; delete that"
            raise InputError(
                f"{path}: sha256 is {found[:12]}, but {expected[:12]} is {known} if this file is the right one"
            )
    except InputError as error:
        again = "move it away and run again to download it" if url else "put the right file in place"
        raise InputError(f"{error}; else {again}; nothing was changed") from error
    if not expected and record:
        _record(path, found)
    return found


def require_digest(path: Path | str, sha256: str) -> None:
    """Raise InputError for a file that cannot be read or whose SHA-256 is not `sha256` (hex); nothing is parsed."""
    require_regular(path)
    try:
        digest = sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); train or fetch this model first") from error
    require_same_digest(digest, sha256, path=path)


def require_same_digest(digest: str, sha256: str, *, path: Path | str) -> None:
    """Raise InputError, naming the file, unless the digest of its content (hex) is `sha256` (hex, in any case)."""
    if digest != sha256.lower():
        raise InputError(
            f"{path}: sha256 is {digest[:12]}, expected {sha256[:12]}: the file is damaged or a different one. If the "
            "workflow made or downloaded it, delete it and run again; if you put it there, restore the right file"
        )


def require_checkpoint(path: Path | str, name: object = None) -> None:
    """Raise InputError for a file that is no complete checkpoint by its first bytes or the sizes in its header.

    Known formats are PyTorch (zip and pickle), safetensors and ONNX. `name` is used for the file in errors. Nothing is
    unpickled.
    """
    path, name = Path(path), name or path
    head = require_content(path, name)
    if path.suffix == ".json" and head[:1] == b"{":
        # The configuration beside some weights, which is read as text.
        return
    if head.startswith(b"PK\x03\x04"):
        _require_whole_zip(path, name)
    elif head[8:9] == b"{":
        _require_whole_safetensors(path, name, path.stat().st_size)
    # A pickle begins with PROTO; ONNX, a protocol buffer, with field 1, the version of the format.
    elif head[:1] not in (b"\x80", b"\x08"):
        raise InputError(
            f"{name}: is no PyTorch, safetensors or ONNX file (it starts with {head[:12]!r}); {AGAIN}, or convert it"
        )


def require_content(path: Path | str, name: object = None) -> bytes:
    """First bytes of a file; InputError for one that cannot be read or is empty, a web page or a Git LFS pointer."""
    path, name = Path(path), name or path
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); check the path and its permissions") from error
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head:
        raise InputError(f"{name}: is empty; download or copy it again")
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise InputError(f"{name}: is a web page, not a checkpoint (a download limit, a warning or a login); {AGAIN}")
    if text.startswith(b"version https://git-lfs"):
        raise InputError(f"{name}: is a Git LFS pointer, not the checkpoint itself; run git lfs pull, then copy it")
    return head


def recorded_digest(path: Path | str) -> str | None:
    """Digest recorded next to a checkpoint, or None; InputError for a malformed record."""
    record = _record_of(path)
    require_regular(record)
    if not record.exists():
        return None
    digest = record.read_text(encoding="utf-8", errors="replace").split(" ")[0].strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InputError(f"{record}: holds no sha256; delete it to record the digest again")
    return digest


def _record_of(path):
    return Path(f"{path}.sha256")


def _record(path, digest):
    try:
        write_text(_record_of(path), f"{digest}  {path.name}\n")
    except OSError as error:
        raise InputError(
            f"{_record_of(path)}: cannot be written ({error.strerror}); make the folder writable, or copy the "
            "checkpoint to one that is"
        ) from error
    print(f"{path}: sha256 {digest} recorded in {_record_of(path).name}; it is enforced from now on")


def _require_whole_zip(path, name):
    try:
        with zipfile.ZipFile(path) as file:
            unpacked = sum(entry.file_size for entry in file.infolist())
    # zipfile raises errors of many types for damaged files.
    except Exception as error:
        raise InputError(f"{name}: is a truncated PyTorch file ({error}); download or copy it again") from error
    packed = path.stat().st_size
    # torch.save compresses nothing; who packs the file again makes weights hardly smaller.
    if unpacks_too_far(unpacked, packed):
        raise InputError(
            f"{name}: its {packed:,} bytes claim to unpack to {unpacked:,}, which no weights do; save it again with "
            "torch.save"
        )


def _require_whole_safetensors(path, name, size):
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, 100_000_000):
            raise InputError(f"{name}: is a truncated safetensors file; download or copy it again")
        try:
            header = json.loads(file.read(length))
            ends = [value["data_offsets"][1] for key, value in header.items() if key != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise InputError(f"{name}: has a damaged safetensors header; download or copy it again") from error
    if not all(isinstance(end, int) for end in ends) or size != 8 + length + max(ends, default=0):
        raise InputError(
            f"{name}: has {size} bytes, which contradicts its safetensors header: truncated or damaged; download or "
            "copy it again"
        )


# Manifests of checkpoints: the model's identity, its files with their digests, and its settings. Imports no
# torch, so that downloads work on a login node.


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
