"""Files of checkpoints: found or fetched, and checked without unpickling them.

The only rule about content that holds for all is that of the digest: pinned in config.yaml, or else recorded beside the
file when it is first seen and enforced from then on. Imports no torch, so that fetching works on a login node.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file, write_text
from gfscore.core.regular import require_regular

NEEDS_PINNED_DIGEST = (
    "trust_pickle: true runs code of the file, so its sha256 must be pinned in config.yaml; pin it, or set "
    "trust_pickle: false"
)


def obtain(path: Path | str, *, url: str | None = None, sha256: str | None = None) -> str:
    """SHA-256 (hex) of a checkpoint that is in place and whole, downloaded from `url` when it was absent.

    Without `sha256` the digest in `<path>.sha256` is enforced, or recorded there at the first time (the format of
    sha256sum). Raises InputError. A file that is refused stays where it is, unused: it may be the only copy.
    """
    path = Path(path)
    require_regular(path)
    # Where a digest is pinned nothing is written, so that files may lie in folders of others.
    expected = sha256.lower() if sha256 else recorded_digest(path)
    if not path.exists():
        if not url:
            raise InputError(
                f"{path}: there is no such checkpoint, and the entry has no url; put the file there, or correct `path` "
                "in config.yaml"
            )
        # Here, because every job that opens a classifier imports this module, and only this one needs a network.
        from gfscore.networks.downloads import download

        download(url, path, check=require_checkpoint, sha256=expected)
    try:
        require_checkpoint(path)
        found = sha256_of_file(path)
        if expected and found != expected:
            record = "pinned; correct that" if sha256 else f"recorded in {_record_of(path).name}; delete that"
            raise InputError(
                f"{path}: sha256 is {found[:12]}, but {expected[:12]} is {record} if this file is the right one"
            )
    except InputError as error:
        again = "move it away and run again, to fetch it anew" if url else "put the right file in place"
        raise InputError(f"{error}; else {again}; nothing was changed") from error
    if not expected:
        _record(path, found)
    return found


def require_digest(path: Path | str, sha256: str) -> None:
    """Refuse a file whose SHA-256 is not `sha256` (hex), or that cannot be read, by InputError; nothing is parsed."""
    require_regular(path)
    try:
        found = sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); train or fetch this model first") from error
    if found != sha256.lower():
        raise InputError(
            f"{path}: sha256 is {found[:12]}, expected {sha256[:12]}: the file is damaged or another one. If "
            "the workflow made or downloaded it, delete it, so that it comes again; if you put it there, put the right "
            "one back"
        )


def require_checkpoint(path: Path | str, name: object = None) -> None:
    """Refuse, by InputError, a file whose first bytes or inner sizes show that it is no whole checkpoint.

    Known are PyTorch files (zip and pickle), safetensors and ONNX. `name` is what the error calls the file. Nothing is
    unpickled.
    """
    path, name = Path(path), name or path
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); check the path and its permissions") from error
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    again = "download it in a browser and put it in place by hand, or correct the url"
    if not head:
        raise InputError(f"{name}: is empty; download or copy it again")
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise InputError(f"{name}: is a web page, not a checkpoint (a download limit, a warning or a login); {again}")
    if text.startswith(b"version https://git-lfs"):
        raise InputError(f"{name}: is a Git LFS pointer, not the checkpoint itself; run git lfs pull, then copy it")
    if head.startswith(b"PK\x03\x04"):
        _require_whole_zip(path, name)
    elif head[8:9] == b"{":
        _require_whole_safetensors(path, name, size)
    # A pickle opens with PROTO; ONNX, a protocol buffer, with its field 1, the version of the format.
    elif head[:1] not in (b"\x80", b"\x08"):
        raise InputError(
            f"{name}: is no PyTorch, safetensors or ONNX file (it starts with {head[:12]!r}); {again}, or convert it"
        )


def recorded_digest(path: Path | str) -> str | None:
    """Digest recorded beside a checkpoint, or None; InputError when the record is malformed."""
    record = _record_of(path)
    require_regular(record)
    if not record.exists():
        return None
    digest = record.read_text(encoding="utf-8", errors="replace").split(" ")[0].strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InputError(f"{record}: holds no sha256; delete it, so that it is made again")
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
            file.infolist()
    # A damaged directory fails inside zipfile in many ways: features that it does not know, text that is none.
    except Exception as error:
        raise InputError(f"{name}: is a PyTorch file cut short ({error}); download or copy it again") from error


def _require_whole_safetensors(path, name, size):
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, 100_000_000):
            raise InputError(f"{name}: is a safetensors file cut short; download or copy it again")
        try:
            header = json.loads(file.read(length))
            ends = [value["data_offsets"][1] for key, value in header.items() if key != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise InputError(f"{name}: has a damaged safetensors header; download or copy it again") from error
    if not all(isinstance(end, int) for end in ends) or size != 8 + length + max(ends, default=0):
        raise InputError(
            f"{name}: has {size} bytes, another number than its safetensors header announces: cut short or damaged; "
            "download or copy it again"
        )
