"""Checkpoint files and their manifests: download, digests, and checks of content without unpickling.

The digest of every file is enforced: the one pinned in config.yaml, or else the one recorded in a file next to the
checkpoint when it was first used. Imports no torch, so that downloads work on a login node.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import require_regular, unpacks_too_far, write_text
from gfscore.core.names import without_queries
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.model_source import Manifest, Settings, files_module_of, main_file, model_sources

NEEDS_PINNED_DIGEST = (
    "trust_pickle: true runs code of the file, so its sha256 must be pinned in its entry; pin it, or set "
    "trust_pickle: false"
)

DOWNLOAD_REMEDY = "download it in a browser and put it in place by hand, or correct the url"

LONGEST_HEADER = 100_000_000
"""Largest size of the header of a safetensors file, in bytes."""


class CheckedFile(TypedDict):
    """Entry of a manifest for one file of a checkpoint: path and SHA-256 (hex)."""

    path: str
    sha256: str


# Manifests


def describe_checkpoint(settings: Settings, *, identity: Mapping[str, str], record: bool = True) -> Manifest:
    """Download and check the files of a model, and describe them in a manifest, a mapping for JSON.

    For a network defined in architectures/ the manifest includes the digest of its code.

    Parameters
    ----------
    settings : mapping
        The model's entry: `source`, `path` of the file, `sha256` (hex, or None to record it now) and `url` (or None for
        a file placed by hand; the manifest omits its query), with the keys of the source.
    identity : mapping
        Name of the model: `dataset`, `threat` and `model`.
    record : bool
        Whether digests that are not pinned are recorded.

    Raises
    ------
    InputError
        Naming file and remedy: for a file that is missing without a url, cannot be downloaded, is no checkpoint, or has
        another digest.
    """
    if settings.get("trust_pickle") and not settings.get("sha256"):
        raise InputError(f"{'/'.join(identity.values())}: {NEEDS_PINNED_DIGEST}")
    source_module = files_module_of(settings["source"])

    files: list[CheckedFile] = []
    for file in files_of(settings):
        files.append({"path": str(file["path"]), "sha256": prepare_checkpoint(**file, record_digest=record)})
    path = files[0]["path"]
    # Files that the main file refers to (external data of ONNX), so that it has to be there first.
    if hasattr(source_module, "external_files"):
        for file in source_module.external_files(path):
            sha256 = prepare_checkpoint(**file, record_digest=record, plain=True)
            files.append({"path": str(file["path"]), "sha256": sha256})
    if hasattr(source_module, "require_usable"):
        source_module.require_usable(path)

    manifest: dict[str, object] = {
        **identity,
        "source": settings["source"],
        "path": path,
        "sha256": model_digest(settings["source"], [file["sha256"] for file in files]),
        "architecture": settings.get("architecture") or settings["source"],
    }
    if settings["source"] == "torch":
        manifest.update(describe_network(settings["architecture"]))
    manifest["pinned"] = bool(settings.get("sha256"))
    manifest["files"] = files
    manifest["settings"] = without_queries(settings)
    return manifest


def files_of(settings: Settings) -> Sequence[Settings]:
    """Files of a model: mappings with path, url (or None) and sha256 (or None), the main file first.

    A source with several files, or with URLs that are not in the entry, lists them in a function of the same name.
    """
    source_module = files_module_of(settings["source"])
    if hasattr(source_module, "files_of"):
        return source_module.files_of(settings)
    return [main_file(settings)]


def model_digest(source: str, digests: Sequence[str]) -> str:
    """SHA-256 that identifies a model.

    Parameters
    ----------
    source : str
        The model's source.
    digests : sequence of str
        SHA-256 (hex) of its files, in the order of its manifest.

    Returns
    -------
    str
        The digest of the first file. For several files of a source with `all_files_identify`, the SHA-256 of their
        digests, each in a line of its own: `sha256sum FILES | cut -c1-64 | sha256sum`.
    """
    if len(digests) == 1 or not model_sources()[source].all_files_identify:
        return digests[0]
    lines = "".join(f"{digest.lower()}\n" for digest in digests)
    return hashlib.sha256(lines.encode()).hexdigest()


# Digests


def prepare_checkpoint(
    path: Path | str,
    *,
    url: str | None = None,
    sha256: str | None = None,
    record_digest: bool = True,
    plain: bool = False,
) -> str:
    """Download a checkpoint if it is missing, check it, and return its SHA-256 (hex).

    Parameters
    ----------
    path : Path or str
        The file. It is left in place where it is refused, since it may be the only copy.
    url : str, optional
        Where to download it from.
    sha256 : str, optional
        The pinned digest (hex). Without it the digest in `<path>.sha256` is enforced, or recorded there at the first
        use, in the format of sha256sum.
    record_digest : bool
        Whether a digest that is neither pinned nor recorded is recorded.
    plain : bool
        Whether the file holds raw numbers, so that no format can be checked.

    Raises
    ------
    InputError
        For a file that is missing without a url, is no checkpoint, or has another digest.
    """
    path = Path(path)
    require_regular(path)
    check_content = first_bytes if plain else require_checkpoint
    expected = sha256.lower() if sha256 else recorded_digest(path)

    if not path.exists():
        if not url:
            raise InputError(
                f"{path}: there is no such checkpoint, and the entry has no url; put the file there, or correct `path` "
                "in the entry"
            )
        # Imported late, because every job that opens a classifier imports this module.
        from gfscore.networks.downloads import download

        download(url, path, check=check_content, sha256=expected)

    try:
        check_content(path)
        digest = sha256_of_file(path)
        if expected and digest != expected:
            raise _wrong_digest(path, digest, expected, pinned=bool(sha256))
    except InputError as error:
        advice = "; to download it again, move it away" if url else ""
        raise InputError(f"{error}{advice}") from error

    # With a pinned digest nothing is written, so that the folder may be read-only.
    if not expected and record_digest:
        _record(path, digest)
    return digest


def _wrong_digest(path: Path, digest: str, expected: str, *, pinned: bool) -> InputError:
    if pinned:
        origin, correction = "pinned in the entry", "correct the pin"
    else:
        record = _record_of(path)
        origin, correction = f"recorded in {record.name}", f"delete {record}"
    return InputError(
        f"{path}: sha256 is {digest[:12]}, but {expected[:12]} is {origin}; put the right file in place, or, if this "
        f"file is the right one, {correction}"
    )


def _record(path: Path, digest: str) -> None:
    record = _record_of(path)
    try:
        write_text(record, f"{digest}  {path.name}\n")
    except OSError as error:
        raise InputError(
            f"{record}: cannot be written ({error.strerror}); make the folder writable, or copy the checkpoint to one "
            "that is"
        ) from error
    print(f"{path}: sha256 {digest} recorded in {record.name}; it is enforced from now on")


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


def _record_of(path: Path | str) -> Path:
    # The file next to a checkpoint that records its digest.
    return Path(f"{path}.sha256")


# Content


def require_checkpoint(path: Path | str, name: object = None) -> None:
    """Refuse a file that is no complete checkpoint by its first bytes or the sizes in its header.

    Formats are PyTorch (zip and pickle), safetensors and ONNX. Nothing is unpickled.

    Parameters
    ----------
    path : Path or str
    name : object, optional
        Name of the file in messages.

    Raises
    ------
    InputError
    """
    path = Path(path)
    name = name or path
    head = first_bytes(path, name)
    if path.suffix == ".json" and head[:1] == b"{":
        # The configuration of a network next to its weights, which is read as text.
        return
    # Zip (torch.save): PK. Safetensors: 8 bytes of header length, then a JSON object. Pickle: PROTO, 0x80. ONNX, a
    # protocol buffer: field 1, 0x08.
    if head.startswith(b"PK\x03\x04"):
        _require_whole_zip(path, name)
    elif head[8:9] == b"{":
        _require_whole_safetensors(path, name)
    elif head[:1] not in (b"\x80", b"\x08"):
        raise InputError(
            f"{name}: is no PyTorch, safetensors or ONNX file (it starts with {head[:12]!r}); {DOWNLOAD_REMEDY}, or "
            "convert it"
        )


def first_bytes(path: Path | str, name: object = None) -> bytes:
    """First 512 bytes of a file; raises InputError for an empty file, a web page, and a Git LFS pointer."""
    path = Path(path)
    name = name or path
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); check the path and its permissions") from error
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head:
        raise InputError(f"{name}: is empty; download or copy it again")
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise InputError(
            f"{name}: is a web page, not a checkpoint (a download limit, a warning or a login); {DOWNLOAD_REMEDY}"
        )
    if text.startswith(b"version https://git-lfs"):
        raise InputError(f"{name}: is a Git LFS pointer, not the checkpoint itself; run git lfs pull, then copy it")
    return head


def _require_whole_zip(path: Path, name: object) -> None:
    try:
        with zipfile.ZipFile(path) as file:
            unpacked = sum(entry.file_size for entry in file.infolist())
    # zipfile raises errors of many types for damaged files.
    except Exception as error:
        raise InputError(f"{name}: is a truncated PyTorch file ({error}); download or copy it again") from error
    packed = path.stat().st_size
    # torch.save does not compress, and weights hardly shrink when somebody compresses them.
    if unpacks_too_far(unpacked, packed):
        raise InputError(
            f"{name}: its {packed:,} bytes claim to unpack to {unpacked:,}, which no weights do; save it again with "
            "torch.save"
        )


def _require_whole_safetensors(path: Path, name: object) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, LONGEST_HEADER):
            raise InputError(f"{name}: is a truncated safetensors file; download or copy it again")
        content = file.read(length)
    try:
        header = json.loads(content)
        ends = [value["data_offsets"][1] for key, value in header.items() if key != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"{name}: has a damaged safetensors header; download or copy it again") from error
    if not all(isinstance(end, int) for end in ends) or size != 8 + length + max(ends, default=0):
        raise InputError(
            f"{name}: has {size} bytes, which contradicts its safetensors header: truncated or damaged; download or "
            "copy it again"
        )
